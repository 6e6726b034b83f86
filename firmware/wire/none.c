// SPDX-License-Identifier: BSD-3-Clause
/* A port that isn't plugged into anything. */
#include <errno.h>
#include <stdlib.h>

#include "wire/wire.h"

static uint32_t none_tx(struct fw_wire *wire, struct fw_pkt **pkts, uint32_t count)
{
	(void)wire;
	for (uint32_t i = 0; i < count; i++)
		pkts[i]->result = CORDON_RESULT_LINK_DOWN;
	return count;
}

static uint32_t none_rx(struct fw_wire *wire, struct fw_pkt *pkts, uint32_t count)
{
	(void)wire;
	(void)pkts;
	(void)count;
	return 0;
}

static bool none_poll_link(struct fw_wire *wire, uint64_t now)
{
	(void)wire;
	(void)now;
	return false;
}

static bool none_sleep(struct fw_wire *wire)
{
	(void)wire;
	return false;
}

static void none_wake(struct fw_wire *wire)
{
	(void)wire;
}

static void none_destroy(struct fw_wire *wire)
{
	free(wire);
}

static const struct fw_wire_ops none_ops = {
	.name = "none",
	.tx = none_tx,
	.rx = none_rx,
	.poll_link = none_poll_link,
	.sleep = none_sleep,
	.wake = none_wake,
	.destroy = none_destroy,
};

/**
 * fw_wire_none_create() - a wire without another end
 * @out: the wire
 *
 * Return: 0 or -ENOMEM.
 */
int fw_wire_none_create(struct fw_wire **out)
{
	struct fw_wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		return -ENOMEM;
	wire->ops = &none_ops;
	wire->fd = -1;
	*out = wire;
	return 0;
}
