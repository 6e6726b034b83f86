// SPDX-License-Identifier: BSD-3-Clause
/*
 * The loop of a data thread.
 *
 * As long as there is work, and for SPIN nanoseconds after, the thread looks at all rings and wires
 * in turn and makes no system call but for interrupts (and for wires that are sockets). Then it
 * sleeps: it says in the wake page and to its wires that it has to be woken, executes a full
 * barrier, looks once more, and waits. Whoever moves an index executes a full barrier too before
 * reading whether the thread sleeps, so one of the two sees the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <urcu/arch.h>

#include "core/cmd.h"
#include "core/event.h"
#include "core/ipc.h"
#include "core/port.h"
#include "core/queue.h"
#include "core/rx.h"
#include "core/tx.h"
#include "core/worker.h"

#define SPIN 50000ull
/* The socket to the board and the links are looked at so often, however long the rounds are. */
#define CONTROL_PERIOD 50000ull
/* Frames that the wire didn't take, and events that didn't fit, are tried again after so long. */
#define RETRY_WIRE 1000000ull
#define RETRY_EVENT 10000000ull
#define NEVER UINT64_MAX
#define EVENTS_MAX 16
#define RX_SIZE (((uint32_t)FW_PKT_BUFFER + 63) & ~63u)

/**
 * fw_worker_clock() - monotonic nanoseconds
 *
 * Return: now.
 */
