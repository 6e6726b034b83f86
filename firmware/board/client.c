// SPDX-License-Identifier: BSD-3-Clause
/*
 * The connection of a port: messages in, replies out.
 *
 * One message is read at a time, its header first and then its body, each with an exact length, so
 * that no byte and no file descriptor of the next message is taken. A reply that the socket has no
 * room for, or that waits for the firmware, stops reading: the client can't make the board keep
 * more than one of each.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "board/board.h"

/* Messages that one port may send before others have their turn. */
#define CLIENT_BATCH 16
/* How long nobody is accepted after the board has run out of file descriptors. */
#define CLIENT_PAUSE_MS 100
#define CLIENT_WARN_MS 10000

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

static struct board_port *port_of(struct board_event *event)
{
	return container_of(event, struct board_port, client.event);
}

static void drop_fds(struct board_client *client)
{
	unsigned int i;

	for (i = 0; i < client->fd_count; i++)
		if (client->fds[i] >= 0)
			close(client->fds[i]);
	client->fd_count = 0;
	client->fds_excess = false;
}

static void keep_fds(struct board_client *client, struct msghdr *msg)
{
	struct cmsghdr *cmsg;

	if (msg->msg_flags & MSG_CTRUNC)
		client->fds_excess = true;
	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		size_t i, n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
			if (client->fd_count < VFIO_USER_MAX_FDS) {
				client->fds[client->fd_count++] = fd;
			} else {
				close(fd);
				client->fds_excess = true;
			}
		}
	}
}

static ssize_t receive(struct board_client *client, size_t len)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(VFIO_USER_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = { client->in + client->in_len, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got = recvmsg(client->event.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0)
		return -errno;
	keep_fds(client, &msg);
	if (got == 0)
		return -ECONNRESET;
	client->in_len += (size_t)got;
	return got;
}

/* Errors of the framing: what follows on the socket can't be told from garbage any more. */
static int check_header(const struct vfio_user_header *header, size_t room)
{
	if ((header->flags & VFIO_USER_FLAGS_TYPE) != VFIO_USER_FLAGS_COMMAND)
		return -EPROTO;
	if (header->size < sizeof(*header) || header->size > room)
		return -EMSGSIZE;
	return 0;
}

/* Return: 1 = a whole message is there, 0 = not yet, or -errno. */
static int receive_message(struct board_client *client)
{
	struct vfio_user_header header;
	ssize_t ret;

	while (client->in_len < sizeof(header)) {
		ret = receive(client, sizeof(header) - client->in_len);
		if (ret < 0)
			return ret == -EAGAIN || ret == -EINTR ? 0 : (int)ret;
	}
	memcpy(&header, client->in, sizeof(header));
	ret = check_header(&header, sizeof(client->in));
	if (ret)
		return (int)ret;
	while (client->in_len < header.size) {
		ret = receive(client, header.size - client->in_len);
		if (ret < 0)
			return ret == -EAGAIN || ret == -EINTR ? 0 : (int)ret;
	}
	return 1;
}

static void make_reply(struct board_client *client, const struct board_request *request, int error)
{
	struct vfio_user_header header = {
		.id = request->header.id,
		.command = request->header.command,
		.flags = VFIO_USER_FLAGS_REPLY,
		.size = (uint32_t)sizeof(header),
	};

	client->out_len = 0;
	client->out_done = 0;
	client->out_fd = -1;
	if (request->header.flags & VFIO_USER_FLAGS_NO_REPLY)
		return;
	if (error) {
		header.flags |= VFIO_USER_FLAGS_ERROR;
		header.error = (uint32_t)-error;
	} else {
		header.size += (uint32_t)request->reply_len;
		client->out_fd = request->reply_fd;
	}
	memcpy(client->out, &header, sizeof(header));
	client->out_len = header.size;
}

/* What the firmware says makes an error of the reply that waits for it. */
static void refuse(struct board_client *client, int error)
{
	struct vfio_user_header header;

	if (!client->out_len)
		return;
	memcpy(&header, client->out, sizeof(header));
	header.flags |= VFIO_USER_FLAGS_ERROR;
	header.error = (uint32_t)-error;
	header.size = (uint32_t)sizeof(header);
	memcpy(client->out, &header, sizeof(header));
	client->out_len = sizeof(header);
	client->out_fd = -1;
}

static void serve(struct board_port *port)
{
	struct board_client *client = &port->client;
	struct board_request request = {
		.body = client->in + sizeof(request.header),
		.fds = client->fds,
		.fd_count = client->fd_count,
		.reply = client->out + sizeof(request.header),
		.reply_fd = -1,
	};
	int ret;

	memcpy(&request.header, client->in, sizeof(request.header));
	request.len = request.header.size - sizeof(request.header);
	ret = client->fds_excess ? -EINVAL : board_request_serve(port, &request);
	if (ret)
		board_log(BOARD_LOG_DEBUG, "%s: command %u: %s", port->options->name,
			  request.header.command, strerror(-ret));
	make_reply(client, &request, ret);
	drop_fds(client);
	client->in_len = 0;
}

static int send_reply(struct board_client *client)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	while (client->out_done < client->out_len) {
		iov.iov_base = client->out + client->out_done;
		iov.iov_len = client->out_len - client->out_done;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
		if (client->out_fd >= 0 && client->out_done == 0) {
			msg.msg_control = &control;
			msg.msg_controllen = sizeof(control);
			CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
			CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
			CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &client->out_fd, sizeof(int));
		}
		sent = sendmsg(client->event.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		client->out_done += (size_t)sent;
	}
	client->out_len = 0;
	return 0;
}

