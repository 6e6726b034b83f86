// SPDX-License-Identifier: GPL-2.0-only
/* Cordon: ethtool. */

#include <linux/ethtool.h>
#include <linux/log2.h>
#include <linux/rtnetlink.h>

#include "cordon_hw.h"
#include "cordon_ipsec.h"
#include "cordon_queue.h"

#define CORDON_COALESCE_USECS_MAX 10000
#define CORDON_COALESCE_FRAMES_MAX 4096

/* Why a packet was dropped; NULL where there is no such reason. */
const char *const cordon_result_names[CORDON_RESULT_CNT] = {
	[CORDON_RESULT_BAD_DESC] = "bad_desc",
	[CORDON_RESULT_DMA] = "dma",
	[CORDON_RESULT_TOO_LONG] = "too_long",
	[CORDON_RESULT_TOO_SHORT] = "too_short",
	[CORDON_RESULT_BAD_CSUM_REQUEST] = "bad_csum_request",
	[CORDON_RESULT_BAD_TSO] = "bad_tso",
	[CORDON_RESULT_LINK_DOWN] = "link_down",
	[CORDON_RESULT_WIRE_FULL] = "wire_full",
	[CORDON_RESULT_NO_BUFFER] = "no_buffer",
	[CORDON_RESULT_FILTERED] = "filtered",
	[CORDON_RESULT_RX_DISABLED] = "rx_disabled",
	[CORDON_RESULT_BAD_L2] = "bad_l2",
	[CORDON_RESULT_SA_GONE] = "sa_gone",
	[CORDON_RESULT_SA_EXPIRED] = "sa_expired",
	[CORDON_RESULT_SA_EXHAUSTED] = "sa_exhausted",
	[CORDON_RESULT_SA_NO_NEIGHBOUR] = "sa_no_neighbour",
	[CORDON_RESULT_SA_STATE] = "sa_state",
	[CORDON_RESULT_SA_MISMATCH] = "sa_mismatch",
	[CORDON_RESULT_SA_MISS] = "sa_miss",
	[CORDON_RESULT_AUTH_FAILED] = "auth_failed",
	[CORDON_RESULT_REPLAY] = "replay",
	[CORDON_RESULT_BAD_TRAILER] = "bad_trailer",
	[CORDON_RESULT_BAD_INNER] = "bad_inner",
	[CORDON_RESULT_DUMMY] = "dummy",
	[CORDON_RESULT_SELECTOR] = "selector",
	[CORDON_RESULT_POLICY_NONE] = "policy_none",
	[CORDON_RESULT_POLICY_TEMPLATE] = "policy_template",
	[CORDON_RESULT_POLICY_BLOCK] = "policy_block",
	[CORDON_RESULT_FRAGMENT] = "fragment",
	[CORDON_RESULT_CRYPTO] = "crypto",
	[CORDON_RESULT_STOPPED] = "stopped",
	[CORDON_RESULT_REPLAY_WINDOW] = "replay_window",
	[CORDON_RESULT_BAD_MODE] = "bad_mode",
};

struct counter {
	const char *name;
	size_t offset;
};

#define PORT_COUNTER(member) { "port_" #member, CORDON_PORT_STAT(member) }

static const struct counter port_counters[] = {
	PORT_COUNTER(rx_packets),
	PORT_COUNTER(rx_bytes),
	PORT_COUNTER(rx_multicast),
	PORT_COUNTER(tx_packets),
	PORT_COUNTER(tx_bytes),
	PORT_COUNTER(tx_segmented),
	PORT_COUNTER(rx_wire_packets),
	PORT_COUNTER(rx_wire_bytes),
	PORT_COUNTER(rx_sa_packets),
	PORT_COUNTER(rx_reassembled),
	PORT_COUNTER(rx_merged),
	PORT_COUNTER(tx_sa_packets),
};

#define TX_COUNTER(member) { #member, offsetof(struct cordon_netdev_tx_stats, member) / 8 }
#define RX_COUNTER(member) { #member, offsetof(struct cordon_netdev_rx_stats, member) / 8 }

