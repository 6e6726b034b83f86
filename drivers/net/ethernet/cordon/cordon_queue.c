// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: life of the queue pairs.
 *
 * Rings are made before old ones are let go of, and the interface stays up while they change: a
 * dev_close() would make the stack flush its SAs. From outside in:
 *
 *   open/close		rings, NAPI instances and the card's queue pairs come and go
 *   reconfigure	other rings, another number of them
 *   suspend/resume	around a reset of the device: rings stay, the card forgets them
 *
 * While queues_up is not set, the card has no queue pairs, or can't reach memory: only then may
 * rings be freed or rewound. Whoever stops the queues sees to it, before he gives up RTNL, by
 * destroying the pairs or by resetting the card.
 *
 * Packets that were on their way to the card when a ring stops are dropped and counted as stopped.
 */

#include <linux/ethtool.h>
#include <linux/interrupt.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/page_pool/helpers.h>

#include "cordon_hw.h"
#include "cordon_queue.h"

/* Rings of all queue pairs. */
struct queue_set {
	struct cordon_queue_cfg cfg;
	struct cordon_tx_ring *tx[CORDON_QUEUE_PAIRS_MAX];
	struct cordon_rx_ring *rx[CORDON_QUEUE_PAIRS_MAX];
};

static void free_set(struct cordon_priv *priv, struct queue_set *set)
{
	unsigned int i;

	for (i = 0; i < set->cfg.cnt; i++) {
		cordon_txrx_free_rx(&priv->qps[i], set->rx[i]);
		cordon_txrx_free_tx(&priv->qps[i], set->tx[i]);
	}
	kfree(set);
}

static struct queue_set *alloc_set(struct cordon_priv *priv, const struct cordon_queue_cfg *cfg)
{
	struct queue_set *set;
	unsigned int i;

	set = kzalloc_obj(*set, GFP_KERNEL);
	if (!set)
		return NULL;
	set->cfg = *cfg;
	for (i = 0; i < cfg->cnt; i++) {
		set->tx[i] = cordon_txrx_alloc_tx(&priv->qps[i], cfg->tx_log2);
		set->rx[i] = cordon_txrx_alloc_rx(&priv->qps[i], cfg->rx_log2);
		if (!set->tx[i] || !set->rx[i]) {
			free_set(priv, set);
			return NULL;
		}
	}
	return set;
}

/* Take the rings away from the queue pairs, which are not live. */
static void take_set(struct cordon_priv *priv, struct queue_set *set)
{
	unsigned int i;

	set->cfg.cnt = priv->qp_cnt;
	set->cfg.tx_log2 = priv->tx_log2;
	set->cfg.rx_log2 = priv->rx_log2;
	for (i = 0; i < priv->qp_cnt; i++) {
		set->tx[i] = priv->qps[i].tx;
		set->rx[i] = priv->qps[i].rx;
		priv->qps[i].tx = NULL;
		priv->qps[i].rx = NULL;
	}
}

/* Give the rings to the queue pairs. */
static void give_set(struct cordon_priv *priv, const struct queue_set *set)
{
	unsigned int i;

	priv->qp_cnt = set->cfg.cnt;
	priv->tx_log2 = set->cfg.tx_log2;
	priv->rx_log2 = set->cfg.rx_log2;
	for (i = 0; i < priv->qp_cnt; i++) {
		priv->qps[i].tx = set->tx[i];
		priv->qps[i].rx = set->rx[i];
	}
}

static void add_napis(struct cordon_priv *priv, unsigned int from, unsigned int to)
{
	struct cordon_dev *cdev = priv->cdev;
	unsigned int i;

	for (i = from; i < to; i++) {
		struct cordon_queue_pair *qp = &priv->qps[i];

		netif_napi_add_config(qp->netdev, &qp->napi, cordon_txrx_poll, i);
		netif_napi_set_irq(&qp->napi, cdev->vectors[qp->vector].irq);
	}
}

