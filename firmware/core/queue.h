/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "cordon/cmd.h"
#include "cordon/ring.h"
#include "core/mem.h"
#include "core/notify.h"

struct fw_port;

/**
 * struct fw_queue - a queue pair
 * @port: function
 * @index: number of the pair
 * @stopped: it broke the contract; only destroying it helps
 * @notify: its doorbell line
 * @tx_ring: slots
 * @tx_cq: completions
 * @rx_ring: buffers
 * @rx_cq: completions
 * @tx_prod: the driver's producer index, as it was last read and checked
 * @tx_cons: slots taken
 * @rx_cons: buffers taken
 */
struct fw_queue {
	struct fw_port *port;
	uint32_t index;
	bool stopped;
	struct fw_notify notify;
	struct fw_mem_ring tx_ring;
	struct fw_mem_ring tx_cq;
	struct fw_mem_ring rx_ring;
	struct fw_mem_ring rx_cq;
	uint32_t tx_prod;
	uint32_t tx_cons;
	uint32_t rx_cons;
};

uint16_t fw_queue_create(struct fw_port *port, const struct cordon_queue_pair_cfg *cfg,
			 struct cordon_cmd_completion *done);
uint16_t fw_queue_destroy(struct fw_port *port, uint32_t index);
uint16_t fw_queue_moderate(struct fw_port *port, const uint64_t *arg,
			   struct cordon_cmd_completion *done);
void fw_queue_destroy_all(struct fw_port *port);
void fw_queue_stop(struct fw_queue *q, enum cordon_result why);
uint32_t fw_queue_tx_avail(struct fw_queue *q);
uint32_t fw_queue_rx_avail(struct fw_queue *q);
void fw_queue_tx_complete(struct fw_queue *q, uint32_t slot, enum cordon_result result,
			  uint32_t segments);
int fw_queue_rx_complete(struct fw_queue *q, const struct cordon_rx_completion *done,
			 uint32_t count);

#endif
