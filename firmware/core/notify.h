/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbell lines: what the driver writes there, when an interrupt is due, and when the driver has
 * to wake the worker.
 */
#ifndef CORE_NOTIFY_H
#define CORE_NOTIFY_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include "cordon/regs.h"

struct fw_port;

/* The two completion rings of a line. Line 0: command completions and events. */
enum fw_notify_side {
	FW_NOTIFY_SQ = 0,
	FW_NOTIFY_RX = 1,
	FW_NOTIFY_SIDES,
};

/**
 * struct fw_notify_ring - a completion ring as interrupts see it
 * @prod: entries written
 * @size: entries of the ring
 * @delay: moderation: nanoseconds, 0 = not used
 * @frames: moderation: entries, 0 = not used
 * @first: when the first entry was written that no interrupt was raised for
 * @pending: there is such an entry
 */
struct fw_notify_ring {
	uint32_t prod;
	uint32_t size;
	uint64_t delay;
	uint32_t frames;
	bool pending;
	uint64_t first;
};

/**
 * struct fw_notify - a line in use
 * @port: function
 * @doorbell: the line in the doorbell page
 * @wake: the line in the wake page
 * @vector: interrupt vector
 * @served: value of the line's arm word for which an interrupt was raised
 * @event: wake index that was published
 * @ring: completion rings
 */
struct fw_notify {
	struct fw_port *port;
	const struct cordon_doorbell *doorbell;
	struct cordon_wake *wake;
	uint32_t vector;
	uint32_t served;
	uint32_t event;
	struct fw_notify_ring ring[FW_NOTIFY_SIDES];
};

void fw_notify_init(struct fw_notify *n, struct fw_port *port, uint32_t line, uint32_t vector,
		    uint32_t sq_size, uint32_t rx_size);
void fw_notify_add(struct fw_notify *n, enum fw_notify_side side, uint64_t now);
int fw_notify_poll(struct fw_notify *n, uint64_t now, uint64_t *deadline);
void fw_notify_awake(struct fw_notify *n, uint32_t prod);
void fw_notify_sleep(struct fw_notify *n, uint32_t prod);

/** fw_notify_sq_prod() - Return: the driver's producer index of the submission ring */
static inline uint32_t fw_notify_sq_prod(const struct fw_notify *n)
{
	/* Pairs with the driver's write barrier between ring and doorbell. */
	return le32toh(__atomic_load_n(&n->doorbell->sq_prod, __ATOMIC_ACQUIRE));
}

/** fw_notify_rx_prod() - Return: the driver's producer index of the RX buffer ring */
static inline uint32_t fw_notify_rx_prod(const struct fw_notify *n)
{
	return le32toh(__atomic_load_n(&n->doorbell->rx_prod, __ATOMIC_ACQUIRE));
}

/** fw_notify_rx_cons() - Return: the driver's consumer index of the RX completion or event ring */
static inline uint32_t fw_notify_rx_cons(const struct fw_notify *n)
{
	return le32toh(__atomic_load_n(&n->doorbell->rx_cons, __ATOMIC_ACQUIRE));
}

#endif