static const struct counter tx_counters[] = {
	TX_COUNTER(packets),
	TX_COUNTER(bytes),
	TX_COUNTER(gso_packets),
	TX_COUNTER(csum),
	TX_COUNTER(stop),
	TX_COUNTER(wake),
	TX_COUNTER(kicks),
	TX_COUNTER(driver_dropped),
	TX_COUNTER(card_dropped),
};

static const struct counter rx_counters[] = {
	RX_COUNTER(packets),
	RX_COUNTER(bytes),
	RX_COUNTER(csum_good),
	RX_COUNTER(alloc_fail),
	RX_COUNTER(dropped),
};

static const char self_tests[][ETH_GSTRING_LEN] = {
	"registers",
	"command",
	"card",
	"link",
};

enum self_test {
	TEST_REGISTERS,
	TEST_COMMAND,
	TEST_CARD,
	TEST_LINK,
};

static void cordon_get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct cordon_dev *cdev = cordon_netdev_cdev(netdev);

	strscpy(info->driver, CORDON_DRIVER_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(cdev->pdev), sizeof(info->bus_info));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u.%u",
		 cdev->fw_version >> 16 & 0xff, cdev->fw_version >> 8 & 0xff,
		 cdev->fw_version & 0xff);
}

static int cordon_get_regs_len(struct net_device *netdev)
{
	return sizeof(struct cordon_regs);
}

static void cordon_get_regs(struct net_device *netdev, struct ethtool_regs *regs, void *data)
{
	struct cordon_dev *cdev = cordon_netdev_cdev(netdev);
	u32 *words = data;
	unsigned int i;

	regs->version = CORDON_ABI_MAJOR;
	for (i = 0; i < sizeof(struct cordon_regs) / 4; i++)
		words[i] = cordon_hw_read(cdev, i * 4);
}

/*
 * The wire is a piece of memory: it has no rate, and a made-up one would be wrong for whoever plans
 * by it.
 */
static int cordon_get_link_ksettings(struct net_device *netdev,
				     struct ethtool_link_ksettings *settings)
{
	ethtool_link_ksettings_zero_link_mode(settings, supported);
	ethtool_link_ksettings_zero_link_mode(settings, advertising);
	settings->base.speed = SPEED_UNKNOWN;
	settings->base.duplex = netif_carrier_ok(netdev) ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static void cordon_get_channels(struct net_device *netdev, struct ethtool_channels *channels)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	channels->max_combined = priv->cdev->port.queue_pairs;
	channels->combined_count = priv->qp_cnt;
}

/* The stack has checked the maximum and that the RSS table of the user fits. */
static int cordon_set_channels(struct net_device *netdev, struct ethtool_channels *channels)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	struct cordon_queue_cfg cfg = { channels->combined_count, priv->tx_log2, priv->rx_log2 };

	if (!cfg.cnt)
		return -EINVAL;
	if (cfg.cnt == priv->qp_cnt)
		return 0;
	return cordon_queue_reconfigure(priv, &cfg);
}

static void cordon_get_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
				 struct kernel_ethtool_ringparam *kernel_ring,
				 struct netlink_ext_ack *extack)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	ring->rx_max_pending = 1u << priv->cdev->port.ring_log2;
	ring->tx_max_pending = 1u << priv->cdev->port.ring_log2;
	ring->rx_pending = 1u << priv->rx_log2;
	ring->tx_pending = 1u << priv->tx_log2;
}

static int cordon_set_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
				struct kernel_ethtool_ringparam *kernel_ring,
				struct netlink_ext_ack *extack)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	struct cordon_queue_cfg cfg = { .cnt = priv->qp_cnt };

	if (ring->rx_mini_pending || ring->rx_jumbo_pending)
		return -EINVAL;
	if (ring->rx_pending < 1u << CORDON_RING_LOG2_MIN ||
	    ring->tx_pending < 1u << CORDON_RING_LOG2_MIN) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "a ring has at least %u entries",
				       1u << CORDON_RING_LOG2_MIN);
		return -EINVAL;
	}
	cfg.rx_log2 = order_base_2(ring->rx_pending);
	cfg.tx_log2 = order_base_2(ring->tx_pending);
	if (cfg.rx_log2 == priv->rx_log2 && cfg.tx_log2 == priv->tx_log2)
		return 0;
	return cordon_queue_reconfigure(priv, &cfg);
}

