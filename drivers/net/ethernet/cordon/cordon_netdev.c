// SPDX-License-Identifier: GPL-2.0-only
/* Cordon: the network device. */

#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/netdev_queues.h>

#include "cordon_hw.h"
#include "cordon_ipsec.h"
#include "cordon_queue.h"

#define CORDON_TX_TIMEOUT (10 * HZ)

static int cordon_open(struct net_device *netdev)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	if (!cordon_is_usable(priv->cdev))
		return -EIO;
	return cordon_queue_open(priv);
}

static int cordon_stop(struct net_device *netdev)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	cordon_queue_close(priv);
	cordon_netdev_refresh_stats(priv);
	return 0;
}

static u16 cordon_select_queue(struct net_device *netdev, struct sk_buff *skb,
			       struct net_device *sb_dev)
{
	u16 queue;

	if (cordon_ipsec_select_queue(skb, netdev->real_num_tx_queues, &queue))
		return queue;
	return netdev_pick_tx(netdev, skb, sb_dev);
}

static netdev_features_t cordon_features_check(struct sk_buff *skb, struct net_device *netdev,
					       netdev_features_t features)
{
	features = vlan_features_check(skb, features);
	return cordon_ipsec_features_check(skb, features);
}

/* Bring the port's configuration into the card. */
static int sync_port(struct cordon_priv *priv)
{
	struct cordon_port_cfg cfg = { .mtu = cpu_to_le32(priv->mtu) };
	u32 flags = CORDON_PORT_RSS;

	lockdep_assert_held(&priv->cdev->port_lock);
	if (priv->rx_enabled)
		flags |= CORDON_PORT_RX_ENABLE;
	if (priv->promiscuous)
		flags |= CORDON_PORT_PROMISCUOUS;
	if (priv->all_multicast)
		flags |= CORDON_PORT_ALL_MULTICAST;
	if (priv->features & NETIF_F_HW_VLAN_CTAG_RX)
		flags |= CORDON_PORT_VLAN_STRIP;
	if (priv->features & NETIF_F_HW_VLAN_CTAG_FILTER)
		flags |= CORDON_PORT_VLAN_FILTER;
	if (priv->features & NETIF_F_RXCSUM)
		flags |= CORDON_PORT_RX_CSUM;
	if (priv->features & NETIF_F_HW_ESP)
		flags |= CORDON_PORT_ESP;
	cfg.flags = cpu_to_le32(flags & priv->cdev->port.features);
	ether_addr_copy(cfg.mac, priv->mac);
	return cordon_cmd_exec(priv->cdev, CORDON_CMD_PORT_SET, &cfg, sizeof(cfg), NULL, 0, NULL,
			       NULL);
}

/**
 * cordon_netdev_enable_rx() - switch receiving on or off in the card
 * @priv: network device
 * @enable: on
 *
 * Context: process context.
 * Return: 0 or -errno.
 */
int cordon_netdev_enable_rx(struct cordon_priv *priv, bool enable)
{
	int err;

	mutex_lock(&priv->cdev->port_lock);
	priv->rx_enabled = enable;
	err = sync_port(priv);
	/* A later change of the port must not bring what the caller was told he hasn't got. */
	if (err)
		priv->rx_enabled = false;
	mutex_unlock(&priv->cdev->port_lock);
	return err;
}

/* Copy a list of addresses, as far as there is room. False if there wasn't enough. */
static bool copy_addresses(struct cordon_filter_cfg *cfg, unsigned int *cnt, unsigned int max,
			   struct netdev_hw_addr_list *list)
{
	struct netdev_hw_addr *ha;

	netdev_hw_addr_list_for_each(ha, list) {
		if (*cnt == max)
			return false;
		ether_addr_copy(cfg->addresses[(*cnt)++], ha->addr);
	}
	return true;
}

/*
 * Bring addresses and VLANs into the card. Addresses that don't fit are made up for by the flags of
 * the port.
 */
