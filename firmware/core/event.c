// SPDX-License-Identifier: BSD-3-Clause
/*
 * The event ring. An event that doesn't fit is lost; the overflow is told as soon as there is room,
 * before any later event.
 */
#include <endian.h>
#include <stdbool.h>

#include "core/event.h"
#include "core/port.h"
#include "core/worker.h"

static bool event_write(struct fw_port *port, uint16_t type, uint32_t handle, uint64_t value)
{
	struct fw_notify_ring *ring = &port->admin.ring[FW_NOTIFY_RX];
	struct cordon_event event = {
		.type = htole16(type),
		.handle = htole32(handle),
		.value = htole64(value),
	};

	/* An index that is nonsense reads as full here; fw_notify_poll() judges it. */
	if (ring->prod - fw_notify_rx_cons(&port->admin) >= ring->size)
		return false;
	if (fw_mem_ring_write(&port->event_ring, ring->prod, &event)) {
		fw_port_fail(port, CORDON_ERROR_DMA);
		return false;
	}
	fw_notify_add(&port->admin, FW_NOTIFY_RX, port->worker->now);
	return true;
}

/**
 * fw_event_post() - tell the driver something
 * @port: function
 * @type: enum cordon_event_type
 * @handle: object that it is about
 * @value: see the type
 */
void fw_event_post(struct fw_port *port, uint16_t type, uint32_t handle, uint64_t value)
{
	if (!port->enabled)
		return;
	fw_event_poll(port);
	if (port->event_overflow || port->event_link_due || !event_write(port, type, handle, value))
		port->event_overflow = true;
}

/**
 * fw_event_poll() - tell an overflow that could not be told yet
 * @port: function
 *
 * The link's state goes with it: nothing but events tells it.
 */
void fw_event_poll(struct fw_port *port)
{
	if (!port->enabled)
		return;
	if (port->event_overflow && event_write(port, CORDON_EVENT_OVERFLOW, 0, 0)) {
		port->event_overflow = false;
		port->event_link_due = true;
	}
	if (port->event_link_due)
		port->event_link_due = !event_write(port, CORDON_EVENT_LINK, 0, port->link);
}