static int cordon_get_coalesce(struct net_device *netdev, struct ethtool_coalesce *coalesce,
			       struct kernel_ethtool_coalesce *kernel_coalesce,
			       struct netlink_ext_ack *extack)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	coalesce->rx_coalesce_usecs = priv->coalesce.rx_usecs;
	coalesce->rx_max_coalesced_frames = priv->coalesce.rx_frames;
	coalesce->tx_coalesce_usecs = priv->coalesce.tx_usecs;
	coalesce->tx_max_coalesced_frames = priv->coalesce.tx_frames;
	return 0;
}

static int cordon_set_coalesce(struct net_device *netdev, struct ethtool_coalesce *coalesce,
			       struct kernel_ethtool_coalesce *kernel_coalesce,
			       struct netlink_ext_ack *extack)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	struct cordon_coalesce old = priv->coalesce;
	int err = 0;

	if (coalesce->rx_coalesce_usecs > CORDON_COALESCE_USECS_MAX ||
	    coalesce->tx_coalesce_usecs > CORDON_COALESCE_USECS_MAX) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "at most %u microseconds",
				       CORDON_COALESCE_USECS_MAX);
		return -ERANGE;
	}
	if (coalesce->rx_max_coalesced_frames > CORDON_COALESCE_FRAMES_MAX ||
	    coalesce->tx_max_coalesced_frames > CORDON_COALESCE_FRAMES_MAX) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "at most %u frames", CORDON_COALESCE_FRAMES_MAX);
		return -ERANGE;
	}
	priv->coalesce.rx_usecs = coalesce->rx_coalesce_usecs;
	priv->coalesce.rx_frames = coalesce->rx_max_coalesced_frames;
	priv->coalesce.tx_usecs = coalesce->tx_coalesce_usecs;
	priv->coalesce.tx_frames = coalesce->tx_max_coalesced_frames;
	if (priv->queues_up)
		err = cordon_queue_sync_coalesce(priv);
	if (err)
		priv->coalesce = old;
	return err;
}

static int cordon_get_sset_count(struct net_device *netdev, int set)
{
	struct cordon_dev *cdev = cordon_netdev_cdev(netdev);
	int cnt, i;

	switch (set) {
	case ETH_SS_TEST:
		return ARRAY_SIZE(self_tests);
	case ETH_SS_STATS:
		break;
	default:
		return -EOPNOTSUPP;
	}
	cnt = ARRAY_SIZE(port_counters);
	for (i = 0; i < CORDON_RESULT_CNT; i++)
		cnt += cordon_result_names[i] ? 2 : 0;
	cnt += cdev->port.queue_pairs * (ARRAY_SIZE(tx_counters) + ARRAY_SIZE(rx_counters));
	return cnt + cordon_ipsec_stats_count(cdev);
}

static void put_stat_strings(struct cordon_dev *cdev, u8 **data)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(port_counters); i++)
		ethtool_puts(data, port_counters[i].name);
	for (i = 0; i < CORDON_RESULT_CNT; i++)
		if (cordon_result_names[i])
			ethtool_sprintf(data, "rx_drop_%s", cordon_result_names[i]);
	for (i = 0; i < CORDON_RESULT_CNT; i++)
		if (cordon_result_names[i])
			ethtool_sprintf(data, "tx_drop_%s", cordon_result_names[i]);
	for (i = 0; i < cdev->port.queue_pairs; i++) {
		for (j = 0; j < ARRAY_SIZE(rx_counters); j++)
			ethtool_sprintf(data, "rx%u_%s", i, rx_counters[j].name);
		for (j = 0; j < ARRAY_SIZE(tx_counters); j++)
			ethtool_sprintf(data, "tx%u_%s", i, tx_counters[j].name);
	}
	cordon_ipsec_stats_strings(cdev, data);
}

static void cordon_get_strings(struct net_device *netdev, u32 set, u8 *data)
{
	switch (set) {
	case ETH_SS_TEST:
		memcpy(data, self_tests, sizeof(self_tests));
		break;
	case ETH_SS_STATS:
		put_stat_strings(cordon_netdev_cdev(netdev), &data);
		break;
	}
}

/*
 * TX drops: those that the card counted by itself, and those of packets that were with it when a
 * queue pair was stopped, of which only the driver knows.
 */
