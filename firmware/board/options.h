/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line says. */
#ifndef BOARD_OPTIONS_H
#define BOARD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "board/ipc.h"

#define BOARD_PORTS_MAX 64

/**
 * struct board_port_options - one --port with its --capture and --limit
 * @name: name
 * @socket: path of the vfio-user socket
 * @group: ports with equal groups share a firmware process; NULL: alone
 * @mac: permanent address
 * @queues: queue pairs
 * @wire: what it is plugged into
 * @wire_local: name of the other port, path of the own socket, or name of the interface
 * @wire_remote: path of the peer's socket
 * @wire_port: FW_IPC_WIRE_SHM: number of the other port
 * @capture: pcapng file or NULL
 * @limits: what is taken away
 */
struct board_port_options {
	char name[FW_IPC_NAME_MAX];
	char *socket;
	char *group;
	uint8_t mac[6];
	unsigned int queues;
	enum fw_ipc_wire wire;
	char *wire_local;
	char *wire_remote;
	unsigned int wire_port;
	char *capture;
	struct fw_ipc_limits limits;
};

/**
 * struct board_options - the whole command line
 * @ports: ports
 * @port_count: how many
 * @msi: MSI in place of MSI-X
 * @firmware: path of the firmware, NULL: look for it
 */
struct board_options {
	struct board_port_options ports[BOARD_PORTS_MAX];
	unsigned int port_count;
	bool msi;
	const char *firmware;
};

void board_options_parse(struct board_options *options, int argc, char **argv);

#endif
