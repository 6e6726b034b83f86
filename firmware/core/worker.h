/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_WORKER_H
#define CORE_WORKER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "board/ipc.h"
#include "cordon/cmd.h"
#include "path/pkt.h"
#include "wire/wire.h"

struct fw_port;

/**
 * struct fw_worker - a data thread and all that it owns
 * @ipc: socket to the board
 * @epoll: what wakes it
 * @started: all ports were added
 * @stop: end of the process
 * @now: monotonic nanoseconds, read once a round
 * @controlled: when board and links were last looked after
 * @ports: ports by number
 * @rx: buffers for a burst from a wire
 * @cmd_in: input of the command that runs
 */
struct fw_worker {
	int ipc;
	int epoll;
	bool started;
	bool stop;
	uint64_t now;
	uint64_t controlled;
	struct fw_port *ports[FW_IPC_PORTS_MAX];
	struct fw_pkt rx[FW_WIRE_BURST];
	_Alignas(8) uint8_t cmd_in[CORDON_CMD_IN_MAX];
};

int fw_worker_init(struct fw_worker *w, int ipc);
void fw_worker_exit(struct fw_worker *w);
void fw_worker_run(struct fw_worker *w, const volatile sig_atomic_t *end);
uint64_t fw_worker_clock(void);
int fw_worker_watch_port(struct fw_worker *w, struct fw_port *port);

#endif
