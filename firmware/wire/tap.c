// SPDX-License-Identifier: BSD-3-Clause
/*
 * A queue of a TAP interface, without packet information or offload header. The interface counts as
 * the other end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/wire.h"

static uint32_t tap_tx(struct fw_wire *wire, struct fw_pkt **pkts, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		ssize_t n = write(wire->fd, fw_pkt_data(pkts[i]), pkts[i]->len);

		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
			return i;
		/* EIO: the interface is down. */
		if (n < 0)
			pkts[i]->result = CORDON_RESULT_LINK_DOWN;
	}
	return count;
}

static uint32_t tap_rx(struct fw_wire *wire, struct fw_pkt *pkts, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		/* One byte more than a frame may have tells a frame that is too long. */
		ssize_t n = read(wire->fd, pkts[i].buf + FW_PKT_HEADROOM, FW_PKT_FRAME_MAX + 1);

		if (n <= 0)
			break;
		pkts[i].off = FW_PKT_HEADROOM;
		pkts[i].len = (uint32_t)n;
		pkts[i].result = n > FW_PKT_FRAME_MAX ? CORDON_RESULT_BAD_L2 : CORDON_RESULT_OK;
	}
	return i;
}

static bool tap_poll_link(struct fw_wire *wire, uint64_t now)
{
	(void)wire;
	(void)now;
	return true;
}

/* The file descriptor is watched by level: frames that wait already end the sleep at once. */
static bool tap_sleep(struct fw_wire *wire)
{
	(void)wire;
	return false;
}

static void tap_wake(struct fw_wire *wire)
{
	(void)wire;
}

static void tap_destroy(struct fw_wire *wire)
{
	close(wire->fd);
	free(wire);
}

static const struct fw_wire_ops tap_ops = {
	.name = "tap",
	.tx = tap_tx,
	.rx = tap_rx,
	.poll_link = tap_poll_link,
	.sleep = tap_sleep,
	.wake = tap_wake,
	.destroy = tap_destroy,
	.retry = true,
};

/**
 * fw_wire_tap_create() - a TAP interface
 * @msg: FW_IPC_PORT_ADD
 * @fds: the open queue
 * @out: the wire
 *
 * Return: 0 or -errno.
 */
int fw_wire_tap_create(const struct fw_ipc_msg *msg, const int *fds, struct fw_wire **out)
{
	struct fw_wire *wire;
	int flags = fcntl(fds[0], F_GETFL);

	(void)msg;
	if (flags < 0 || fcntl(fds[0], F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	wire = calloc(1, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	wire->ops = &tap_ops;
	wire->fd = fds[0];
	*out = wire;
	return 0;
}
