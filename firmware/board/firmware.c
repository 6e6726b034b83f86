// SPDX-License-Identifier: BSD-3-Clause
/*
 * The firmware processes: start, requests and their answers, time-outs, death.
 *
 * Killing only marks a process: all that follows from its end happens when its pidfd says that it
 * is gone, because until then it may touch memory. So no function here changes a port's state
 * behind the back of a caller that is busy with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board/board.h"

/*
 * Messages that may wait: all maps, the end of all maps, and what else there is; a firmware so far
 * behind hangs.
 */
#define FIRMWARE_QUEUE_MAX (2 * BOARD_MAPS_MAX + 4096)
#define FIRMWARE_STOP_MS 1000

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

static const char *name_of(const struct board_firmware *firmware)
{
	return firmware->ports[0]->options->name;
}

/**
 * board_firmware_is_alive - does it take messages?
 * @firmware: firmware
 *
 * Context: loop.
 * Return: true if it starts or runs.
 */
bool board_firmware_is_alive(const struct board_firmware *firmware)
{
	return firmware->state == BOARD_FIRMWARE_STARTING ||
	       firmware->state == BOARD_FIRMWARE_RUNNING;
}

/**
 * board_firmware_init - no process
 * @firmware: firmware
 * @board: board
 *
 * Context: loop.
 */
void board_firmware_init(struct board_firmware *firmware, struct board *board)
{
	memset(firmware, 0, sizeof(*firmware));
	firmware->board = board;
	firmware->process.fd = -1;
	firmware->socket.fd = -1;
	TAILQ_INIT(&firmware->pending);
	TAILQ_INIT(&firmware->timed);
	STAILQ_INIT(&firmware->queue);
}

/**
 * board_firmware_find - find the program
 * @board: board; firmware_path is set
 *
 * Without --firmware it is looked for beside the board's own program and in ../libexec/cordon from
 * there.
 *
 * Context: before the loop.
 * Return: 0 or -errno.
 */
int board_firmware_find(struct board *board)
{
	static const char *const places[] = { "cordon-fw", "../libexec/cordon/cordon-fw" };
	char self[PATH_MAX], path[PATH_MAX + 64];
	size_t i;
	ssize_t len;
	char *slash;

	if (board->options.firmware) {
		board->firmware_path = realpath(board->options.firmware, NULL);
		return board->firmware_path && !access(board->firmware_path, X_OK) ? 0 : -errno;
	}
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0)
		return -errno;
	self[len] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		if (access(path, X_OK))
			continue;
		board->firmware_path = realpath(path, NULL);
		return board->firmware_path ? 0 : -errno;
	}
	return -ENOENT;
}

static bool is_timed(const struct board_pending *pending)
{
	return pending->deadline != UINT64_MAX;
}

static void forget_request(struct board_firmware *firmware, struct board_pending *pending)
{
	TAILQ_REMOVE(&firmware->pending, pending, next);
	if (is_timed(pending))
		TAILQ_REMOVE(&firmware->timed, pending, next_timed);
}

static void drop_request(struct board_firmware *firmware, struct board_pending *pending)
{
	forget_request(firmware, pending);
	free(pending);
}

static void drop_pending(struct board_firmware *firmware)
{
	struct board_pending *pending;

	/* The analyzer doesn't see that what is freed has left the list. */
	while ((pending = TAILQ_FIRST(&firmware->pending)))
		drop_request(firmware, pending); /* NOLINT(clang-analyzer-unix.Malloc) */
}

static void drop_packet(struct board_firmware *firmware)
{
	struct board_packet *packet = STAILQ_FIRST(&firmware->queue);

	STAILQ_REMOVE_HEAD(&firmware->queue, next);
	firmware->queue_len--;
	board_dma_put_file(packet->file);
	free(packet);
}

/**
 * board_firmware_kill - end a firmware process
 * @firmware: firmware
 * @cause: what the error register will say
 *
 * Context: loop. What follows happens when the process is gone.
 */
void board_firmware_kill(struct board_firmware *firmware, enum cordon_error cause)
{
	if (!board_firmware_is_alive(firmware))
		return;
	board_log(BOARD_LOG_WARNING, "%s: firmware is killed, error %d", name_of(firmware), cause);
	firmware->state = BOARD_FIRMWARE_DYING;
	firmware->cause = cause;
	pidfd_send_signal(firmware->process.fd, SIGKILL, NULL, 0);
	board_loop_set(firmware->board, &firmware->socket, 0);
}

