/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Cordon: events.
 *
 * The card writes events into a ring of the host; the driver tells by rx_cons of doorbell line 0
 * how far it has read. When the ring is full the card keeps CORDON_EVENT_OVERFLOW until there is
 * room and drops the rest: the driver then looks at everything that events tell (state blocks of
 * the SAs) by itself; the link's state follows.
 */
#ifndef CORDON_EVENT_H
#define CORDON_EVENT_H

#include "abi.h"

/**
 * struct cordon_event - an entry of the event ring
 * @type: enum cordon_event_type
 * @reserved0: zero
 * @handle: object that it is about
 * @value: see the type
 * @reserved: zero
 * @reserved1: zero
 * @valid: CORDON_COMPLETION_VALID, the rest zero
 */
struct cordon_event {
	__le16 type;
	__le16 reserved0;
	__le32 handle;
	__le64 value;
	__le64 reserved;
	__le32 reserved1;
	__le32 valid;
};
CORDON_ABI_SIZE(struct cordon_event, 32);

/**
 * enum cordon_event_type - events
 * @CORDON_EVENT_LINK: @value is 1 when the wire has another end, else 0. Sent at once when the
 *	function is enabled, at changes, and behind CORDON_EVENT_OVERFLOW
 * @CORDON_EVENT_OVERFLOW: events were lost
 * @CORDON_EVENT_QUEUE_ERROR: queue pair @handle broke the contract or its memory can't be
 *	reached, and is stopped; @value is enum cordon_result. Only destroying it helps
 * @CORDON_EVENT_SA_FIRST_USE: a packet used SA @handle for the first time
 * @CORDON_EVENT_SA_SOFT: SA @handle has reached a soft limit
 * @CORDON_EVENT_SA_HARD: SA @handle has reached a hard limit: it takes no more packets
 * @CORDON_EVENT_SA_EXHAUSTED: SA @handle has no sequence numbers left
 * @CORDON_EVENT_SA_NEIGHBOUR: a packet of SA @handle was dropped because its next hop isn't
 *	resolved. Sent once until CORDON_CMD_SA_UPDATE
 */
enum cordon_event_type {
	CORDON_EVENT_LINK = 1,
	CORDON_EVENT_OVERFLOW = 2,
	CORDON_EVENT_QUEUE_ERROR = 3,
	CORDON_EVENT_SA_FIRST_USE = 16,
	CORDON_EVENT_SA_SOFT = 17,
	CORDON_EVENT_SA_HARD = 18,
	CORDON_EVENT_SA_EXHAUSTED = 19,
	CORDON_EVENT_SA_NEIGHBOUR = 20,
};

#endif
