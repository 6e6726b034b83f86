// SPDX-License-Identifier: BSD-3-Clause
/*
 * Queue pairs: their life, and what is written into their completion rings.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "core/event.h"
#include "core/port.h"
#include "core/queue.h"
#include "core/tx.h"
#include "core/worker.h"
#include "path/cfg.h"

#define MODERATE_USECS_MAX 1000000u
#define MODERATE_FRAMES_MAX 65535u

static bool log2_ok(uint8_t log2)
{
	return log2 >= CORDON_RING_LOG2_MIN && log2 <= CORDON_RING_LOG2_MAX;
}

static uint16_t cfg_check(const struct fw_port *port, const struct cordon_queue_pair_cfg *cfg,
			  struct cordon_cmd_completion *done)
{
	uint16_t pairs = le16toh(port->port_cap.queue_pairs);

	if (cfg->reserved)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	if (le16toh(cfg->index) >= pairs)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_HANDLE, 0,
				     pairs - 1u);
	if (le16toh(cfg->vector) >= port->vectors)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_VECTOR, 0,
				     port->vectors - 1u);
	if (!log2_ok(cfg->tx_log2) || !log2_ok(cfg->rx_log2))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RING,
				     CORDON_RING_LOG2_MIN, CORDON_RING_LOG2_MAX);
	if (port->queues[le16toh(cfg->index)])
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_EXISTS, CORDON_PARAM_HANDLE, 0,
				     pairs - 1u);
	return CORDON_CMD_STATUS_OK;
}

static void queue_free(struct fw_queue *q)
{
	fw_mem_ring_exit(&q->tx_ring);
	fw_mem_ring_exit(&q->tx_cq);
	fw_mem_ring_exit(&q->rx_ring);
	fw_mem_ring_exit(&q->rx_cq);
	free(q);
}

static int rings_init(struct fw_queue *q, const struct cordon_queue_pair_cfg *cfg)
{
	struct fw_mem *mem = &q->port->mem;
	int ret;

	ret = fw_mem_ring_init(&q->tx_ring, mem, le64toh(cfg->tx_ring), cfg->tx_log2,
			       sizeof(struct cordon_tx_desc), false);
	if (!ret)
		ret = fw_mem_ring_init(&q->tx_cq, mem, le64toh(cfg->tx_cq), cfg->tx_log2,
				       sizeof(struct cordon_tx_completion), true);
	if (!ret)
		ret = fw_mem_ring_init(&q->rx_ring, mem, le64toh(cfg->rx_ring), cfg->rx_log2,
				       sizeof(struct cordon_rx_desc), false);
	if (!ret)
		ret = fw_mem_ring_init(&q->rx_cq, mem, le64toh(cfg->rx_cq), cfg->rx_log2,
				       sizeof(struct cordon_rx_completion), true);
	return ret;
}

/**
 * fw_queue_create() - CORDON_CMD_QUEUE_PAIR_CREATE
 * @port: function
 * @cfg: configuration, a private copy
 * @done: says what was refused
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_queue_create(struct fw_port *port, const struct cordon_queue_pair_cfg *cfg,
			 struct cordon_cmd_completion *done)
{
	uint16_t status = cfg_check(port, cfg, done);
	struct fw_queue *q;
	int ret;

	if (status)
		return status;
	q = calloc(1, sizeof(*q));
	if (!q)
		return CORDON_CMD_STATUS_NO_MEMORY;
	q->port = port;
	q->index = le16toh(cfg->index);
	ret = rings_init(q, cfg);
	if (ret) {
		queue_free(q);
		if (ret == -ENOMEM)
			return CORDON_CMD_STATUS_NO_MEMORY;
		status = ret == -EFAULT ? CORDON_CMD_STATUS_DMA : CORDON_CMD_STATUS_INVALID;
		return fw_cfg_refuse(done, status, CORDON_PARAM_RING, 0, 0);
	}
	fw_notify_init(&q->notify, port, CORDON_LINE_QUEUE_PAIR(q->index), le16toh(cfg->vector),
		       fw_mem_ring_entries(&q->tx_cq), fw_mem_ring_entries(&q->rx_cq));
	port->queues[q->index] = q;
	return CORDON_CMD_STATUS_OK;
}

/**
 * fw_queue_destroy() - CORDON_CMD_QUEUE_PAIR_DESTROY
 * @port: function
 * @index: the pair
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_queue_destroy(struct fw_port *port, uint32_t index)
{
	struct fw_queue *q;

	if (index >= CORDON_QUEUE_PAIRS_MAX || !port->queues[index])
		return CORDON_CMD_STATUS_NOT_FOUND;
	q = port->queues[index];
	fw_tx_forget(port, q);
	port->queues[index] = NULL;
	queue_free(q);
	return CORDON_CMD_STATUS_OK;
}

/**
 * fw_queue_destroy_all() - destroy all queue pairs of a function
 * @port: function
 */
void fw_queue_destroy_all(struct fw_port *port)
{
	for (uint32_t i = 0; i < CORDON_QUEUE_PAIRS_MAX; i++)
		fw_queue_destroy(port, i);
}

