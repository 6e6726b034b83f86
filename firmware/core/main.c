// SPDX-License-Identifier: BSD-3-Clause
/*
 * cordon-fw: the firmware of the ports of one tenant.
 *
 * Threads: one worker, in this thread. It owns all ports with their rings, tables, wires and DMA
 * maps, so nothing here is locked. More workers would each own some of the ports; an SA belongs to
 * the worker of its port, messages of the board go to the owner of the port that they name, and DMA
 * maps are taken away only when the owner has acknowledged it.
 *
 * The process opens nothing: it starts with the socket to the board as file descriptor FW_IPC_FD
 * and gets all else through it. It holds keys, so it leaves no core dump and can't be traced by
 * others of its user. It ends with the board.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/worker.h"
#include "crypto/crypto.h"

static volatile sig_atomic_t end;

static void on_signal(int number)
{
	(void)number;
	end = 1;
}

static int harden(void)
{
	const struct rlimit none = { 0, 0 };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || setrlimit(RLIMIT_CORE, &none))
		return -errno;
	return 0;
}

static void signals_init(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

int main(int argc, char **argv)
{
	static struct fw_worker worker;
	struct stat st;
	int ret;

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("cordon-fw " CORDON_VERSION);
		return EXIT_SUCCESS;
	}
	if (fstat(FW_IPC_FD, &st) || !S_ISSOCK(st.st_mode)) {
		fputs("cordon-fw: is started by cordond, not by hand\n", stderr);
		return EXIT_FAILURE;
	}
	signals_init();
	ret = harden();
	if (!ret)
		ret = fw_crypto_init();
	if (!ret)
		ret = fw_worker_init(&worker, FW_IPC_FD);
	if (ret) {
		fprintf(stderr, "cordon-fw: %s\n", strerror(-ret));
		return EXIT_FAILURE;
	}
	fw_worker_run(&worker, &end);
	fw_worker_exit(&worker);
	return EXIT_SUCCESS;
}