/* A refused first message ends the connection: nothing else may come before VERSION. */
static bool is_over(const struct board_client *client)
{
	return !client->versioned && client->in_len == 0;
}

static int flush(struct board_port *port)
{
	struct board_client *client = &port->client;
	int ret;

	if (client->wait_seq)
		return 0;
	ret = send_reply(client);
	if (ret == -EAGAIN)
		return 0;
	return ret ? ret : is_over(client) ? -ECONNABORTED : 0;
}

static void watch(struct board_port *port)
{
	struct board_client *client = &port->client;
	uint32_t events = EPOLLIN;

	if (client->wait_seq)
		events = 0;
	else if (client->out_len)
		events = EPOLLOUT;
	board_loop_set(port->board, &client->event, events);
}

static bool is_busy(const struct board_client *client)
{
	return client->wait_seq || client->out_len;
}

static void handle_client(struct board_event *event, uint32_t events)
{
	struct board_port *port = port_of(event);
	struct board_client *client = &port->client;
	int ret = 0, i;

	if (client->out_len)
		ret = flush(port);
	for (i = 0; i < CLIENT_BATCH && !ret && !is_busy(client) && (events & (EPOLLIN | EPOLLOUT));
	     i++) {
		ret = receive_message(client);
		if (ret <= 0)
			break;
		serve(port);
		ret = flush(port);
	}
	/* While nothing is read, the end of the connection shows only here. */
	if (!ret && is_busy(client) && (events & (EPOLLHUP | EPOLLERR)))
		ret = -ECONNRESET;
	if (ret < 0) {
		board_log(ret == -ECONNRESET ? BOARD_LOG_INFO : BOARD_LOG_WARNING,
			  "%s: client gone: %s", port->options->name, strerror(-ret));
		board_client_close(port);
		return;
	}
	watch(port);
}

/* The listener stays ready while it can't be served: it must leave the set, or the loop spins. */
static void pause_listening(struct board_port *port)
{
	static uint64_t warn_at;
	uint64_t now = board_loop_now();

	if (warn_at <= now) {
		board_log(BOARD_LOG_WARNING, "%s: a client can't be accepted: %s",
			  port->options->name, strerror(errno));
		warn_at = now + CLIENT_WARN_MS;
	}
	board_loop_del(port->board, &port->listener);
	port->listen_at = now + CLIENT_PAUSE_MS;
}

static void handle_listener(struct board_event *event, uint32_t events)
{
	struct board_port *port = container_of(event, struct board_port, listener);
	struct board_client *client = &port->client;
	int fd;

	(void)events;
	fd = accept4(port->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			pause_listening(port);
		return;
	}
	client->event.handle = handle_client;
	if (board_loop_add(port->board, &client->event, fd, EPOLLIN)) {
		pause_listening(port);
		close(fd);
		return;
	}
	/*
	 * One client at a time; a second one waits in the backlog until the first is gone and its
	 * memory let go of.
	 */
	board_loop_del(port->board, &port->listener);
	board_log(BOARD_LOG_INFO, "%s: client", port->options->name);
	if (port->regs.failed || !board_firmware_is_alive(port->firmware))
		board_regs_reset(port);
}

/**
 * board_client_init - no client
 * @client: client
 *
 * Context: loop.
 */
void board_client_init(struct board_client *client)
{
	memset(client, 0, offsetof(struct board_client, in));
	client->event.fd = -1;
	client->out_fd = -1;
}

/**
 * board_client_wait - wait for the next client
 * @port: port without one
 *
 * Context: loop.
 * Return: 0 or -errno.
 */
int board_client_wait(struct board_port *port)
{
	int ret;

	board_client_init(&port->client);
	port->listener.handle = handle_listener;
	ret = board_loop_add(port->board, &port->listener, port->listen_fd, EPOLLIN);
	port->listen_at = ret ? board_loop_now() + CLIENT_PAUSE_MS : 0;
	return ret;
}

/**
 * board_client_resume - the firmware has acknowledged a request, or is gone
 * @port: port
 * @seq: request; BOARD_SEQ_DEATH: the firmware is gone, which ends every wait
 * @error: 0, or -errno that the reply becomes
 *
 * Context: loop.
 */
void board_client_resume(struct board_port *port, uint64_t seq, int error)
{
	struct board_client *client = &port->client;
	int ret;

	if (!client->wait_seq || (client->wait_seq != seq && seq != BOARD_SEQ_DEATH))
		return;
	client->wait_seq = 0;
	if (client->leaving) {
		board_client_wait(port);
		return;
	}
	if (error)
		refuse(client, error);
	ret = flush(port);
	if (ret)
		board_client_close(port);
	else
		watch(port);
}

/**
 * board_client_close - the client is gone: back to the state after power-on
 * @port: port with a client
 *
 * The next client is accepted when the firmware has let go of the memory of this one.
 *
 * Context: loop.
 */
void board_client_close(struct board_port *port)
{
	struct board_client *client = &port->client;
	struct fw_ipc_msg msg = { .type = FW_IPC_DMA_CLEAR };
	int fd = client->event.fd;

	board_loop_del(port->board, &client->event);
	close(fd);
	drop_fds(client);
	client->out_len = 0;
	client->in_len = 0;
	client->leaving = true;
	client->wait_seq = 0;
	board_port_power_on(port);
	if (board_firmware_is_alive(port->firmware))
		board_regs_reset(port);
	board_irq_clear(port);
	board_dma_clear(port);
	client->wait_seq = board_firmware_ask(port, &msg, BOARD_REQUEST_MS);
	if (!client->wait_seq)
		board_client_wait(port);
}