/* More frames than the ring holds would never be there. */
static void moderate(struct fw_notify_ring *ring, uint32_t usecs, uint32_t frames)
{
	ring->delay = usecs * 1000ull;
	ring->frames = frames < ring->size / 2 ? frames : ring->size / 2;
}

/**
 * fw_queue_moderate() - CORDON_CMD_QUEUE_PAIR_MODERATE
 * @port: function
 * @arg: arguments of the command
 * @done: says what was refused
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_queue_moderate(struct fw_port *port, const uint64_t *arg,
			   struct cordon_cmd_completion *done)
{
	uint32_t tx_usecs = (uint32_t)arg[3];
	uint32_t tx_frames = (uint32_t)(arg[3] >> 32);
	struct fw_queue *q;

	if (arg[0] >= CORDON_QUEUE_PAIRS_MAX || !port->queues[arg[0]])
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_NOT_FOUND, CORDON_PARAM_HANDLE, 0, 0);
	if (arg[1] > MODERATE_USECS_MAX || tx_usecs > MODERATE_USECS_MAX)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_NONE, 0,
				     MODERATE_USECS_MAX);
	if (arg[2] > MODERATE_FRAMES_MAX || tx_frames > MODERATE_FRAMES_MAX)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_NONE, 0,
				     MODERATE_FRAMES_MAX);
	q = port->queues[arg[0]];
	moderate(&q->notify.ring[FW_NOTIFY_RX], (uint32_t)arg[1], (uint32_t)arg[2]);
	moderate(&q->notify.ring[FW_NOTIFY_SQ], tx_usecs, tx_frames);
	return CORDON_CMD_STATUS_OK;
}

/**
 * fw_queue_stop() - the pair broke the contract or its memory is gone
 * @q: pair
 * @why: for the event
 */
void fw_queue_stop(struct fw_queue *q, enum cordon_result why)
{
	if (q->stopped)
		return;
	q->stopped = true;
	/* Nobody looks at the ring any more: the driver need not wake us. */
	fw_notify_awake(&q->notify, q->tx_prod);
	fw_event_post(q->port, CORDON_EVENT_QUEUE_ERROR, q->index, why);
}

/**
 * fw_queue_tx_avail() - slots that the driver has given
 * @q: pair
 *
 * Return: slots, 0 if the pair is stopped.
 */
uint32_t fw_queue_tx_avail(struct fw_queue *q)
{
	uint32_t prod;

	if (q->stopped)
		return 0;
	prod = fw_notify_sq_prod(&q->notify);
	if (prod - q->tx_cons > fw_mem_ring_entries(&q->tx_ring)) {
		fw_queue_stop(q, CORDON_RESULT_BAD_DESC);
		return 0;
	}
	q->tx_prod = prod;
	return prod - q->tx_cons;
}

/**
 * fw_queue_rx_avail() - buffers that the driver has given
 * @q: pair
 *
 * Return: buffers, 0 if the pair is stopped.
 */
uint32_t fw_queue_rx_avail(struct fw_queue *q)
{
	uint32_t avail;

	if (q->stopped)
		return 0;
	avail = fw_notify_rx_prod(&q->notify) - q->rx_cons;
	if (avail > fw_mem_ring_entries(&q->rx_ring)) {
		fw_queue_stop(q, CORDON_RESULT_BAD_DESC);
		return 0;
	}
	return avail;
}

/**
 * fw_queue_tx_complete() - give a packet back
 * @q: pair
 * @slot: its first slot
 * @result: what became of it
 * @segments: frames that left
 */
void fw_queue_tx_complete(struct fw_queue *q, uint32_t slot, enum cordon_result result,
			  uint32_t segments)
{
	struct cordon_tx_completion done = {
		.slot = htole32(slot),
		.result = htole16((uint16_t)result),
		.segments = htole16((uint16_t)segments),
	};

	if (q->stopped)
		return;
	if (fw_mem_ring_write(&q->tx_cq, q->notify.ring[FW_NOTIFY_SQ].prod, &done)) {
		fw_queue_stop(q, CORDON_RESULT_DMA);
		return;
	}
	fw_notify_add(&q->notify, FW_NOTIFY_SQ, q->port->worker->now);
}

/**
 * fw_queue_rx_complete() - hand a packet to the driver
 * @q: pair
 * @done: completion of each buffer of the packet
 * @count: buffers
 *
 * The first completion is written last, so that the driver sees a packet of several buffers all at
 * once.
 *
 * Return: 0, or -EFAULT; then the pair is stopped.
 */
int fw_queue_rx_complete(struct fw_queue *q, const struct cordon_rx_completion *done,
			 uint32_t count)
{
	uint32_t prod = q->notify.ring[FW_NOTIFY_RX].prod;

	for (uint32_t i = count; i--;) {
		if (fw_mem_ring_write(&q->rx_cq, prod + i, &done[i])) {
			fw_queue_stop(q, CORDON_RESULT_DMA);
			return -EFAULT;
		}
	}
	q->rx_cons += count;
	for (uint32_t i = 0; i < count; i++)
		fw_notify_add(&q->notify, FW_NOTIFY_RX, q->port->worker->now);
	return 0;
}