static int send_now(struct board_firmware *firmware, const struct fw_ipc_msg *msg, const int *fds,
		    unsigned int fd_count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(FW_IPC_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)msg, sizeof(*msg) };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_count) {
		hdr.msg_control = &control;
		hdr.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, fd_count * sizeof(int));
	}
	if (sendmsg(firmware->socket.fd, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

/* The socket has no room now; of any other error the pidfd will tell. */
static bool is_full(int error)
{
	return error == -EAGAIN || error == -ETOOMANYREFS || error == -ENOBUFS || error == -ENOMEM;
}

/* @fds live as long as the board, or are that of @file. */
static void send_or_queue(struct board_firmware *firmware, const struct fw_ipc_msg *msg,
			  const int *fds, unsigned int fd_count, struct board_file *file)
{
	struct board_packet *packet = NULL;

	if (STAILQ_EMPTY(&firmware->queue) && !is_full(send_now(firmware, msg, fds, fd_count)))
		return;
	if (firmware->queue_len < FIRMWARE_QUEUE_MAX)
		packet = calloc(1, sizeof(*packet));
	if (!packet) {
		board_firmware_kill(firmware, CORDON_ERROR_FIRMWARE_HUNG);
		return;
	}
	packet->msg = *msg;
	if (fd_count)
		memcpy(packet->fds, fds, fd_count * sizeof(*fds));
	packet->fd_count = fd_count;
	packet->file = file;
	if (file)
		board_dma_get_file(file);
	STAILQ_INSERT_TAIL(&firmware->queue, packet, next);
	firmware->queue_len++;
	board_loop_set(firmware->board, &firmware->socket, EPOLLIN | EPOLLOUT);
}

static void flush(struct board_firmware *firmware)
{
	struct board_packet *packet;
	unsigned int i;

	while ((packet = STAILQ_FIRST(&firmware->queue))) {
		if (is_full(send_now(firmware, &packet->msg, packet->fds, packet->fd_count)))
			return;
		drop_packet(firmware);
	}
	board_loop_set(firmware->board, &firmware->socket, EPOLLIN);
	for (i = 0; i < firmware->port_count; i++)
		if (firmware->ports[i]->irq.stale)
			board_irq_replay(firmware->ports[i]);
}

static struct board_pending *add_pending(struct board_firmware *firmware, struct board_port *port,
					 struct fw_ipc_msg *msg, uint64_t deadline)
{
	struct board_pending *pending = calloc(1, sizeof(*pending));

	if (!pending) {
		board_firmware_kill(firmware, CORDON_ERROR_FIRMWARE_HUNG);
		return NULL;
	}
	msg->seq = ++firmware->seq;
	pending->seq = msg->seq;
	pending->type = msg->type;
	pending->port = port;
	pending->from = board_loop_now();
	pending->deadline = deadline;
	TAILQ_INSERT_TAIL(&firmware->pending, pending, next);
	if (is_timed(pending))
		TAILQ_INSERT_TAIL(&firmware->timed, pending, next_timed);
	return pending;
}

/* The whole time is bounded however many steps there are before it. */
static struct board_pending *add_steps(struct board_firmware *firmware, struct board_port *port,
				       struct fw_ipc_msg *msg, uint64_t ms)
{
	uint64_t now = board_loop_now(), deadline = UINT64_MAX, from = now;
	struct board_pending *pending;

	if (ms)
		deadline = now + (ms < BOARD_WHOLE_MS ? BOARD_WHOLE_MS : ms);
	/* What is asked while it starts is read only when it has started. */
	if (firmware->state == BOARD_FIRMWARE_STARTING && firmware->start_deadline > now) {
		from = firmware->start_deadline;
		if (ms)
			deadline = from + ms;
	}
	pending = add_pending(firmware, port, msg, deadline);
	if (!pending)
		return NULL;
	pending->from = from;
	pending->step = ms;
	return pending;
}

/**
 * board_firmware_tell_map - send DMA_MAP
 * @port: port that it is about
 * @msg: message; port and seq are filled in
 * @file: memory
 *
 * A firmware that starts isn't asked: it serves this before any ENABLE, so nothing misses the map.
 *
 * Context: loop. Nothing happens without a firmware.
 * Return: number of the request, 0 if there is nothing to wait for.
 */
uint64_t board_firmware_tell_map(struct board_port *port, struct fw_ipc_msg *msg,
				 struct board_file *file)
{
	struct board_firmware *firmware = port->firmware;
	struct board_pending *pending;

	if (!board_firmware_is_alive(firmware))
		return 0;
	msg->port = port->slot;
	if (firmware->state == BOARD_FIRMWARE_RUNNING) {
		pending = add_steps(firmware, port, msg, BOARD_REQUEST_MS);
		if (!pending)
			return BOARD_SEQ_DEATH;
		pending->addr = msg->dma.addr;
	}
	send_or_queue(firmware, msg, &file->fd, 1, file);
	return msg->seq;
}

/**
 * board_firmware_tell_irqs - send IRQ_SET
 * @port: port that it is about
 * @msg: message; port and seq are filled in
 * @fds: eventfds, stay the caller's
 * @fd_count: how many
 *
 * These messages aren't queued: if there is no room now, all vectors are sent again when there is.
 *
 * Context: loop. Nothing happens without a firmware.
 */
void board_firmware_tell_irqs(struct board_port *port, struct fw_ipc_msg *msg, const int *fds,
			      unsigned int fd_count)
{
	struct board_firmware *firmware = port->firmware;
	struct board_pending *pending;

	if (!board_firmware_is_alive(firmware) || port->irq.stale)
		return;
	msg->port = port->slot;
	pending = add_pending(firmware, port, msg, UINT64_MAX);
	if (!pending)
		return;
	pending->first = msg->irq.first;
	pending->count = msg->irq.count;
	if (STAILQ_EMPTY(&firmware->queue) && !is_full(send_now(firmware, msg, fds, fd_count)))
		return;
	drop_request(firmware, pending);
	port->irq.stale = true;
	board_loop_set(firmware->board, &firmware->socket, EPOLLIN | EPOLLOUT);
}

/**
 * board_firmware_ask - send a request that is acknowledged
 * @port: port that it is about
 * @msg: message without file descriptors; port and seq are filled in
 * @ms: the firmware is killed if it has acknowledged nothing within so many milliseconds, or not
 * this within BOARD_WHOLE_MS; 0: one that is timed follows
 *
 * Context: loop.
 * Return: number of the request; BOARD_SEQ_DEATH if the firmware is being killed; 0 if there is
 * none.
 */
uint64_t board_firmware_ask(struct board_port *port, struct fw_ipc_msg *msg, uint64_t ms)
{
	struct board_firmware *firmware = port->firmware;

	if (firmware->state == BOARD_FIRMWARE_DEAD)
		return 0;
	if (firmware->state == BOARD_FIRMWARE_DYING)
		return BOARD_SEQ_DEATH;
	msg->port = port->slot;
	if (!add_steps(firmware, port, msg, ms))
		return BOARD_SEQ_DEATH;
	send_or_queue(firmware, msg, NULL, 0, NULL);
	return msg->seq;
}

static void add_port(struct board_firmware *firmware, struct board_port *port)
{
	struct fw_ipc_msg msg = { .type = FW_IPC_PORT_ADD, .port = port->slot };
	const struct board_port_options *options = port->options;
	int fds[FW_IPC_FDS_MAX];
	unsigned int n = 0, i;

	fds[n++] = port->doorbell_fd;
	fds[n++] = port->kick_fd;
	for (i = 0; i < port->wire.fd_count; i++)
		fds[n++] = port->wire.fds[i];
	if (port->capture_fd >= 0)
		fds[n++] = port->capture_fd;
	msg.add.vectors = port->vectors;
	msg.add.wire = options->wire;
	msg.add.end = port->wire.end;
	msg.add.has_capture = port->capture_fd >= 0;
	memcpy(msg.add.mac, options->mac, sizeof(msg.add.mac));
	memcpy(msg.add.name, options->name, sizeof(msg.add.name));
	if (options->wire_remote)
		snprintf(msg.add.path, sizeof(msg.add.path), "%s", options->wire_remote);
	msg.add.limits = options->limits;
	msg.add.limits.queue_pairs = options->queues;
	if (add_pending(firmware, port, &msg, firmware->start_deadline))
		send_or_queue(firmware, &msg, fds, n, NULL);
}

static void started(struct board_firmware *firmware)
{
	unsigned int i;

	if (firmware->state != BOARD_FIRMWARE_STARTING)
		return;
	firmware->state = BOARD_FIRMWARE_RUNNING;
	board_log(BOARD_LOG_INFO, "%s: firmware %d runs", name_of(firmware), firmware->pid);
	for (i = 0; i < firmware->port_count; i++) {
		struct board_regs *regs = &firmware->ports[i]->regs;

		if (regs->resetting && !regs->reset_seq)
			board_regs_reset_done(firmware->ports[i]);
	}
}

/* What can't be undone by an error of the firmware: it is asked to let go, and must. */
static bool must_succeed(uint32_t type)
{
	return type != FW_IPC_ENABLE && type != FW_IPC_IRQ_SET && type != FW_IPC_DMA_MAP;
}

static void acknowledged(struct board_firmware *firmware, const struct board_pending *pending,
			 int error)
{
	struct board_port *port = pending->port;

	if (error && must_succeed(pending->type)) {
		board_log(BOARD_LOG_ERROR, "%s: firmware answers request %u with: %s",
			  name_of(firmware), pending->type, strerror(-error));
		board_firmware_kill(firmware, CORDON_ERROR_FIRMWARE_DIED);
		return;
	}
	if (pending->type == FW_IPC_START)
		started(firmware);
	if (!port)
		return;
	if (pending->type == FW_IPC_ENABLE && port->regs.enable_seq == pending->seq)
		board_regs_enable_done(port, error);
	if (pending->type == FW_IPC_DISABLE && port->regs.reset_seq == pending->seq)
		board_regs_reset_done(port);
	/*
	 * Between "all gone" and the new eventfds an interrupt may have been lost; one too many
	 * does no harm.
	 */
	if (pending->type == FW_IPC_IRQ_SET && port->regs.enabled)
		board_irq_raise(port, pending->first, pending->count);
	/* Nobody waits for it any more: its maps were all taken away meanwhile. */
	if (pending->type == FW_IPC_DMA_MAP && error && port->client.wait_seq == pending->seq)
		board_dma_refuse(port, pending->addr);
	board_client_resume(port, pending->seq, pending->type == FW_IPC_DMA_MAP ? error : 0);
}

static void take_ack(struct board_firmware *firmware, const struct fw_ipc_msg *msg)
{
	struct board_pending *pending = TAILQ_FIRST(&firmware->pending);
	int error = msg->error <= 0 && msg->error > -4096 ? msg->error : -EIO;

	/* In order, or an answer to a later request would pass for progress of this one. */
	if (!pending || pending->seq != msg->seq) {
		board_log(BOARD_LOG_ERROR, "%s: firmware answers what wasn't asked",
			  name_of(firmware));
		board_firmware_kill(firmware, CORDON_ERROR_FIRMWARE_DIED);
		return;
	}
	forget_request(firmware, pending);
	firmware->progress = board_loop_now();
	acknowledged(firmware, pending, error);
	free(pending);
}

static void take_failed(struct board_firmware *firmware, const struct fw_ipc_msg *msg)
{
	struct board_port *port;
	bool known = msg->error > CORDON_ERROR_NONE && msg->error <= CORDON_ERROR_DMA;

	if (msg->port >= firmware->port_count)
		return;
	port = firmware->ports[msg->port];
	/* Sent before it has read the reset. */
	if (port->regs.resetting)
		return;
	board_regs_fail(port, known ? (enum cordon_error)msg->error : CORDON_ERROR_DMA);
}

/* Return: 0, or -errno when there is nothing (more) to read. */
static int receive(struct board_firmware *firmware)
{
	struct fw_ipc_msg msg;
	ssize_t got = recv(firmware->socket.fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0)
		return -errno;
	if (got == 0) {
		board_firmware_kill(firmware, CORDON_ERROR_FIRMWARE_DIED);
		return -ENOTCONN;
	}
	if (got == sizeof(msg) && msg.type == FW_IPC_ACK) {
		take_ack(firmware, &msg);
	} else if (got == sizeof(msg) && msg.type == FW_IPC_FAILED) {
		take_failed(firmware, &msg);
	} else {
		board_log(BOARD_LOG_ERROR, "%s: firmware sends nonsense", name_of(firmware));
		board_firmware_kill(firmware, CORDON_ERROR_FIRMWARE_DIED);
	}
	return 0;
}

static void handle_socket(struct board_event *event, uint32_t events)
{
	struct board_firmware *firmware = container_of(event, struct board_firmware, socket);

	if (!board_firmware_is_alive(firmware)) {
		int sock = event->fd;

		/* A hang-up is reported whatever is waited for. */
		board_loop_del(firmware->board, event);
		close(sock);
		return;
	}
	if (events & EPOLLOUT)
		flush(firmware);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(firmware);
}

static void bury(struct board_firmware *firmware)
{
	siginfo_t info = { 0 };

	waitid(P_PIDFD, (id_t)firmware->process.fd, &info, WEXITED | WNOHANG);
	board_log(firmware->cause ? BOARD_LOG_INFO : BOARD_LOG_WARNING,
		  "%s: firmware %d is gone (%s %d)", name_of(firmware), firmware->pid,
		  info.si_code == CLD_EXITED ? "exit status" : "signal", info.si_status);
}

static void handle_death(struct board_event *event, uint32_t events)
{
	struct board_firmware *firmware = container_of(event, struct board_firmware, process);
	enum cordon_error error = firmware->cause ? firmware->cause : CORDON_ERROR_FIRMWARE_DIED;
	int process = firmware->process.fd, sock = firmware->socket.fd;
	bool restart = firmware->restart;
	unsigned int i;

	(void)events;
	bury(firmware);
	board_loop_del(firmware->board, &firmware->process);
	board_loop_del(firmware->board, &firmware->socket);
	close(process);
	if (sock >= 0)
		close(sock);
	drop_pending(firmware);
	while (!STAILQ_EMPTY(&firmware->queue))
		drop_packet(firmware);
	firmware->state = BOARD_FIRMWARE_DEAD;
	firmware->restart = false;
	for (i = 0; i < firmware->port_count; i++) {
		struct board_port *port = firmware->ports[i];

		port->irq.stale = false;
		board_wire_leave(port);
		/* A port that asked for a reset meanwhile gets what it asked for. */
		if (!restart || !port->regs.resetting || port->regs.reset_seq)
			board_regs_fail(port, error);
	}
	if (restart && board_firmware_start(firmware))
		for (i = 0; i < firmware->port_count; i++)
			board_regs_fail(firmware->ports[i], CORDON_ERROR_FIRMWARE_DIED);
	for (i = 0; i < firmware->port_count; i++)
		board_client_resume(firmware->ports[i], BOARD_SEQ_DEATH, 0);
}

/*
 * In the child: nothing is inherited but the socket and the standard streams, and no core file will
 * hold keys.
 */
static void run(const struct board *board, int sock, pid_t parent) __attribute__((noreturn));
static void run(const struct board *board, int sock, pid_t parent)
{
	static const struct rlimit no_core = { 0, 0 };
	sigset_t none;
	int null;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	signal(SIGALRM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0)
		_exit(127);
	if (sock == FW_IPC_FD ? fcntl(sock, F_SETFD, 0) < 0 : dup2(sock, FW_IPC_FD) < 0)
		_exit(127);
	if (close_range(FW_IPC_FD + 1, ~0u, 0))
		_exit(127);
	execl(board->firmware_path, "cordon-fw", (char *)NULL);
	_exit(127);
}

static int spawn(struct board_firmware *firmware, int *sock)
{
	int pair[2], process, ret;
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	firmware->pid = fork();
	if (firmware->pid == 0)
		run(firmware->board, pair[1], parent);
	ret = -errno;
	close(pair[1]);
	if (firmware->pid < 0)
		goto err_close;
	process = pidfd_open(firmware->pid, 0);
	if (process < 0) {
		ret = -errno;
		kill(firmware->pid, SIGKILL);
		waitpid(firmware->pid, NULL, 0);
		goto err_close;
	}
	fcntl(process, F_SETFD, FD_CLOEXEC);
	*sock = pair[0];
	return process;

err_close:
	close(pair[0]);
	return ret;
}

/**
 * board_firmware_start - start a process and tell it everything
 * @firmware: dead firmware
 *
 * It works when START is acknowledged; what is sent before waits in its socket.
 *
 * Context: loop.
 * Return: 0 or -errno.
 */
int board_firmware_start(struct board_firmware *firmware)
{
	struct fw_ipc_msg msg = { .type = FW_IPC_START };
	int process, sock = -1, ret;
	unsigned int i;

	process = spawn(firmware, &sock);
	if (process < 0)
		return process;
	firmware->process.handle = handle_death;
	firmware->socket.handle = handle_socket;
	ret = board_loop_add(firmware->board, &firmware->process, process, EPOLLIN);
	if (!ret)
		ret = board_loop_add(firmware->board, &firmware->socket, sock, EPOLLIN);
	if (ret)
		goto err_add;
	firmware->state = BOARD_FIRMWARE_STARTING;
	firmware->cause = CORDON_ERROR_NONE;
	firmware->generation++;
	firmware->start_deadline =
		board_loop_now() + (firmware->board->ready ? BOARD_START_MS : BOARD_FIRST_START_MS);
	for (i = 0; i < firmware->port_count; i++)
		add_port(firmware, firmware->ports[i]);
	if (add_pending(firmware, NULL, &msg, firmware->start_deadline))
		send_or_queue(firmware, &msg, NULL, 0, NULL);
	for (i = 0; i < firmware->port_count; i++) {
		board_irq_replay(firmware->ports[i]);
		board_dma_replay(firmware->ports[i]);
	}
	return 0;

err_add:
	pidfd_send_signal(process, SIGKILL, NULL, 0);
	waitpid(firmware->pid, NULL, 0);
	board_loop_del(firmware->board, &firmware->process);
	close(process);
	close(sock);
	return ret;
}

/* Answers come in order: each one shows that the firmware is on its way to this one. */
static uint64_t deadline_of(const struct board_firmware *firmware,
			    const struct board_pending *pending)
{
	uint64_t from = pending->from > firmware->progress ? pending->from : firmware->progress;

	if (!pending->step || from + pending->step > pending->deadline)
		return pending->deadline;
	return from + pending->step;
}

/**
 * board_firmware_deadline - when does the first time-out end?
 * @firmware: firmware
 *
 * Context: loop.
 * Return: time as of board_loop_now(), UINT64_MAX = never.
 */
uint64_t board_firmware_deadline(const struct board_firmware *firmware)
{
	const struct board_pending *pending;
	uint64_t deadline = UINT64_MAX;

	if (!board_firmware_is_alive(firmware))
		return deadline;
	TAILQ_FOREACH(pending, &firmware->timed, next_timed) {
		uint64_t other = deadline_of(firmware, pending);

		if (other < deadline)
			deadline = other;
	}
	return deadline;
}

/**
 * board_firmware_check - kill a firmware that is late
 * @firmware: firmware
 * @now: time
 *
 * If it was the board that was late, the answer lies in the socket.
 *
 * Context: loop.
 */
void board_firmware_check(struct board_firmware *firmware, uint64_t now)
{
	if (board_firmware_deadline(firmware) > now)
		return;
	while (board_firmware_deadline(firmware) <= now && !receive(firmware))
		;
	if (board_firmware_deadline(firmware) <= now)
		board_firmware_kill(firmware, CORDON_ERROR_FIRMWARE_HUNG);
}

static void stop(struct board_firmware *firmware, uint64_t deadline)
{
	struct pollfd end = { .fd = firmware->process.fd, .events = POLLIN };
	uint64_t now = board_loop_now();

	if (firmware->state == BOARD_FIRMWARE_DEAD)
		return;
	if (poll(&end, 1, now < deadline ? (int)(deadline - now) : 0) != 1)
		pidfd_send_signal(firmware->process.fd, SIGKILL, NULL, 0);
	waitpid(firmware->pid, NULL, 0);
	close(firmware->process.fd);
	firmware->state = BOARD_FIRMWARE_DEAD;
}

/**
 * board_firmware_stop_all - end all processes
 * @board: board
 *
 * The end of the socket is the signal to end; a firmware uses the time to wipe its keys.
 *
 * Context: after the loop.
 */
void board_firmware_stop_all(struct board *board)
{
	uint64_t deadline = board_loop_now() + FIRMWARE_STOP_MS;
	unsigned int i;

	for (i = 0; i < board->firmware_count; i++) {
		struct board_firmware *firmware = &board->firmwares[i];

		if (firmware->state == BOARD_FIRMWARE_DEAD)
			continue;
		if (firmware->socket.fd >= 0)
			close(firmware->socket.fd);
		drop_pending(firmware);
		while (!STAILQ_EMPTY(&firmware->queue))
			drop_packet(firmware);
	}
	for (i = 0; i < board->firmware_count; i++)
		stop(&board->firmwares[i], deadline);
}