static u64 sum_tx_stopped(struct cordon_priv *priv)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < priv->cdev->port.queue_pairs; i++)
		sum += u64_stats_read(&priv->qps[i].tx_stats.drops[CORDON_RESULT_STOPPED]);
	return sum;
}

static void cordon_get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats,
				     u64 *data)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	struct cordon_netdev_rx_stats rx;
	struct cordon_netdev_tx_stats tx;
	unsigned int i, j;

	cordon_netdev_refresh_stats(priv);
	for (i = 0; i < ARRAY_SIZE(port_counters); i++)
		*data++ = priv->stats[port_counters[i].offset];
	for (i = 0; i < CORDON_RESULT_CNT; i++)
		if (cordon_result_names[i])
			*data++ = priv->stats[CORDON_PORT_STAT(rx_drops) + i];
	for (i = 0; i < CORDON_RESULT_CNT; i++) {
		if (!cordon_result_names[i])
			continue;
		*data = priv->stats[CORDON_PORT_STAT(tx_drops) + i];
		if (i == CORDON_RESULT_STOPPED)
			*data += sum_tx_stopped(priv);
		data++;
	}
	for (i = 0; i < priv->cdev->port.queue_pairs; i++) {
		cordon_netdev_get_rx_stats(&priv->qps[i], &rx);
		for (j = 0; j < ARRAY_SIZE(rx_counters); j++)
			*data++ = ((u64 *)&rx)[rx_counters[j].offset];
		cordon_netdev_get_tx_stats(&priv->qps[i], &tx);
		for (j = 0; j < ARRAY_SIZE(tx_counters); j++)
			*data++ = ((u64 *)&tx)[tx_counters[j].offset];
	}
	cordon_ipsec_stats_get(priv->cdev, &data);
}

static void cordon_self_test(struct net_device *netdev, struct ethtool_test *test, u64 *data)
{
	struct cordon_dev *cdev = cordon_netdev_cdev(netdev);
	unsigned int i;

	data[TEST_REGISTERS] = !!cordon_hw_check(cdev);
	data[TEST_COMMAND] = !!cordon_cmd_exec(cdev, CORDON_CMD_NOP, NULL, 0, NULL, 0, NULL, NULL);
	/* The card stops its data path for the known answers. */
	data[TEST_CARD] = 0;
	if (test->flags & ETH_TEST_FL_OFFLINE)
		data[TEST_CARD] = !!cordon_cmd_exec(cdev, CORDON_CMD_SELFTEST, NULL, 0, NULL, 0,
						    NULL, NULL);
	data[TEST_LINK] = !netif_carrier_ok(netdev);
	for (i = 0; i < ARRAY_SIZE(self_tests); i++)
		if (data[i])
			test->flags |= ETH_TEST_FL_FAILED;
}

static u32 cordon_get_rx_ring_count(struct net_device *netdev)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	return priv->qp_cnt;
}

static u32 cordon_get_rxfh_key_size(struct net_device *netdev)
{
	return CORDON_RSS_KEY_SIZE;
}

static u32 cordon_get_rxfh_indir_size(struct net_device *netdev)
{
	return CORDON_RSS_TABLE_SIZE;
}

static int cordon_get_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	unsigned int i;

	rxfh->hfunc = ETH_RSS_HASH_TOP;
	if (rxfh->key)
		memcpy(rxfh->key, priv->rss_key, CORDON_RSS_KEY_SIZE);
	if (rxfh->indir)
		for (i = 0; i < CORDON_RSS_TABLE_SIZE; i++)
			rxfh->indir[i] = priv->rss_table[i];
	return 0;
}

/* Bring a changed RSS configuration into the card; with an error put the old one back. */
static int change_rss(struct cordon_priv *priv, u32 hash, const u8 *key, const u32 *table)
{
	u8 old_table[CORDON_RSS_TABLE_SIZE], old_key[CORDON_RSS_KEY_SIZE];
	u32 old_hash = priv->rss_hash;
	unsigned int i;
	int err;

	memcpy(old_key, priv->rss_key, sizeof(old_key));
	memcpy(old_table, priv->rss_table, sizeof(old_table));
	priv->rss_hash = hash;
	if (key)
		memcpy(priv->rss_key, key, sizeof(priv->rss_key));
	if (table)
		for (i = 0; i < CORDON_RSS_TABLE_SIZE; i++)
			priv->rss_table[i] = table[i];
	if (!priv->queues_up)
		return 0;
	err = cordon_queue_sync_rss(priv);
	if (err) {
		priv->rss_hash = old_hash;
		memcpy(priv->rss_key, old_key, sizeof(old_key));
		memcpy(priv->rss_table, old_table, sizeof(old_table));
	}
	return err;
}