static void del_napis(struct cordon_priv *priv, unsigned int from, unsigned int to)
{
	while (to-- > from)
		netif_napi_del(&priv->qps[to].napi);
}

static void bind_napi(struct cordon_queue_pair *qp, struct napi_struct *napi)
{
	netif_queue_set_napi(qp->netdev, qp->index, NETDEV_QUEUE_TYPE_RX, napi);
	netif_queue_set_napi(qp->netdev, qp->index, NETDEV_QUEUE_TYPE_TX, napi);
}

/**
 * cordon_queue_schedule() - an interrupt for queue pairs came
 * @vector: its vector; vectors are shared if there are too few
 *
 * Context: hard interrupt.
 */
void cordon_queue_schedule(const struct cordon_vector *vector)
{
	struct cordon_dev *cdev = vector->cdev;
	struct cordon_priv *priv;
	unsigned int i, step;

	/* Pairs with the release in cordon_event_start(). */
	if (!smp_load_acquire(&cdev->netdev_ready))
		return;
	priv = netdev_priv(cdev->netdev);
	step = max(cdev->vector_cnt - 1, 1);
	for (i = vector->index ? vector->index - 1 : 0; i < cdev->port.queue_pairs; i += step)
		if (READ_ONCE(priv->qps[i].live))
			napi_schedule_irqoff(&priv->qps[i].napi);
}

/* Have the card take a queue pair into use. */
static int create_qp(struct cordon_queue_pair *qp)
{
	struct cordon_queue_pair_cfg cfg = {
		.index = cpu_to_le16(qp->index),
		.vector = cpu_to_le16(qp->vector),
		.tx_log2 = qp->tx->log2,
		.rx_log2 = qp->rx->log2,
		.tx_ring = cpu_to_le64(qp->tx->slots_dma),
		.tx_cq = cpu_to_le64(qp->tx->cq_dma),
		.rx_ring = cpu_to_le64(qp->rx->desc_dma),
		.rx_cq = cpu_to_le64(qp->rx->cq_dma),
	};
	int err;

	cordon_hw_clear_line(qp->cdev, qp->line);
	qp->arm = 0;
	err = cordon_cmd_exec(qp->cdev, CORDON_CMD_QUEUE_PAIR_CREATE, &cfg, sizeof(cfg), NULL, 0,
			      NULL, NULL);
	if (!err)
		cordon_hw_set_rx_prod(qp->cdev, qp->line, qp->rx->prod);
	return err;
}

/*
 * Have the card let go of queue pairs. If it doesn't, it is reset at once, for their memory will be
 * freed.
 */
static void destroy_qps(struct cordon_priv *priv, unsigned int cnt)
{
	struct cordon_dev *cdev = priv->cdev;
	unsigned int i;
	int err = 0;

	for (i = 0; i < cnt; i++) {
		u64 arg[4] = { i };

		err = cordon_cmd_exec(cdev, CORDON_CMD_QUEUE_PAIR_DESTROY, NULL, 0, NULL, 0, arg,
				      NULL);
		if (err)
			break;
	}
	if (err)
		cordon_reset_now(cdev);
}

/*
 * Make the RSS table fit the number of queue pairs. A table that the user set stays: the stack
 * doesn't let the number become one that it doesn't fit.
 */
static void spread_rss(struct cordon_priv *priv)
{
	unsigned int i;

	if (netif_is_rxfh_configured(priv->cdev->netdev))
		return;
	for (i = 0; i < CORDON_RSS_TABLE_SIZE; i++)
		priv->rss_table[i] = ethtool_rxfh_indir_default(i, priv->qp_cnt);
}

/* Did the card refuse the command, rather than perhaps do it and not answer? */
static bool is_refusal(int err)
{
	return err != -ETIMEDOUT && err != -EIO && err != -ENODEV;
}

