/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port is plugged into. A wire takes and gives whole Ethernet frames, never blocks, and
 * belongs to one worker.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "board/ipc.h"
#include "path/pkt.h"

#define FW_WIRE_BURST 32

struct fw_wire;

/**
 * struct fw_wire_ops - a kind of wire
 * @name: for messages
 * @tx: offer frames; Return: how many were taken, from the first on. A frame that was taken but
 *	lost has its @result set. Fewer than
 * @count means that the wire is full, and that the worker is woken when there is room (or that it
 *	tries again soon, if @retry)
 * @rx: take up to @count frames into the buffers, at FW_PKT_HEADROOM; sets @off, @len and @result
 *	(BAD_L2 if a frame didn't fit);
 *	Return: frames
 * @poll_link: Return: true if the wire has another end
 * @sleep: the worker is about to sleep: arrange to be woken; Return: true if there are frames
 *	already
 * @wake: the worker is awake again
 * @destroy: close and free
 * @retry: the wire can't tell when there is room again
 */
struct fw_wire_ops {
	const char *name;
	uint32_t (*tx)(struct fw_wire *wire, struct fw_pkt **pkts, uint32_t count);
	uint32_t (*rx)(struct fw_wire *wire, struct fw_pkt *pkts, uint32_t count);
	bool (*poll_link)(struct fw_wire *wire, uint64_t now);
	bool (*sleep)(struct fw_wire *wire);
	void (*wake)(struct fw_wire *wire);
	void (*destroy)(struct fw_wire *wire);
	bool retry;
};

/**
 * struct fw_wire - a wire
 * @ops: its kind
 * @fd: becomes readable when there are frames or room, -1 = never
 * @edge: @fd is an eventfd that nobody reads: watch for edges
 * @link_period: nanoseconds after which @poll_link should be called though nothing woke the worker,
 *	0 = not needed
 */
struct fw_wire {
	const struct fw_wire_ops *ops;
	int fd;
	bool edge;
	uint64_t link_period;
};

/**
 * fw_wire_create() - make the wire of a port
 * @msg: FW_IPC_PORT_ADD
 * @fds: the wire's file descriptors. On success the wire owns them
 * @count: how many
 * @out: the wire
 *
 * Return: 0 or -errno.
 */
int fw_wire_create(const struct fw_ipc_msg *msg, const int *fds, uint32_t count,
		   struct fw_wire **out);

/**
 * fw_wire_fds() - file descriptors that a kind of wire needs
 * @kind: enum fw_ipc_wire
 *
 * Return: number, or -EINVAL for an unknown kind.
 */
int fw_wire_fds(uint32_t kind);

int fw_wire_none_create(struct fw_wire **out);
int fw_wire_shm_create(const struct fw_ipc_msg *msg, const int *fds, struct fw_wire **out);
int fw_wire_unix_create(const struct fw_ipc_msg *msg, const int *fds, struct fw_wire **out);
int fw_wire_tap_create(const struct fw_ipc_msg *msg, const int *fds, struct fw_wire **out);

#endif
