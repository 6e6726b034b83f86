// SPDX-License-Identifier: BSD-3-Clause
/* cordond: the board process of Cordon cards. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "board/board.h"

static void handle_signal(struct board_event *event, uint32_t events)
{
	struct board *board =
		(struct board *)(void *)((char *)event - offsetof(struct board, signals));
	struct signalfd_siginfo info;

	(void)events;
	if (read(event->fd, &info, sizeof(info)) == sizeof(info))
		board->stop = true;
}

/* Only there to interrupt a write, see board_irq_signal(). */
static void handle_alarm(int signo)
{
	(void)signo;
}

static int catch_signals(struct board *board)
{
	struct sigaction alarm = { .sa_handler = handle_alarm };
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) || sigaction(SIGALRM, &alarm, NULL))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	board->signals.handle = handle_signal;
	return board_loop_add(board, &board->signals, fd, EPOLLIN);
}

/* Eventfds and guest memory of all ports: many file descriptors. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Descriptors 0 to 2 must be taken, or a socket of ours would be taken for a standard stream. */
static int hold_standard_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return -errno;
	} while (fd <= 2);
	close(fd);
	return 0;
}

static int start_firmware(struct board *board)
{
	unsigned int i, running = 0;
	int ret;

	for (i = 0; i < board->firmware_count; i++) {
		ret = board_firmware_start(&board->firmwares[i]);
		if (ret)
			return ret;
	}
	while (running < board->firmware_count && !board->stop) {
		ret = board_loop_run_once(board, UINT64_MAX);
		if (ret)
			return ret;
		for (i = 0, running = 0; i < board->firmware_count; i++) {
			if (board->firmwares[i].state == BOARD_FIRMWARE_DEAD)
				return -ECHILD;
			running += board->firmwares[i].state == BOARD_FIRMWARE_RUNNING;
		}
	}
	return 0;
}

static int listen_all(struct board *board)
{
	unsigned int i;
	int ret;

	for (i = 0; i < board->port_count; i++) {
		ret = board_port_listen(&board->ports[i]);
		if (ret) {
			board_log(BOARD_LOG_ERROR, "--port %s: socket %s: %s",
				  board->ports[i].options->name, board->ports[i].options->socket,
				  strerror(-ret));
			return ret;
		}
	}
	return 0;
}

static int run(struct board *board)
{
	int ret;

	ret = board_firmware_find(board);
	if (ret) {
		board_log(BOARD_LOG_ERROR, "firmware %s: %s",
			  board->options.firmware ? board->options.firmware : "cordon-fw",
			  strerror(-ret));
		return ret;
	}
	ret = board_port_create_all(board);
	if (ret)
		return ret;
	ret = start_firmware(board);
	if (ret) {
		board_log(BOARD_LOG_ERROR, "firmware %s doesn't start: %s", board->firmware_path,
			  strerror(-ret));
		return ret;
	}
	if (board->stop)
		return 0;
	ret = listen_all(board);
	if (ret)
		return ret;
	board->ready = true;
	puts("ready");
	fflush(stdout);
	while (!board->stop && !ret)
		ret = board_loop_run_once(board, UINT64_MAX);
	return ret;
}

static int open_board(struct board *board)
{
	int ret;

	ret = hold_standard_streams();
	if (ret)
		return ret;
	raise_limits();
	board->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (board->epoll_fd < 0)
		return -errno;
	return catch_signals(board);
}

int main(int argc, char **argv)
{
	static struct board board = { .epoll_fd = -1, .signals.fd = -1 };
	int ret;

	board_options_parse(&board.options, argc, argv);
	ret = open_board(&board);
	if (ret)
		board_log(BOARD_LOG_ERROR, "start: %s", strerror(-ret));
	else
		ret = run(&board);
	board_firmware_stop_all(&board);
	board_port_destroy_all(&board);
	free(board.firmware_path);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