/* Have the card take all queue pairs into use. With an error it has none. */
static int create_qps(struct cordon_priv *priv)
{
	unsigned int i;
	int err;

	for (i = 0; i < priv->qp_cnt; i++) {
		err = create_qp(&priv->qps[i]);
		if (err) {
			if (is_refusal(err))
				destroy_qps(priv, i);
			else
				cordon_reset_now(priv->cdev);
			return err;
		}
	}
	spread_rss(priv);
	err = cordon_queue_sync_rss(priv);
	if (!err)
		err = cordon_queue_sync_coalesce(priv);
	if (err)
		destroy_qps(priv, priv->qp_cnt);
	return err;
}

/* Let NAPI at the queue pairs, which the card uses. The stack's queues are woken by the caller. */
static void start_napis(struct cordon_priv *priv)
{
	unsigned int i;

	for (i = 0; i < priv->qp_cnt; i++) {
		struct cordon_queue_pair *qp = &priv->qps[i];

		netdev_tx_reset_queue(qp->tx->txq);
		bind_napi(qp, &qp->napi);
		page_pool_enable_direct_recycling(qp->rx->pool, &qp->napi);
		napi_enable(&qp->napi);
		WRITE_ONCE(qp->live, true);
		/* The first poll asks for the first interrupt. */
		local_bh_disable();
		napi_schedule(&qp->napi);
		local_bh_enable();
	}
	priv->queues_up = true;
}

/* The opposite; when it returns, nothing of the host touches the rings. */
static void stop_napis(struct cordon_priv *priv)
{
	struct cordon_dev *cdev = priv->cdev;
	unsigned int i;

	priv->queues_up = false;
	for (i = 0; i < priv->qp_cnt; i++)
		WRITE_ONCE(priv->qps[i].live, false);
	for (i = 0; i < cdev->vector_cnt; i++)
		synchronize_hardirq(cdev->vectors[i].irq);
	for (i = 0; i < priv->qp_cnt; i++) {
		napi_disable(&priv->qps[i].napi);
		page_pool_disable_direct_recycling(priv->qps[i].rx->pool);
		bind_napi(&priv->qps[i], NULL);
	}
	/* A poll that has ended NAPI's turn may still look at its rings. */
	synchronize_net();
	/* NAPI can't wake a queue any more. */
	netif_tx_disable(cdev->netdev);
}

static void rewind_rings(struct cordon_priv *priv)
{
	unsigned int i;

	for (i = 0; i < priv->qp_cnt; i++) {
		cordon_txrx_rewind_tx(&priv->qps[i], priv->qps[i].tx);
		cordon_txrx_rewind_rx(&priv->qps[i], priv->qps[i].rx);
	}
}

static int set_real_num_queues(struct cordon_priv *priv, unsigned int cnt)
{
	struct net_device *netdev = priv->cdev->netdev;
	int err;

	err = netif_set_real_num_tx_queues(netdev, cnt);
	if (err)
		return err;
	return netif_set_real_num_rx_queues(netdev, cnt);
}

/**
 * cordon_queue_open() - bring the interface's queues up
 * @priv: network device
 *
 * Context: RTNL.
 * Return: 0 or -errno.
 */
int cordon_queue_open(struct cordon_priv *priv)
{
	struct cordon_queue_cfg cfg = { priv->qp_cnt, priv->tx_log2, priv->rx_log2 };
	struct queue_set *set;
	int err;

	ASSERT_RTNL();
	err = set_real_num_queues(priv, cfg.cnt);
	if (err)
		return err;
	set = alloc_set(priv, &cfg);
	if (!set)
		return -ENOMEM;
	give_set(priv, set);
	add_napis(priv, 0, priv->qp_cnt);

	err = create_qps(priv);
	if (err)
		goto err_free_set;
	start_napis(priv);
	err = cordon_netdev_enable_rx(priv, true);
	if (err)
		goto err_stop;
	netif_tx_wake_all_queues(priv->cdev->netdev);
	kfree(set);
	return 0;

err_stop:
	stop_napis(priv);
	destroy_qps(priv, priv->qp_cnt);
err_free_set:
	take_set(priv, set);
	free_set(priv, set);
	del_napis(priv, 0, priv->qp_cnt);
	return err;
}

