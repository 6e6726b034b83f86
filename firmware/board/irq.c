// SPDX-License-Identifier: BSD-3-Clause
/*
 * Interrupts: eventfds of the client, handed on to the firmware, which raises them by itself. The
 * board raises vector 0 when the firmware is gone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "board/board.h"

#define IRQ_ACTIONS VFIO_IRQ_SET_ACTION_TYPE_MASK
#define IRQ_DATA VFIO_IRQ_SET_DATA_TYPE_MASK

/**
 * board_irq_init - no eventfds
 * @irq: interrupts
 *
 * Context: loop.
 */
void board_irq_init(struct board_irq *irq)
{
	unsigned int i;

	for (i = 0; i < CORDON_VECTORS_MAX; i++)
		irq->vectors[i] = -1;
	irq->error = -1;
	irq->request = -1;
	irq->stale = false;
}

/**
 * board_irq_count - vectors of an interrupt type
 * @port: port
 * @index: type, VFIO_PCI_*_IRQ_INDEX
 *
 * Context: loop.
 * Return: how many.
 */
uint32_t board_irq_count(const struct board_port *port, uint32_t index)
{
	switch (index) {
	case VFIO_PCI_MSI_IRQ_INDEX:
		return port->board->options.msi ? port->vectors : 0;
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return port->board->options.msi ? 0 : port->vectors;
	case VFIO_PCI_ERR_IRQ_INDEX:
	case VFIO_PCI_REQ_IRQ_INDEX:
		return 1;
	default:
		return 0;
	}
}

static int *slot(struct board_port *port, uint32_t index, uint32_t vector)
{
	if (index == VFIO_PCI_ERR_IRQ_INDEX)
		return &port->irq.error;
	if (index == VFIO_PCI_REQ_IRQ_INDEX)
		return &port->irq.request;
	return &port->irq.vectors[vector];
}

static bool is_vector(uint32_t index)
{
	return index == VFIO_PCI_MSI_IRQ_INDEX || index == VFIO_PCI_MSIX_IRQ_INDEX;
}

static void set_slot(int *at, int fd)
{
	if (*at >= 0)
		close(*at);
	*at = fd;
}

/*
 * A vector without eventfd is given one that nobody reads: the firmware knows only "all gone" and
 * "these".
 */
static void tell_vectors(struct board_port *port, uint32_t first, uint32_t count)
{
	int fds[FW_IPC_FDS_MAX];

	while (count) {
		struct fw_ipc_msg msg = { .type = FW_IPC_IRQ_SET };
		uint32_t i, n = count < FW_IPC_FDS_MAX ? count : FW_IPC_FDS_MAX;

		for (i = 0; i < n; i++) {
			int fd = port->irq.vectors[first + i];

			fds[i] = fd >= 0 ? fd : port->nowhere_fd;
		}
		msg.irq.first = first;
		msg.irq.count = n;
		board_firmware_tell_irqs(port, &msg, fds, n);
		first += n;
		count -= n;
	}
}

static void tell_none(struct board_port *port)
{
	struct fw_ipc_msg msg = { .type = FW_IPC_IRQ_SET };

	board_firmware_tell_irqs(port, &msg, NULL, 0);
}

/* Anything else than an eventfd could block whoever writes to it, or worse. */
static int check_eventfds(const int *fds, unsigned int count)
{
	static const char expected[] = "anon_inode:[eventfd]";
	char path[64], link[64];
	unsigned int i;

	for (i = 0; i < count; i++) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		len = readlink(path, link, sizeof(link));
		if (len != (ssize_t)strlen(expected) ||
		    memcmp(link, expected, strlen(expected)) != 0)
			return -EINVAL;
	}
	return 0;
}

static int check_set(const struct board_port *port, const struct vfio_user_irq_set *set,
		     unsigned int fd_count)
{
	uint32_t action = set->flags & IRQ_ACTIONS, data = set->flags & IRQ_DATA;
	uint32_t vectors;

	if (set->flags & ~(IRQ_ACTIONS | IRQ_DATA) || set->index >= VFIO_USER_IRQS)
		return -EINVAL;
	/* Nothing can be masked: MSI-X is masked where its table is, in the hypervisor. */
	if (action != VFIO_IRQ_SET_ACTION_TRIGGER)
		return -EINVAL;
	if (data != VFIO_IRQ_SET_DATA_NONE && data != VFIO_IRQ_SET_DATA_EVENTFD)
		return -EINVAL;
	if (data == VFIO_IRQ_SET_DATA_NONE && fd_count)
		return -EINVAL;
	if (!set->count)
		return set->start || data != VFIO_IRQ_SET_DATA_NONE ? -EINVAL : 0;
	vectors = board_irq_count(port, set->index);
	if (set->start >= vectors || set->count > vectors - set->start)
		return -EINVAL;
	return fd_count && fd_count != set->count ? -EINVAL : 0;
}