static int sync_filter(struct cordon_priv *priv)
{
	struct net_device *netdev = priv->cdev->netdev;
	unsigned int max = priv->cdev->port.addresses;
	struct cordon_filter_cfg *cfg;
	unsigned int cnt = 0;
	int err, vid;

	lockdep_assert_held(&priv->cdev->port_lock);
	cfg = kvzalloc(struct_size(cfg, addresses, max), GFP_KERNEL);
	if (!cfg)
		return -ENOMEM;
	for_each_set_bit(vid, priv->vlans, VLAN_N_VID)
		cfg->vlans[vid / 64] |= cpu_to_le64(BIT_ULL(vid % 64));

	netif_addr_lock_bh(netdev);
	priv->promiscuous = netdev->flags & IFF_PROMISC;
	priv->all_multicast = netdev->flags & IFF_ALLMULTI;
	if (!copy_addresses(cfg, &cnt, max, &netdev->uc))
		priv->promiscuous = true;
	if (!copy_addresses(cfg, &cnt, max, &netdev->mc))
		priv->all_multicast = true;
	netif_addr_unlock_bh(netdev);

	cfg->count = cpu_to_le32(cnt);
	err = cordon_cmd_exec(priv->cdev, CORDON_CMD_FILTER_SET, cfg,
			      struct_size(cfg, addresses, cnt), NULL, 0, NULL, NULL);
	kvfree(cfg);
	return err;
}

/**
 * cordon_netdev_sync() - bring filters and the port's configuration into the card
 * @priv: network device
 *
 * Context: process context.
 * Return: 0 or -errno.
 */
int cordon_netdev_sync(struct cordon_priv *priv)
{
	int err;

	mutex_lock(&priv->cdev->port_lock);
	err = sync_filter(priv);
	if (!err)
		err = sync_port(priv);
	mutex_unlock(&priv->cdev->port_lock);
	return err;
}

static void cordon_rx_mode_work(struct work_struct *work)
{
	struct cordon_priv *priv = container_of(work, struct cordon_priv, rx_mode_work);
	int err = cordon_netdev_sync(priv);

	/* A reset brings the filter into the card itself. */
	if (err && cordon_is_usable(priv->cdev))
		netdev_err(priv->cdev->netdev, "the address filter can't be set: %pe\n",
			   ERR_PTR(err));
}

/* Called with a spinlock held: the card is told later. */
static void cordon_set_rx_mode(struct net_device *netdev)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	queue_work(priv->cdev->wq, &priv->rx_mode_work);
}

static int change_vlan(struct net_device *netdev, __be16 proto, u16 vid, bool add)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	int err;

	if (proto != htons(ETH_P_8021Q))
		return -EPROTONOSUPPORT;
	mutex_lock(&priv->cdev->port_lock);
	__assign_bit(vid, priv->vlans, add);
	err = sync_filter(priv);
	if (err && add && cordon_is_usable(priv->cdev))
		__clear_bit(vid, priv->vlans);
	else
		err = 0;
	mutex_unlock(&priv->cdev->port_lock);
	return err;
}

static int cordon_vlan_rx_add_vid(struct net_device *netdev, __be16 proto, u16 vid)
{
	return change_vlan(netdev, proto, vid, true);
}

static int cordon_vlan_rx_kill_vid(struct net_device *netdev, __be16 proto, u16 vid)
{
	return change_vlan(netdev, proto, vid, false);
}

static int cordon_set_mac_address(struct net_device *netdev, void *p)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	struct sockaddr *addr = p;
	int err;

	err = eth_prepare_mac_addr_change(netdev, addr);
	if (err)
		return err;
	mutex_lock(&priv->cdev->port_lock);
	ether_addr_copy(priv->mac, addr->sa_data);
	err = sync_port(priv);
	if (err)
		ether_addr_copy(priv->mac, netdev->dev_addr);
	mutex_unlock(&priv->cdev->port_lock);
	if (!err)
		eth_commit_mac_addr_change(netdev, addr);
	return err;
}