/**
 * cordon_queue_close() - bring the interface's queues down
 * @priv: network device; may be suspended
 *
 * Context: RTNL.
 */
void cordon_queue_close(struct cordon_priv *priv)
{
	unsigned int i;

	ASSERT_RTNL();
	cordon_netdev_enable_rx(priv, false);
	if (priv->queues_up) {
		stop_napis(priv);
		destroy_qps(priv, priv->qp_cnt);
	}
	for (i = 0; i < priv->qp_cnt; i++) {
		cordon_txrx_free_rx(&priv->qps[i], priv->qps[i].rx);
		cordon_txrx_free_tx(&priv->qps[i], priv->qps[i].tx);
		priv->qps[i].rx = NULL;
		priv->qps[i].tx = NULL;
	}
	del_napis(priv, 0, priv->qp_cnt);
}

/* Have the card use the rings of @set; the old ones are left in it. The queue pairs are stopped. */
static int swap_sets(struct cordon_priv *priv, struct queue_set *set)
{
	struct queue_set *old;
	int err;

	old = kzalloc_obj(*old, GFP_KERNEL);
	if (!old)
		return -ENOMEM;
	take_set(priv, old);
	give_set(priv, set);
	err = create_qps(priv);
	if (err) {
		take_set(priv, set);
		give_set(priv, old);
	} else {
		*set = *old;
	}
	kfree(old);
	return err;
}

/* Bring the old rings back after a change that the card refused. If it fails, a reset will. */
static int restore_rings(struct cordon_priv *priv)
{
	int err;

	rewind_rings(priv);
	err = create_qps(priv);
	if (err)
		cordon_reset_schedule(priv->cdev);
	return err;
}

/**
 * cordon_queue_reconfigure() - change number and length of the rings
 * @priv: network device, up or down
 * @cfg: what they shall be, checked
 *
 * Context: RTNL.
 * Return: 0 or -errno; with an error all is as it was, or will be after a reset.
 */
int cordon_queue_reconfigure(struct cordon_priv *priv, const struct cordon_queue_cfg *cfg)
{
	unsigned int old_cnt = priv->qp_cnt;
	struct queue_set *set;
	int err, lost = 0;

	ASSERT_RTNL();
	if (!netif_running(priv->cdev->netdev)) {
		err = set_real_num_queues(priv, cfg->cnt);
		if (err)
			return err;
		priv->qp_cnt = cfg->cnt;
		priv->tx_log2 = cfg->tx_log2;
		priv->rx_log2 = cfg->rx_log2;
		spread_rss(priv);
		return 0;
	}
	if (!priv->queues_up)
		return -EBUSY;

	set = alloc_set(priv, cfg);
	if (!set)
		return -ENOMEM;
	cordon_netdev_enable_rx(priv, false);
	stop_napis(priv);
	destroy_qps(priv, old_cnt);
	add_napis(priv, old_cnt, cfg->cnt);

	err = set_real_num_queues(priv, cfg->cnt);
	if (!err)
		err = swap_sets(priv, set);
	if (err) {
		set_real_num_queues(priv, old_cnt);
		lost = restore_rings(priv);
	}
	/* What is left in the set isn't used: the old rings, or new ones that the card refused. */
	free_set(priv, set);
	del_napis(priv, priv->qp_cnt, max(old_cnt, cfg->cnt));
	if (lost)
		return err;
	start_napis(priv);
	if (cordon_netdev_enable_rx(priv, true))
		cordon_reset_schedule(priv->cdev);
	netif_tx_wake_all_queues(priv->cdev->netdev);
	return err;
}

/**
 * cordon_queue_suspend() - let go of the rings before the device is reset
 * @priv: network device; the caller resets the device right away
 *
 * Context: RTNL; the network device is detached.
 */
void cordon_queue_suspend(struct cordon_priv *priv)
{
	ASSERT_RTNL();
	if (priv->queues_up)
		stop_napis(priv);
}