static void disable_all(struct board_port *port, uint32_t index)
{
	uint32_t i, vectors = board_irq_count(port, index);

	for (i = 0; i < vectors; i++)
		set_slot(slot(port, index, i), -1);
	if (is_vector(index) && vectors)
		tell_none(port);
}

/**
 * board_irq_set - set, take away or raise interrupts
 * @port: port
 * @set: from the client, not yet checked
 * @fds: its file descriptors; -1 for those that were taken
 * @fd_count: how many
 *
 * With eventfds as data but none in the message the vectors lose theirs. QEMU sets vectors 0 to n
 * again for each n: each time is independent of the last one.
 *
 * Context: loop.
 * Return: 0 or -errno.
 */
int board_irq_set(struct board_port *port, const struct vfio_user_irq_set *set, int *fds,
		  unsigned int fd_count)
{
	bool eventfds = set->flags & VFIO_IRQ_SET_DATA_EVENTFD;
	uint32_t i;
	int ret;

	ret = check_set(port, set, fd_count);
	if (!ret)
		ret = check_eventfds(fds, fd_count);
	if (ret)
		return ret;
	if (!set->count) {
		disable_all(port, set->index);
		return 0;
	}
	for (i = 0; i < set->count; i++) {
		int *at = slot(port, set->index, set->start + i);

		if (!eventfds) {
			board_irq_signal(*at);
			continue;
		}
		set_slot(at, fd_count ? fds[i] : -1);
		if (fd_count)
			fds[i] = -1;
	}
	if (eventfds && is_vector(set->index))
		tell_vectors(port, set->start, set->count);
	return 0;
}

/**
 * board_irq_clear - all eventfds are gone
 * @port: port
 *
 * Context: loop.
 */
void board_irq_clear(struct board_port *port)
{
	disable_all(port,
		    port->board->options.msi ? VFIO_PCI_MSI_IRQ_INDEX : VFIO_PCI_MSIX_IRQ_INDEX);
	set_slot(&port->irq.error, -1);
	set_slot(&port->irq.request, -1);
}

/**
 * board_irq_replay - tell the firmware all vectors
 * @port: port
 *
 * Context: loop.
 */
void board_irq_replay(struct board_port *port)
{
	uint32_t i;

	port->irq.stale = false;
	for (i = 0; i < port->vectors; i++) {
		if (port->irq.vectors[i] >= 0) {
			tell_vectors(port, 0, port->vectors);
			return;
		}
	}
	tell_none(port);
}

/**
 * board_irq_raise - raise vectors
 * @port: port
 * @first: first vector
 * @count: vectors
 *
 * Context: loop.
 */
void board_irq_raise(struct board_port *port, uint32_t first, uint32_t count)
{
	uint32_t i;

	for (i = first; i < first + count && i < port->vectors; i++)
		board_irq_signal(port->irq.vectors[i]);
}

/**
 * board_irq_signal - write to an eventfd
 * @fd: eventfd, or -1: nothing happens
 *
 * Others hold the same eventfd, so its flags and its counter aren't to be trusted: a write to a
 * full one may block. One that is full is pending anyhow. Should it be filled behind poll()'s back,
 * the interval timer interrupts the write (SIGALRM has a handler without SA_RESTART); it fires
 * again and again, so that no moment is missed.
 *
 * Context: loop.
 */
void board_irq_signal(int fd)
{
	static const struct itimerval on = { { 0, 1000 }, { 0, 1000 } }, off;
	static const uint64_t one = 1;
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	if (fd < 0 || poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
		return;
	setitimer(ITIMER_REAL, &on, NULL);
	if (write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		board_log(BOARD_LOG_DEBUG, "eventfd: %s", strerror(errno));
	setitimer(ITIMER_REAL, &off, NULL);
}