/* Buffers are chained: no ring has to change. */
static int cordon_change_mtu(struct net_device *netdev, int mtu)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	int err;

	mutex_lock(&priv->cdev->port_lock);
	priv->mtu = mtu;
	err = sync_port(priv);
	if (err)
		priv->mtu = netdev->mtu;
	mutex_unlock(&priv->cdev->port_lock);
	if (!err)
		WRITE_ONCE(netdev->mtu, mtu);
	return err;
}

static int cordon_set_features(struct net_device *netdev, netdev_features_t features)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	int err;

	mutex_lock(&priv->cdev->port_lock);
	priv->features = features;
	err = sync_port(priv);
	if (err)
		priv->features = netdev->features;
	mutex_unlock(&priv->cdev->port_lock);
	return err;
}

static void cordon_tx_timeout(struct net_device *netdev, unsigned int queue)
{
	netdev_err(netdev, "TX queue %u makes no progress\n", queue);
	cordon_reset_schedule(cordon_netdev_cdev(netdev));
}

/**
 * cordon_netdev_get_tx_stats() - counters of a TX queue
 * @qp: queue pair
 * @stats: where to put them
 *
 * Context: any.
 */
void cordon_netdev_get_tx_stats(struct cordon_queue_pair *qp, struct cordon_netdev_tx_stats *stats)
{
	const struct cordon_xmit_stats *xmit = &qp->xmit_stats;
	const struct cordon_tx_stats *tx = &qp->tx_stats;
	unsigned int start, i;

	do {
		start = u64_stats_fetch_begin(&tx->syncp);
		stats->packets = u64_stats_read(&tx->packets);
		stats->bytes = u64_stats_read(&tx->bytes);
		stats->gso_packets = u64_stats_read(&tx->gso_packets);
		stats->gso_bytes = u64_stats_read(&tx->gso_bytes);
		stats->gso_wire_packets = u64_stats_read(&tx->gso_wire_packets);
		stats->gso_wire_bytes = u64_stats_read(&tx->gso_wire_bytes);
		stats->wake = u64_stats_read(&tx->wake);
		stats->card_dropped = 0;
		for (i = 0; i < CORDON_RESULT_CNT; i++)
			stats->card_dropped += u64_stats_read(&tx->drops[i]);
	} while (u64_stats_fetch_retry(&tx->syncp, start));
	do {
		start = u64_stats_fetch_begin(&xmit->syncp);
		stats->csum = u64_stats_read(&xmit->csum);
		stats->csum_none = u64_stats_read(&xmit->csum_none);
		stats->stop = u64_stats_read(&xmit->stop);
		stats->kicks = u64_stats_read(&xmit->kicks);
		stats->driver_dropped = u64_stats_read(&xmit->dropped);
	} while (u64_stats_fetch_retry(&xmit->syncp, start));
}

/**
 * cordon_netdev_get_rx_stats() - counters of an RX queue
 * @qp: queue pair
 * @stats: where to put them
 *
 * Context: any.
 */
void cordon_netdev_get_rx_stats(struct cordon_queue_pair *qp, struct cordon_netdev_rx_stats *stats)
{
	const struct cordon_rx_stats *rx = &qp->rx_stats;
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&rx->syncp);
		stats->packets = u64_stats_read(&rx->packets);
		stats->bytes = u64_stats_read(&rx->bytes);
		stats->csum_good = u64_stats_read(&rx->csum_good);
		stats->csum_none = u64_stats_read(&rx->csum_none);
		stats->alloc_fail = u64_stats_read(&rx->alloc_fail);
		stats->dropped = u64_stats_read(&rx->dropped);
	} while (u64_stats_fetch_retry(&rx->syncp, start));
}

