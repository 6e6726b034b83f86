// SPDX-License-Identifier: BSD-3-Clause
/* The epoll loop. */
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "board/board.h"

/**
 * board_loop_now - time
 *
 * Context: any.
 * Return: milliseconds of CLOCK_MONOTONIC.
 */
uint64_t board_loop_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/**
 * board_loop_add - take a file descriptor into the set
 * @board: board
 * @event: with handle set
 * @fd: file descriptor, stays the caller's
 * @events: EPOLL*
 *
 * Context: loop.
 * Return: 0 or -errno.
 */
int board_loop_add(struct board *board, struct board_event *event, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = event };

	if (epoll_ctl(board->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	event->fd = fd;
	event->events = events;
	return 0;
}

/**
 * board_loop_set - change what is waited for
 * @board: board
 * @event: in the set, or not (then nothing happens)
 * @events: EPOLL*
 *
 * Context: loop.
 */
void board_loop_set(struct board *board, struct board_event *event, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = event };

	if (event->fd < 0 || event->events == events)
		return;
	event->events = events;
	epoll_ctl(board->epoll_fd, EPOLL_CTL_MOD, event->fd, &ev);
}

/**
 * board_loop_del - take a file descriptor out of the set; it isn't closed
 * @board: board
 * @event: in the set, or not
 *
 * Context: loop.
 */
void board_loop_del(struct board *board, struct board_event *event)
{
	if (event->fd >= 0)
		epoll_ctl(board->epoll_fd, EPOLL_CTL_DEL, event->fd, NULL);
	event->fd = -1;
}

static int timeout_until(struct board *board, uint64_t deadline)
{
	uint64_t now = board_loop_now();
	unsigned int i;

	for (i = 0; i < board->firmware_count; i++) {
		uint64_t other = board_firmware_deadline(&board->firmwares[i]);

		if (other < deadline)
			deadline = other;
	}
	for (i = 0; i < board->port_count; i++) {
		uint64_t other = board->ports[i].listen_at;

		if (other && other < deadline)
			deadline = other;
	}
	if (deadline == UINT64_MAX)
		return -1;
	if (deadline <= now)
		return 0;
	return deadline - now < 60000 ? (int)(deadline - now) : 60000;
}

/**
 * board_loop_run_once - wait for one event, or a deadline, and handle it
 * @board: board
 * @deadline: return at this time, UINT64_MAX = never
 *
 * One event is taken at a time: a handler may close any other descriptor without leaving a stale
 * event behind. The kernel hands out level-triggered events in turn, so no port starves another.
 *
 * Context: loop.
 * Return: 0 or -errno.
 */
int board_loop_run_once(struct board *board, uint64_t deadline)
{
	struct epoll_event ev;
	unsigned int i;
	uint64_t now;
	int n;

	n = epoll_wait(board->epoll_fd, &ev, 1, timeout_until(board, deadline));
	if (n < 0 && errno != EINTR)
		return -errno;
	if (n > 0) {
		struct board_event *event = ev.data.ptr;

		event->handle(event, ev.events);
	}
	now = board_loop_now();
	for (i = 0; i < board->firmware_count; i++)
		board_firmware_check(&board->firmwares[i], now);
	for (i = 0; i < board->port_count; i++)
		if (board->ports[i].listen_at && board->ports[i].listen_at <= now)
			board_client_wait(&board->ports[i]);
	return 0;
}
