// SPDX-License-Identifier: BSD-3-Clause
/*
 * Messages of the board, see board/ipc.h. They are worked off between two rounds of the worker: so
 * when a request is acknowledged, no packet is under way that could still touch what it took away.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/ipc.h"
#include "core/port.h"
#include "core/worker.h"

/* The board may send without end; packets wait no longer than this. */
#define POLL_MAX 200000ull

/**
 * struct request - a message and what came with it
 * @msg: message
 * @fds: file descriptors; a handler that keeps one puts -1 in its place
 * @fd_count: how many
 */
struct request {
	struct fw_ipc_msg msg;
	int fds[FW_IPC_FDS_MAX];
	uint32_t fd_count;
};

static void send_msg(struct fw_worker *w, const struct fw_ipc_msg *msg)
{
	/* A board that is gone is noticed by the next read. */
	while (send(w->ipc, msg, sizeof(*msg), MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

/**
 * fw_ipc_send_failed() - tell the board that a function can't go on
 * @w: worker
 * @port: number of the function
 * @why: reason
 */
void fw_ipc_send_failed(struct fw_worker *w, uint32_t port, enum cordon_error why)
{
	struct fw_ipc_msg msg = { .type = FW_IPC_FAILED, .port = port, .error = (int32_t)why };

	send_msg(w, &msg);
}

static int do_port_add(struct fw_worker *w, struct request *r)
{
	struct fw_port *port;
	int ret;

	if (r->msg.port >= FW_IPC_PORTS_MAX || w->ports[r->msg.port])
		return -EINVAL;
	ret = fw_port_create(w, &r->msg, r->fds, r->fd_count, &port);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < r->fd_count; i++)
		r->fds[i] = -1;
	ret = fw_worker_watch_port(w, port);
	if (ret) {
		fw_port_destroy(port);
		return ret;
	}
	w->ports[r->msg.port] = port;
	return 0;
}

static int do_irq_set(struct fw_port *port, struct request *r)
{
	uint32_t first = r->msg.irq.first, count = r->msg.irq.count;

	if (count != r->fd_count || first > port->vectors || count > port->vectors - first)
		return -EINVAL;
	for (uint32_t i = 0; i < port->vectors; i++) {
		if (count && (i < first || i - first >= count))
			continue;
		if (port->irqs[i] >= 0)
			close(port->irqs[i]);
		port->irqs[i] = count ? r->fds[i - first] : -1;
	}
	for (uint32_t i = 0; i < count; i++)
		r->fds[i] = -1;
	return 0;
}

static int do_dma_map(struct fw_port *port, const struct request *r)
{
	if (r->fd_count != 1)
		return -EINVAL;
	return fw_mem_map(&port->mem, r->fds[0], r->msg.dma.addr, r->msg.dma.size,
			  r->msg.dma.offset, r->msg.dma.writable);
}

static int do_port(struct fw_worker *w, struct request *r)
{
	const struct fw_ipc_msg *msg = &r->msg;
	struct fw_port *port;

	if (msg->port >= FW_IPC_PORTS_MAX || !w->ports[msg->port])
		return -ENODEV;
	port = w->ports[msg->port];
	switch (msg->type) {
	case FW_IPC_DMA_MAP:
		return do_dma_map(port, r);
	case FW_IPC_DMA_UNMAP:
		return fw_mem_unmap(&port->mem, msg->dma.addr, msg->dma.size);
	case FW_IPC_DMA_CLEAR:
		fw_mem_clear(&port->mem);
		return 0;
	case FW_IPC_IRQ_SET:
		return do_irq_set(port, r);
	case FW_IPC_ENABLE:
		return fw_port_enable(port, msg->enable.cmd_sq, msg->enable.cmd_cq,
				      msg->enable.event_ring, msg->enable.ring_sizes);
	case FW_IPC_DISABLE:
		fw_port_disable(port);
		return 0;
	}
	return -EOPNOTSUPP;
}

static void handle(struct fw_worker *w, struct request *r)
{
	struct fw_ipc_msg ack = { .type = FW_IPC_ACK, .port = r->msg.port, .seq = r->msg.seq };

	switch (r->msg.type) {
	case FW_IPC_PORT_ADD:
		ack.error = do_port_add(w, r);
		break;
	case FW_IPC_START:
		w->started = true;
		break;
	default:
		ack.error = do_port(w, r);
	}
	for (uint32_t i = 0; i < r->fd_count; i++) {
		if (r->fds[i] >= 0)
			close(r->fds[i]);
	}
	if (r->msg.seq) {
		send_msg(w, &ack);
	} else if (ack.error) {
		/* Nobody hears of it, and what follows builds on it: a map that an enabled ring needs, say. */
		fprintf(stderr, "cordon-fw: request %u: %s\n", r->msg.type, strerror(-ack.error));
		w->stop = true;
	}
}

static void fds_take(struct request *r, struct msghdr *hdr)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		if (count > FW_IPC_FDS_MAX)
			count = FW_IPC_FDS_MAX;
		memcpy(r->fds, CMSG_DATA(c), count * sizeof(int));
		r->fd_count = (uint32_t)count;
	}
}

/* Return: 1 if a message was taken, 0 if there is none, -errno if there will be none any more. */
static int receive(struct fw_worker *w, struct request *r)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FW_IPC_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = &r->msg, .iov_len = sizeof(r->msg) };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(w->ipc, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -EPIPE;
	r->fd_count = 0;
	fds_take(r, &hdr);
	if (n != sizeof(r->msg) || hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EPROTO;
	return 1;
}

/**
 * fw_ipc_poll() - work off messages of the board
 * @w: worker
 *
 * The board is trusted; if it doesn't keep to the protocol the only safe thing is to end.
 */
void fw_ipc_poll(struct fw_worker *w)
{
	uint64_t start = fw_worker_clock();
	struct request r;

	while (!w->stop && fw_worker_clock() - start < POLL_MAX) {
		int ret = receive(w, &r);

		if (!ret)
			return;
		if (ret < 0)
			w->stop = true;
		else
			handle(w, &r);
	}
}