static void cordon_get_stats64(struct net_device *netdev, struct rtnl_link_stats64 *stats)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	struct cordon_netdev_tx_stats tx;
	struct cordon_netdev_rx_stats rx;
	unsigned int i;

	for (i = 0; i < priv->cdev->port.queue_pairs; i++) {
		cordon_netdev_get_tx_stats(&priv->qps[i], &tx);
		cordon_netdev_get_rx_stats(&priv->qps[i], &rx);
		stats->tx_packets += tx.packets;
		stats->tx_bytes += tx.bytes;
		stats->tx_dropped += tx.driver_dropped + tx.card_dropped;
		stats->rx_packets += rx.packets;
		stats->rx_bytes += rx.bytes;
		stats->rx_dropped += rx.dropped;
	}
	/* As old as the last look of the health work. */
	stats->multicast = READ_ONCE(priv->stats[CORDON_PORT_STAT(rx_multicast)]);
	stats->rx_missed_errors =
		READ_ONCE(priv->stats[CORDON_PORT_STAT(rx_drops) + CORDON_RESULT_NO_BUFFER]);
}

static void add_queue_stats_tx(struct cordon_queue_pair *qp, struct netdev_queue_stats_tx *stats)
{
	struct cordon_netdev_tx_stats tx;

	cordon_netdev_get_tx_stats(qp, &tx);
	stats->packets += tx.packets;
	stats->bytes += tx.bytes;
	stats->hw_drops += tx.card_dropped;
	stats->csum_none += tx.csum_none;
	stats->needs_csum += tx.csum;
	stats->hw_gso_packets += tx.gso_packets;
	stats->hw_gso_bytes += tx.gso_bytes;
	stats->hw_gso_wire_packets += tx.gso_wire_packets;
	stats->hw_gso_wire_bytes += tx.gso_wire_bytes;
	stats->stop += tx.stop;
	stats->wake += tx.wake;
}

static void add_queue_stats_rx(struct cordon_queue_pair *qp, struct netdev_queue_stats_rx *stats)
{
	struct cordon_netdev_rx_stats rx;

	cordon_netdev_get_rx_stats(qp, &rx);
	stats->packets += rx.packets;
	stats->bytes += rx.bytes;
	stats->alloc_fail += rx.alloc_fail;
	stats->csum_unnecessary += rx.csum_good;
	stats->csum_none += rx.csum_none;
}

/* The stack hands in all-ones, which stand for "not counted". */
static void zero_queue_stats_tx(struct netdev_queue_stats_tx *stats)
{
	stats->packets = 0;
	stats->bytes = 0;
	stats->hw_drops = 0;
	stats->csum_none = 0;
	stats->needs_csum = 0;
	stats->hw_gso_packets = 0;
	stats->hw_gso_bytes = 0;
	stats->hw_gso_wire_packets = 0;
	stats->hw_gso_wire_bytes = 0;
	stats->stop = 0;
	stats->wake = 0;
}

static void zero_queue_stats_rx(struct netdev_queue_stats_rx *stats)
{
	stats->packets = 0;
	stats->bytes = 0;
	stats->alloc_fail = 0;
	stats->csum_unnecessary = 0;
	stats->csum_none = 0;
}

static void cordon_get_queue_stats_tx(struct net_device *netdev, int index,
				      struct netdev_queue_stats_tx *stats)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	zero_queue_stats_tx(stats);
	add_queue_stats_tx(&priv->qps[index], stats);
}

static void cordon_get_queue_stats_rx(struct net_device *netdev, int index,
				      struct netdev_queue_stats_rx *stats)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	zero_queue_stats_rx(stats);
	add_queue_stats_rx(&priv->qps[index], stats);
}

/* Queue pairs that aren't in use now may have been before. */
static void cordon_get_base_stats(struct net_device *netdev, struct netdev_queue_stats_rx *rx,
				  struct netdev_queue_stats_tx *tx)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	unsigned int i;

	zero_queue_stats_rx(rx);
	zero_queue_stats_tx(tx);
	for (i = netdev->real_num_rx_queues; i < priv->cdev->port.queue_pairs; i++)
		add_queue_stats_rx(&priv->qps[i], rx);
	for (i = netdev->real_num_tx_queues; i < priv->cdev->port.queue_pairs; i++)
		add_queue_stats_tx(&priv->qps[i], tx);
}