uint64_t fw_worker_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int watch(struct fw_worker *w, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/**
 * fw_worker_init() - set up a worker without ports
 * @w: worker, zeroed
 * @ipc: socket to the board
 *
 * Return: 0 or -errno.
 */
int fw_worker_init(struct fw_worker *w, int ipc)
{
	int ret;

	w->ipc = ipc;
	w->now = fw_worker_clock();
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return -errno;
	for (uint32_t i = 0; i < FW_WIRE_BURST; i++) {
		w->rx[i].size = FW_PKT_BUFFER;
		w->rx[i].buf = aligned_alloc(64, RX_SIZE);
		if (!w->rx[i].buf) {
			fw_worker_exit(w);
			return -ENOMEM;
		}
	}
	ret = watch(w, ipc, EPOLLIN);
	if (ret)
		fw_worker_exit(w);
	return ret;
}

/**
 * fw_worker_exit() - destroy the ports and free
 * @w: worker
 */
void fw_worker_exit(struct fw_worker *w)
{
	for (uint32_t i = 0; i < FW_IPC_PORTS_MAX; i++) {
		if (w->ports[i])
			fw_port_destroy(w->ports[i]);
		w->ports[i] = NULL;
	}
	for (uint32_t i = 0; i < FW_WIRE_BURST; i++)
		free(w->rx[i].buf);
	close(w->epoll);
}

/**
 * fw_worker_watch_port() - be woken by a port
 * @w: worker
 * @port: port
 *
 * Eventfds are watched for edges: each write wakes, and nobody has to read them.
 *
 * Return: 0 or -errno.
 */
int fw_worker_watch_port(struct fw_worker *w, struct fw_port *port)
{
	int ret = watch(w, port->kick, EPOLLIN | EPOLLET);

	if (!ret && port->wire->fd >= 0)
		ret = watch(w, port->wire->fd,
			    EPOLLIN | (port->wire->edge ? (uint32_t)EPOLLET : 0));
	return ret;
}

static void line_poll(struct fw_queue *q, uint64_t now, uint64_t *deadline)
{
	if (!q->stopped && fw_notify_poll(&q->notify, now, deadline))
		fw_queue_stop(q, CORDON_RESULT_BAD_DESC);
}

/* Raise the interrupts of queue pairs that are due, and post the events that come of it. */
static void notify_queues(struct fw_port *port, uint64_t now, uint64_t *deadline)
{
	for (uint32_t i = 0; i < CORDON_QUEUE_PAIRS_MAX; i++) {
		if (port->queues[i])
			line_poll(port->queues[i], now, deadline);
	}
	fw_event_poll(port);
}

/* The event line comes last. */
static void notify_admin(struct fw_port *port, uint64_t now, uint64_t *deadline)
{
	if (fw_notify_poll(&port->admin, now, deadline))
		fw_port_fail(port, CORDON_ERROR_BAD_RINGS);
}

static bool poll_port(struct fw_port *port, uint64_t now)
{
	uint64_t deadline = NEVER;
	bool work = false;

	if (fw_port_works(port)) {
		work |= fw_cmd_poll(port);
		work |= fw_tx_poll(port);
	}
	work |= fw_rx_poll(port);
	if (fw_port_works(port)) {
		notify_queues(port, now, &deadline);
		notify_admin(port, now, &deadline);
	}
	return work;
}

static bool poll_all(struct fw_worker *w)
{
	bool work = false;

	for (uint32_t i = 0; i < FW_IPC_PORTS_MAX; i++) {
		if (w->ports[i])
			work |= poll_port(w->ports[i], w->now);
	}
	return work;
}

static void control(struct fw_worker *w)
{
	w->controlled = w->now;
	fw_ipc_poll(w);
	for (uint32_t i = 0; i < FW_IPC_PORTS_MAX; i++) {
		if (w->ports[i])
			fw_port_poll_link(w->ports[i], w->now);
	}
}

static void wake_indices_publish(struct fw_port *port)
{
	fw_notify_sleep(&port->admin, port->cmd_cons);
	/* Frames that wait for the wire wait for nothing else. */
	if (fw_tx_is_held(port))
		return;
	for (uint32_t i = 0; i < CORDON_QUEUE_PAIRS_MAX; i++) {
		struct fw_queue *q = port->queues[i];

		if (q && !q->stopped)
			fw_notify_sleep(&q->notify, q->tx_cons);
	}
}

static void wake_indices_withdraw(struct fw_port *port)
{
	fw_notify_awake(&port->admin, port->cmd_cons);
	for (uint32_t i = 0; i < CORDON_QUEUE_PAIRS_MAX; i++) {
		struct fw_queue *q = port->queues[i];

		if (q)
			fw_notify_awake(&q->notify, q->tx_cons);
	}
}

static void bring_forward(uint64_t *deadline, uint64_t at)
{
	if (at < *deadline)
		*deadline = at;
}

/* Ask to be woken for a port; Return: true if there is work already. */
static bool doze_port(struct fw_port *port, uint64_t now, uint64_t *deadline)
{
	bool work;

	fw_capture_flush(port->capture);
	work = port->wire->ops->sleep(port->wire);
	if (port->wire->link_period)
		bring_forward(deadline, now + port->wire->link_period);
	if (!fw_port_works(port))
		return work;
	wake_indices_publish(port);
	/* Pairs with the driver's barrier between doorbell and wake index. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	work |= fw_cmd_waits(port) || fw_tx_waits(port);
	notify_queues(port, now, deadline);
	/*
	 * An event that was posted just now: either the arm word is seen here, or the driver, which
	 * executes a barrier behind arming, sees the event. There is no next round to look again.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	notify_admin(port, now, deadline);
	bring_forward(deadline, fw_reassembly_deadline(port->reassembly));
	if (fw_tx_is_held(port))
		bring_forward(deadline, now + RETRY_WIRE);
	if (port->event_overflow || port->event_link_due)
		bring_forward(deadline, now + RETRY_EVENT);
	return work;
}

/* Take the error of a socket back, so that it isn't reported again; Return: false if it's none. */
static bool error_clear(int fd)
{
	socklen_t len = sizeof(int);
	int error;

	return !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

/*
 * A file descriptor that only reports failure, as that of a TAP interface that is gone, must not
 * keep the thread awake. A socket reports an error once, as of a peer that let go of it with frames
 * unread, and lives on.
 */
static void unwatch_dead(struct fw_worker *w, const struct epoll_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		uint32_t what = events[i].events;
		int fd = events[i].data.fd;

		if (what & EPOLLIN || fd == w->ipc)
			continue;
		if (what & EPOLLHUP || !error_clear(fd))
			epoll_ctl(w->epoll, EPOLL_CTL_DEL, fd, NULL);
	}
}

static int wait_events(struct fw_worker *w, uint64_t deadline)
{
	struct epoll_event events[EVENTS_MAX];
	struct timespec ts = { 0 };
	int count;

	if (deadline != NEVER && deadline > w->now) {
		ts.tv_sec = (time_t)((deadline - w->now) / 1000000000u);
		ts.tv_nsec = (long)((deadline - w->now) % 1000000000u);
	}
	count = epoll_pwait2(w->epoll, events, EVENTS_MAX, deadline == NEVER ? NULL : &ts, NULL);
	unwatch_dead(w, events, count);
	return count;
}

/* Sleep until something happens; Return: true if something did. */
static bool doze(struct fw_worker *w)
{
	uint64_t deadline = NEVER;
	bool work = false;

	for (uint32_t i = 0; i < FW_IPC_PORTS_MAX && w->started; i++) {
		if (w->ports[i])
			work |= doze_port(w->ports[i], w->now, &deadline);
	}
	if (!work)
		work = wait_events(w, deadline) > 0;
	w->now = fw_worker_clock();
	for (uint32_t i = 0; i < FW_IPC_PORTS_MAX && w->started; i++) {
		struct fw_port *port = w->ports[i];

		if (!port)
			continue;
		port->wire->ops->wake(port->wire);
		if (fw_port_works(port))
			wake_indices_withdraw(port);
	}
	control(w);
	return work;
}

/**
 * fw_worker_run() - work until the board closes its socket
 * @w: worker
 * @end: set by a signal: end as well
 */
void fw_worker_run(struct fw_worker *w, const volatile sig_atomic_t *end)
{
	uint64_t last = fw_worker_clock();

	while (!w->stop && !*end) {
		w->now = fw_worker_clock();
		if (w->now - w->controlled >= CONTROL_PERIOD)
			control(w);
		if (w->started && poll_all(w)) {
			last = w->now;
			continue;
		}
		if (w->started && w->now - last < SPIN) {
			caa_cpu_relax();
			continue;
		}
		if (doze(w))
			last = w->now;
	}
}
