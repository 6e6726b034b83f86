// SPDX-License-Identifier: BSD-3-Clause
/*
 * A UNIX datagram socket, a frame for each datagram. The socket is connected to the peer's path, so
 * that frames are taken from the peer alone; the peer is there as long as connecting works. A peer
 * that was made anew under the same path is found within LINK_PERIOD.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/wire.h"

#define LINK_PERIOD 250000000ull

struct unix_wire {
	struct fw_wire wire;
	struct sockaddr_un peer;
	bool up;
	uint64_t tried;
};

static struct unix_wire *unix_wire(struct fw_wire *wire)
{
	return (struct unix_wire *)wire;
}

static uint32_t lose_rest(struct unix_wire *w, struct fw_pkt **pkts, uint32_t from, uint32_t count)
{
	w->up = false;
	for (uint32_t i = from; i < count; i++)
		pkts[i]->result = CORDON_RESULT_LINK_DOWN;
	return count;
}

static uint32_t unix_tx(struct fw_wire *wire, struct fw_pkt **pkts, uint32_t count)
{
	struct unix_wire *w = unix_wire(wire);
	struct mmsghdr msgs[FW_WIRE_BURST];
	struct iovec iov[FW_WIRE_BURST];
	uint32_t n = count < FW_WIRE_BURST ? count : FW_WIRE_BURST;
	int sent;

	if (!w->up)
		return lose_rest(w, pkts, 0, count);
	memset(msgs, 0, n * sizeof(msgs[0]));
	for (uint32_t i = 0; i < n; i++) {
		iov[i].iov_base = fw_pkt_data(pkts[i]);
		iov[i].iov_len = pkts[i]->len;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	sent = sendmmsg(wire->fd, msgs, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent >= 0)
		return (uint32_t)sent;
	if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR || errno == ENOMEM)
		return 0;
	if (errno == EMSGSIZE) {
		pkts[0]->result = CORDON_RESULT_TOO_LONG;
		return 1;
	}
	return lose_rest(w, pkts, 0, count);
}

static uint32_t unix_rx(struct fw_wire *wire, struct fw_pkt *pkts, uint32_t count)
{
	struct mmsghdr msgs[FW_WIRE_BURST];
	struct iovec iov[FW_WIRE_BURST];
	uint32_t n = count < FW_WIRE_BURST ? count : FW_WIRE_BURST;
	int got;

	memset(msgs, 0, n * sizeof(msgs[0]));
	for (uint32_t i = 0; i < n; i++) {
		iov[i].iov_base = pkts[i].buf + FW_PKT_HEADROOM;
		iov[i].iov_len = FW_PKT_FRAME_MAX;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	got = recvmmsg(wire->fd, msgs, n, MSG_DONTWAIT, NULL);
	if (got <= 0)
		return 0;
	for (uint32_t i = 0; i < (uint32_t)got; i++) {
		bool cut = msgs[i].msg_hdr.msg_flags & MSG_TRUNC;

		pkts[i].off = FW_PKT_HEADROOM;
		pkts[i].len = msgs[i].msg_len;
		pkts[i].result = cut ? CORDON_RESULT_BAD_L2 : CORDON_RESULT_OK;
	}
	return (uint32_t)got;
}

static bool unix_poll_link(struct fw_wire *wire, uint64_t now)
{
	struct unix_wire *w = unix_wire(wire);

	if (w->tried && now - w->tried < LINK_PERIOD)
		return w->up;
	w->tried = now;
	w->up = !connect(wire->fd, (const struct sockaddr *)&w->peer, sizeof(w->peer));
	return w->up;
}

/* The file descriptor is watched by level: frames that wait already end the sleep at once. */
static bool unix_sleep(struct fw_wire *wire)
{
	(void)wire;
	return false;
}

static void unix_wake(struct fw_wire *wire)
{
	(void)wire;
}

static void unix_destroy(struct fw_wire *wire)
{
	close(wire->fd);
	free(wire);
}

static const struct fw_wire_ops unix_ops = {
	.name = "unix",
	.tx = unix_tx,
	.rx = unix_rx,
	.poll_link = unix_poll_link,
	.sleep = unix_sleep,
	.wake = unix_wake,
	.destroy = unix_destroy,
	.retry = true,
};

/**
 * fw_wire_unix_create() - a UNIX datagram socket
 * @msg: FW_IPC_PORT_ADD
 * @fds: the bound socket
 * @out: the wire
 *
 * Return: 0 or -errno.
 */
int fw_wire_unix_create(const struct fw_ipc_msg *msg, const int *fds, struct fw_wire **out)
{
	struct unix_wire *w;
	size_t len = strnlen(msg->add.path, sizeof(msg->add.path));

	if (!len || len == sizeof(msg->add.path))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->wire.ops = &unix_ops;
	w->wire.fd = fds[0];
	w->wire.link_period = LINK_PERIOD;
	w->peer.sun_family = AF_UNIX;
	memcpy(w->peer.sun_path, msg->add.path, len);
	*out = &w->wire;
	return 0;
}