static const struct netdev_stat_ops cordon_stat_ops = {
	.get_queue_stats_rx	= cordon_get_queue_stats_rx,
	.get_queue_stats_tx	= cordon_get_queue_stats_tx,
	.get_base_stats		= cordon_get_base_stats,
};

/**
 * cordon_netdev_refresh_stats() - ask the card for the port's counters
 * @priv: network device
 *
 * If the card can't be asked, the last known ones stay.
 *
 * Context: process context.
 */
void cordon_netdev_refresh_stats(struct cordon_priv *priv)
{
	struct cordon_port_stats *stats;
	struct cordon_cmd_result res;
	unsigned int i;

	stats = kzalloc_obj(*stats, GFP_KERNEL);
	if (!stats)
		return;
	mutex_lock(&priv->stats_lock);
	if (!cordon_cmd_exec(priv->cdev, CORDON_CMD_QUERY_STATS, NULL, 0, stats, sizeof(*stats),
			     NULL, &res))
		for (i = 0; i < CORDON_PORT_STATS_CNT; i++)
			WRITE_ONCE(priv->stats[i], priv->stats_base[i] +
				   le64_to_cpu(((__le64 *)stats)[i]));
	mutex_unlock(&priv->stats_lock);
	kfree(stats);
}

/**
 * cordon_netdev_keep_stats() - keep the port's counters over a reset, which zeroes the card's
 * @priv: network device
 *
 * Context: process context.
 */
void cordon_netdev_keep_stats(struct cordon_priv *priv)
{
	mutex_lock(&priv->stats_lock);
	memcpy(priv->stats_base, priv->stats, sizeof(priv->stats_base));
	mutex_unlock(&priv->stats_lock);
}

/**
 * cordon_netdev_set_link() - the card told the state of the link
 * @cdev: device
 * @up: whether the wire has another end
 *
 * Context: process context.
 */
void cordon_netdev_set_link(struct cordon_dev *cdev, bool up)
{
	struct net_device *netdev = cdev->netdev;

	if (up == netif_carrier_ok(netdev))
		return;
	if (up)
		netif_carrier_on(netdev);
	else
		netif_carrier_off(netdev);
	if (netdev->reg_state == NETREG_REGISTERED && net_ratelimit())
		netdev_info(netdev, "link is %s\n", up ? "up" : "down");
}

const struct net_device_ops cordon_netdev_ops = {
	.ndo_open		= cordon_open,
	.ndo_stop		= cordon_stop,
	.ndo_start_xmit		= cordon_txrx_xmit,
	.ndo_select_queue	= cordon_select_queue,
	.ndo_features_check	= cordon_features_check,
	.ndo_set_rx_mode	= cordon_set_rx_mode,
	.ndo_set_mac_address	= cordon_set_mac_address,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_change_mtu		= cordon_change_mtu,
	.ndo_set_features	= cordon_set_features,
	.ndo_vlan_rx_add_vid	= cordon_vlan_rx_add_vid,
	.ndo_vlan_rx_kill_vid	= cordon_vlan_rx_kill_vid,
	.ndo_tx_timeout		= cordon_tx_timeout,
	.ndo_get_stats64	= cordon_get_stats64,
};

static void set_mac(struct cordon_dev *cdev, struct net_device *netdev)
{
	u8 mac[ETH_ALEN];

	cordon_hw_get_mac(cdev, mac);
	if (is_valid_ether_addr(mac)) {
		eth_hw_addr_set(netdev, mac);
	} else {
		eth_hw_addr_random(netdev);
		dev_warn(cdev->dev, "the card has no valid MAC address, using a random one\n");
	}
}

