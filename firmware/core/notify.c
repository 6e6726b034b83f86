// SPDX-License-Identifier: BSD-3-Clause
/*
 * Interrupts and wake indices, see struct cordon_doorbell and struct cordon_wake.
 *
 * An interrupt whose vector has no eventfd at the moment stays due until it gets one, so that none
 * is lost while the guest sets up MSI-X.
 */
#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "core/notify.h"
#include "core/port.h"

/* As far from the producer index as an index can be. */
#define FAR_AWAY 0x80000000u

/**
 * fw_notify_init() - take a line into use; all indices are zero
 * @n: line
 * @port: function
 * @line: number in the doorbell page
 * @vector: interrupt vector, below the function's
 * @sq_size: entries of the first completion ring
 * @rx_size: entries of the second
 */
void fw_notify_init(struct fw_notify *n, struct fw_port *port, uint32_t line, uint32_t vector,
		    uint32_t sq_size, uint32_t rx_size)
{
	*n = (struct fw_notify){
		.port = port,
		.doorbell = &port->doorbells[line],
		.wake = &port->wakes[line],
		.vector = vector,
		.ring = { { .size = sq_size }, { .size = rx_size } },
	};
	n->event = FAR_AWAY;
	__atomic_store_n(&n->wake->sq_event, htole32(n->event), __ATOMIC_RELAXED);
}

/**
 * fw_notify_add() - an entry was written
 * @n: line
 * @side: to which ring
 * @now: time
 */
void fw_notify_add(struct fw_notify *n, enum fw_notify_side side, uint64_t now)
{
	struct fw_notify_ring *ring = &n->ring[side];

	ring->prod++;
	if (!ring->pending) {
		ring->pending = true;
		ring->first = now;
	}
}

/* Is an interrupt due for a ring that holds @fill entries? */
static bool ring_due(struct fw_notify_ring *ring, uint32_t fill, uint64_t now, uint64_t *deadline)
{
	if (!fill) {
		ring->pending = false;
		return false;
	}
	if (!ring->pending) {
		ring->pending = true;
		ring->first = now;
	}
	if (!ring->delay && !ring->frames)
		return true;
	if (ring->frames && fill >= ring->frames)
		return true;
	if (!ring->delay)
		return false;
	if (now - ring->first >= ring->delay)
		return true;
	if (ring->first + ring->delay < *deadline)
		*deadline = ring->first + ring->delay;
	return false;
}

static bool fire(const struct fw_notify *n)
{
	int fd = n->port->irqs[n->vector];
	uint64_t one = 1;
	ssize_t len;

	if (fd < 0)
		return false;
	len = write(fd, &one, sizeof(one));
	/* Only a counter that is full refuses, and then the interrupt is pending anyhow. */
	(void)len;
	return true;
}

/**
 * fw_notify_poll() - raise the line's interrupt if it is asked for and due
 * @n: line
 * @now: time
 * @deadline: brought forward to when moderation lets an interrupt through
 *
 * Return: 0, or -EINVAL if a consumer index is nonsense.
 */
int fw_notify_poll(struct fw_notify *n, uint64_t now, uint64_t *deadline)
{
	/* Pairs with the driver's barrier between the consumer indices and the arm word. */
	uint32_t arm = le32toh(__atomic_load_n(&n->doorbell->arm, __ATOMIC_ACQUIRE));
	uint32_t fill[FW_NOTIFY_SIDES];
	bool due = false;

	if (arm == n->served)
		return 0;
	fill[FW_NOTIFY_SQ] = n->ring[FW_NOTIFY_SQ].prod -
		le32toh(__atomic_load_n(&n->doorbell->sq_cons, __ATOMIC_RELAXED));
	fill[FW_NOTIFY_RX] = n->ring[FW_NOTIFY_RX].prod -
		le32toh(__atomic_load_n(&n->doorbell->rx_cons, __ATOMIC_RELAXED));
	for (uint32_t i = 0; i < FW_NOTIFY_SIDES; i++) {
		if (fill[i] > n->ring[i].size)
			return -EINVAL;
		due |= ring_due(&n->ring[i], fill[i], now, deadline);
	}
	if (due && fire(n)) {
		n->served = arm;
		n->ring[FW_NOTIFY_SQ].pending = false;
		n->ring[FW_NOTIFY_RX].pending = false;
	}
	return 0;
}

static void publish(struct fw_notify *n, uint32_t event)
{
	n->event = event;
	__atomic_store_n(&n->wake->sq_event, htole32(event), __ATOMIC_RELAXED);
}

/**
 * fw_notify_awake() - the worker looks at the line by itself
 * @n: line
 * @prod: producer index
 *
 * Cheap enough for each round: the wake page is written only if the index has come near.
 */
void fw_notify_awake(struct fw_notify *n, uint32_t prod)
{
	if (n->event - prod < FAR_AWAY / 2 || n->event - prod > FAR_AWAY + FAR_AWAY / 2)
		publish(n, prod + FAR_AWAY);
}

/**
 * fw_notify_sleep() - ask the driver to wake the worker
 * @n: line
 * @prod: producer index that the worker has seen
 *
 * The caller executes a full barrier behind it and looks at the producer index once more.
 */
void fw_notify_sleep(struct fw_notify *n, uint32_t prod)
{
	publish(n, prod);
}
