/* SPDX-License-Identifier: GPL-2.0-only */
/* Cordon: life of the queue pairs. */
#ifndef CORDON_QUEUE_H
#define CORDON_QUEUE_H

#include "cordon_txrx.h"

#define CORDON_QUEUE_LOG2_DEFAULT 10

/**
 * struct cordon_queue_cfg - what a user can choose of the queue pairs
 * @cnt: queue pairs
 * @tx_log2: log2 of the TX rings' entries
 * @rx_log2: log2 of the RX rings' entries
 */
struct cordon_queue_cfg {
	unsigned int cnt;
	u8 tx_log2;
	u8 rx_log2;
};

int cordon_queue_init(struct cordon_priv *priv);
void cordon_queue_exit(struct cordon_priv *priv);
void cordon_queue_schedule(const struct cordon_vector *vector);

int cordon_queue_open(struct cordon_priv *priv);
void cordon_queue_close(struct cordon_priv *priv);
int cordon_queue_reconfigure(struct cordon_priv *priv, const struct cordon_queue_cfg *cfg);
void cordon_queue_suspend(struct cordon_priv *priv);
int cordon_queue_resume(struct cordon_priv *priv);

int cordon_queue_sync_coalesce(struct cordon_priv *priv);
int cordon_queue_sync_rss(struct cordon_priv *priv);

#endif