static void set_features(struct cordon_dev *cdev, struct net_device *netdev)
{
	netdev_features_t tx = NETIF_F_SG, features;
	u32 caps = cdev->port.features;

	if (caps & CORDON_FEATURE_TX_CSUM)
		tx |= NETIF_F_HW_CSUM;
	if (caps & CORDON_FEATURE_TSO)
		tx |= NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_MANGLEID;
	if (caps & CORDON_FEATURE_USO)
		tx |= NETIF_F_GSO_UDP_L4;

	features = tx;
	if (caps & CORDON_FEATURE_TX_VLAN)
		features |= NETIF_F_HW_VLAN_CTAG_TX;
	if (caps & CORDON_PORT_VLAN_STRIP)
		features |= NETIF_F_HW_VLAN_CTAG_RX;
	if (caps & CORDON_PORT_VLAN_FILTER)
		features |= NETIF_F_HW_VLAN_CTAG_FILTER;
	if (caps & CORDON_PORT_RX_CSUM)
		features |= NETIF_F_RXCSUM;
	if (caps & CORDON_PORT_RSS)
		features |= NETIF_F_RXHASH;

	netdev->hw_features = features;
	netdev->features = features | NETIF_F_HIGHDMA;
	netdev->vlan_features = tx | NETIF_F_HIGHDMA;
	netdev->hw_enc_features = tx | NETIF_F_HIGHDMA;
	netdev->priv_flags |= IFF_UNICAST_FLT | IFF_LIVE_ADDR_CHANGE;
	netdev->min_mtu = CORDON_MTU_MIN;
	netdev->max_mtu = cdev->port.mtu;
	netif_set_tso_max_size(netdev, CORDON_TX_LENGTH_MAX - VLAN_ETH_HLEN);
}

/**
 * cordon_netdev_alloc() - make the network device, don't register it
 * @cdev: device, its capabilities are known
 *
 * Context: process context.
 * Return: 0 or -ENOMEM.
 */
int cordon_netdev_alloc(struct cordon_dev *cdev)
{
	struct net_device *netdev;
	struct cordon_priv *priv;
	int err;

	netdev = alloc_etherdev_mq(sizeof(*priv), cdev->port.queue_pairs);
	if (!netdev)
		return -ENOMEM;
	cdev->netdev = netdev;
	SET_NETDEV_DEV(netdev, cdev->dev);
	netdev->netdev_ops = &cordon_netdev_ops;
	netdev->ethtool_ops = &cordon_ethtool_ops;
	netdev->stat_ops = &cordon_stat_ops;
	netdev->watchdog_timeo = CORDON_TX_TIMEOUT;
	if (cdev->vector_cnt > cdev->port.queue_pairs)
		netif_set_affinity_auto(netdev);
	set_mac(cdev, netdev);
	set_features(cdev, netdev);
	netif_carrier_off(netdev);

	priv = netdev_priv(netdev);
	priv->cdev = cdev;
	priv->mtu = netdev->mtu;
	ether_addr_copy(priv->mac, netdev->dev_addr);
	priv->coalesce.rx_usecs = CORDON_COALESCE_RX_USECS;
	priv->coalesce.rx_frames = CORDON_COALESCE_RX_FRAMES;
	priv->coalesce.tx_usecs = CORDON_COALESCE_TX_USECS;
	priv->coalesce.tx_frames = CORDON_COALESCE_TX_FRAMES;
	priv->rss_hash = CORDON_RSS_ALL;
	netdev_rss_key_fill(priv->rss_key, sizeof(priv->rss_key));
	INIT_WORK(&priv->rx_mode_work, cordon_rx_mode_work);
	mutex_init(&priv->stats_lock);
	err = cordon_queue_init(priv);
	if (err) {
		cdev->netdev = NULL;
		free_netdev(netdev);
	}
	return err;
}

/**
 * cordon_netdev_free() - free the network device, which isn't registered (any more)
 * @cdev: device
 *
 * Context: process context.
 */
void cordon_netdev_free(struct cordon_dev *cdev)
{
	struct cordon_priv *priv = netdev_priv(cdev->netdev);

	cancel_work_sync(&priv->rx_mode_work);
	cordon_queue_exit(priv);
	mutex_destroy(&priv->stats_lock);
	free_netdev(cdev->netdev);
}
