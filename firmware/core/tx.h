/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_TX_H
#define CORE_TX_H

#include <stdbool.h>
#include <stdint.h>

struct fw_port;
struct fw_queue;
struct fw_tx;

struct fw_tx *fw_tx_alloc(void);
void fw_tx_free(struct fw_tx *tx);
bool fw_tx_poll(struct fw_port *port);
bool fw_tx_waits(struct fw_port *port);
bool fw_tx_is_held(const struct fw_port *port);
void fw_tx_forget(struct fw_port *port, const struct fw_queue *q);
void fw_tx_reset(struct fw_port *port);

#endif