/**
 * cordon_queue_resume() - bring the queues back after the device was reset
 * @priv: network device; receiving is not switched on, the stack's queues are not woken
 *
 * Context: RTNL; the network device is detached.
 * Return: 0 or -errno.
 */
int cordon_queue_resume(struct cordon_priv *priv)
{
	int err;

	ASSERT_RTNL();
	rewind_rings(priv);
	err = create_qps(priv);
	if (!err)
		start_napis(priv);
	return err;
}

/**
 * cordon_queue_sync_coalesce() - bring the interrupt moderation into the card
 * @priv: network device, its queue pairs exist
 *
 * Context: RTNL.
 * Return: 0 or -errno.
 */
int cordon_queue_sync_coalesce(struct cordon_priv *priv)
{
	const struct cordon_coalesce *coalesce = &priv->coalesce;
	unsigned int i;
	int err;

	for (i = 0; i < priv->qp_cnt; i++) {
		u64 arg[4] = {
			i, coalesce->rx_usecs, coalesce->rx_frames,
			coalesce->tx_usecs | (u64)coalesce->tx_frames << 32,
		};

		err = cordon_cmd_exec(priv->cdev, CORDON_CMD_QUEUE_PAIR_MODERATE, NULL, 0, NULL, 0,
				      arg, NULL);
		if (err)
			return err;
	}
	return 0;
}

/**
 * cordon_queue_sync_rss() - bring RSS key and table into the card
 * @priv: network device, its queue pairs exist
 *
 * Context: RTNL.
 * Return: 0 or -errno.
 */
int cordon_queue_sync_rss(struct cordon_priv *priv)
{
	struct cordon_rss_cfg cfg = { .hash = cpu_to_le32(priv->rss_hash) };

	if (!(priv->cdev->port.features & CORDON_PORT_RSS))
		return 0;
	memcpy(cfg.key, priv->rss_key, sizeof(cfg.key));
	memcpy(cfg.table, priv->rss_table, sizeof(cfg.table));
	return cordon_cmd_exec(priv->cdev, CORDON_CMD_RSS_SET, &cfg, sizeof(cfg), NULL, 0, NULL,
			       NULL);
}

/**
 * cordon_queue_init() - make the queue pairs' part that lives as long as the network device
 * @priv: network device
 *
 * Context: process context.
 * Return: 0 or -ENOMEM.
 */
int cordon_queue_init(struct cordon_priv *priv)
{
	struct cordon_dev *cdev = priv->cdev;
	unsigned int i;

	priv->qps = kvzalloc_objs(*priv->qps, cdev->port.queue_pairs, GFP_KERNEL);
	if (!priv->qps)
		return -ENOMEM;
	for (i = 0; i < cdev->port.queue_pairs; i++) {
		struct cordon_queue_pair *qp = &priv->qps[i];

		qp->cdev = cdev;
		qp->netdev = cdev->netdev;
		qp->index = i;
		qp->line = CORDON_LINE_QUEUE_PAIR(i);
		qp->vector = cdev->vector_cnt > 1 ? 1 + i % (cdev->vector_cnt - 1) : 0;
		u64_stats_init(&qp->tx_stats.syncp);
		u64_stats_init(&qp->xmit_stats.syncp);
		u64_stats_init(&qp->rx_stats.syncp);
	}
	priv->qp_cnt = min3(cdev->port.queue_pairs, num_online_cpus(),
			    max(cdev->vector_cnt - 1, 1));
	priv->tx_log2 = min_t(u8, CORDON_QUEUE_LOG2_DEFAULT, cdev->port.ring_log2);
	priv->rx_log2 = priv->tx_log2;
	spread_rss(priv);
	return 0;
}

/**
 * cordon_queue_exit() - undo cordon_queue_init()
 * @priv: network device, down
 *
 * Context: process context; interrupts are freed.
 */
void cordon_queue_exit(struct cordon_priv *priv)
{
	kvfree(priv->qps);
}