static int cordon_set_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh,
			   struct netlink_ext_ack *extack)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	if (rxfh->hfunc != ETH_RSS_HASH_NO_CHANGE && rxfh->hfunc != ETH_RSS_HASH_TOP) {
		NL_SET_ERR_MSG_MOD(extack, "the only hash function is Toeplitz");
		return -EOPNOTSUPP;
	}
	return change_rss(priv, priv->rss_hash, rxfh->key, rxfh->indir);
}

/* The bit that says whether ports (or the SPI) of a kind of packet are hashed. */
static u32 flow_to_hash(u32 flow_type)
{
	switch (flow_type) {
	case TCP_V4_FLOW:
		return CORDON_RSS_TCP4;
	case UDP_V4_FLOW:
		return CORDON_RSS_UDP4;
	case TCP_V6_FLOW:
		return CORDON_RSS_TCP6;
	case UDP_V6_FLOW:
		return CORDON_RSS_UDP6;
	case ESP_V4_FLOW:
		return CORDON_RSS_ESP4;
	case ESP_V6_FLOW:
		return CORDON_RSS_ESP6;
	default:
		return 0;
	}
}

#define FIELDS_L3 (RXH_IP_SRC | RXH_IP_DST)
#define FIELDS_L4 (RXH_L4_B_0_1 | RXH_L4_B_2_3)

static int cordon_get_rxfh_fields(struct net_device *netdev, struct ethtool_rxfh_fields *fields)
{
	struct cordon_priv *priv = netdev_priv(netdev);

	fields->data = FIELDS_L3;
	if (priv->rss_hash & flow_to_hash(fields->flow_type))
		fields->data |= FIELDS_L4;
	return 0;
}

static int cordon_set_rxfh_fields(struct net_device *netdev,
				  const struct ethtool_rxfh_fields *fields,
				  struct netlink_ext_ack *extack)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	u32 bit = flow_to_hash(fields->flow_type);

	if (fields->data == (FIELDS_L3 | FIELDS_L4) && bit)
		return change_rss(priv, priv->rss_hash | bit, NULL, NULL);
	if (fields->data == FIELDS_L3)
		return change_rss(priv, priv->rss_hash & ~bit, NULL, NULL);
	NL_SET_ERR_MSG_MOD(extack, "addresses are hashed always, the rest with both halves or not");
	return -EOPNOTSUPP;
}

const struct ethtool_ops cordon_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS | ETHTOOL_COALESCE_MAX_FRAMES,
	.get_drvinfo		= cordon_get_drvinfo,
	.get_regs_len		= cordon_get_regs_len,
	.get_regs		= cordon_get_regs,
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= cordon_get_link_ksettings,
	.get_ts_info		= ethtool_op_get_ts_info,
	.get_channels		= cordon_get_channels,
	.set_channels		= cordon_set_channels,
	.get_ringparam		= cordon_get_ringparam,
	.set_ringparam		= cordon_set_ringparam,
	.get_coalesce		= cordon_get_coalesce,
	.set_coalesce		= cordon_set_coalesce,
	.get_sset_count		= cordon_get_sset_count,
	.get_strings		= cordon_get_strings,
	.get_ethtool_stats	= cordon_get_ethtool_stats,
	.self_test		= cordon_self_test,
	.get_rx_ring_count	= cordon_get_rx_ring_count,
	.get_rxfh_key_size	= cordon_get_rxfh_key_size,
	.get_rxfh_indir_size	= cordon_get_rxfh_indir_size,
	.get_rxfh		= cordon_get_rxfh,
	.set_rxfh		= cordon_set_rxfh,
	.get_rxfh_fields	= cordon_get_rxfh_fields,
	.set_rxfh_fields	= cordon_set_rxfh_fields,
};
