/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cordon: the device, and what the driver's files offer each other.
 *
 * Contexts and locks, outermost first:
 *
 *   RTNL			configuration from the stack; resets
 *   cordon_dev.port_lock	port configuration and filters; commands are sent under it
 *   cordon_priv.stats_lock	port statistics; commands are sent under it
 *   cordon_cmd_queue.lock	command ring, tags; spinlock
 *
 * Command completions and events are taken from their rings by the thread of the admin interrupt,
 * cordon_event_thread(), which never sends a command. Events are acted upon by cordon_event_work()
 * on cordon_dev.wq, which may. NAPI owns the completion side of a queue pair, the stack's TX lock
 * the submission side. Queue pairs are created and destroyed under RTNL only.
 */
#ifndef CORDON_H
#define CORDON_H

#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/kfifo.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#include <cordon/abi.h>
#include <cordon/cmd.h>
#include <cordon/event.h>
#include <cordon/ipsec.h>
#include <cordon/regs.h>
#include <cordon/result.h>
#include <cordon/ring.h>

#include "cordon_cmd.h"

struct cordon_ipsec;
struct cordon_queue_pair;

#define CORDON_DRIVER_NAME "cordon"

#define CORDON_EVENT_LOG2 8
#define CORDON_EVENT_CNT BIT(CORDON_EVENT_LOG2)
/* Events that wait for cordon_event_work(). */
#define CORDON_EVENT_FIFO 512

/**
 * struct cordon_caps_port - struct cordon_cap_port in the CPU's order, checked and bounded
 * @features: CORDON_PORT_* and CORDON_FEATURE_*
 * @queue_pairs: queue pairs, 1 or more
 * @ring_log2: log2 of the longest ring
 * @mtu: greatest MTU
 * @addresses: entries of the address filter
 */
struct cordon_caps_port {
	u32 features;
	u16 queue_pairs;
	u16 ring_log2;
	u32 mtu;
	u32 addresses;
};

/**
 * struct cordon_caps_algorithm - struct cordon_algorithm in the CPU's order
 * @key_bytes: bit n - 1: a key of n bytes, without salt
 * @icv_bytes: bit n - 1: an ICV of n bytes
 * @present: 1 = the card has it, 0 = the rest is zero
 * @salt_len: bytes of the salt that follow the key, up to CORDON_SALT_MAX
 */
struct cordon_caps_algorithm {
	u64 key_bytes;
	u32 icv_bytes;
	u16 present;
	u16 salt_len;
};

/**
 * struct cordon_caps_ipsec - struct cordon_cap_ipsec in the CPU's order
 * @sa_max: SAs of both directions together
 * @policy_max: policies
 * @modes: mask of enum cordon_mode
 * @offloads: mask of enum cordon_offload
 * @sa_flags: CORDON_SA_* that are allowed
 * @replay_window_max: greatest window in packets
 * @families: bit CORDON_FAMILY_INET, bit CORDON_FAMILY_INET6
 * @unused: zero
 * @ciphers: by enum cordon_cipher
 * @auths: by enum cordon_auth
 */
struct cordon_caps_ipsec {
	u32 sa_max;
	u32 policy_max;
	u32 modes;
	u32 offloads;
	u32 sa_flags;
	u32 replay_window_max;
	u32 families;
	u32 unused;
	struct cordon_caps_algorithm ciphers[CORDON_CIPHER_CNT];
	struct cordon_caps_algorithm auths[CORDON_AUTH_CNT];
};

/**
 * struct cordon_caps - what a card can do; without padding, for it is compared
 * @port: capabilities of the port
 * @ipsec: capabilities of IPsec, zeros without
 */
struct cordon_caps {
	struct cordon_caps_port port;
	struct cordon_caps_ipsec ipsec;
};

/**
 * enum cordon_dev_flag - bits of cordon_dev.flags
 * @CORDON_DEV_ENABLED: the admin rings are in use, commands are taken
 * @CORDON_DEV_FAILED: the card failed or broke the contract; a reset is due. Commands get -EIO
 * @CORDON_DEV_GONE: the device doesn't answer any more (all-ones). Commands get -ENODEV
 */
enum cordon_dev_flag {
	CORDON_DEV_ENABLED,
	CORDON_DEV_FAILED,
	CORDON_DEV_GONE,
};

/**
 * struct cordon_vector - an interrupt vector
 * @cdev: device
 * @irq: Linux's number
 * @index: number of the vector in the device
 * @name: name in /proc/interrupts
 */
struct cordon_vector {
	struct cordon_dev *cdev;
	int irq;
	u16 index;
	char name[48];
};

/**
 * struct cordon_event_queue - event ring
 * @ring: events, written by the card
 * @dma: bus address of @ring
 * @cons: consumer index; of the admin thread
 * @fifo: copies for cordon_event_work(); the admin thread puts in, the work takes out
 * @lost: events were lost
 * @work: acts upon events
 */
struct cordon_event_queue {
	struct cordon_event *ring;
	dma_addr_t dma;
	u32 cons;
	DECLARE_KFIFO(fifo, struct cordon_event, CORDON_EVENT_FIFO);
	atomic_t lost;
	struct work_struct work;
};

/**
 * struct cordon_dev - a function of the card
 * @pdev: PCI device
 * @dev: device for DMA and messages
 * @netdev: network device
 * @netdev_ready: @netdev is complete, if not yet registered
 * @regs: BAR0
 * @doorbell: doorbell page of BAR2
 * @wake: wake page of BAR2
 * @flags: enum cordon_dev_flag
 * @port: capabilities of the port
 * @has_ipsec: @ipsec_caps is valid
 * @ipsec_caps: capabilities of IPsec
 * @ipsec: state of the IPsec offload, NULL without
 * @cmd: command queue
 * @events: event queue
 * @arm: last value of doorbell line 0's arm; of the admin thread
 * @vectors: interrupt vectors
 * @vector_cnt: number of them
 * @port_lock: see the top of this file
 * @wq: ordered queue for everything that waits for commands, except resets
 * @reset_work: resets the device; not on @wq, whose works may wait for commands that only the
 *	reset ends
 * @health_work: looks at the status register, at old commands, and at the port's counters
 * @stats_time: when it last did the latter, in jiffies
 * @resets: number of resets
 * @reset_window: when the first of the last few resets was, in jiffies
 * @reset_cnt: resets since then
 * @nonsense: values from the card that can't be
 * @generation: CORDON_STATUS_GENERATION at the last enable
 * @fw_version: fw_version register at the last enable
 * @devlink_registered: devlink instance is registered
 * @debugfs: directory
 */
struct cordon_dev {
	struct pci_dev *pdev;
	struct device *dev;
	struct net_device *netdev;
	bool netdev_ready;
	void __iomem *regs;
	struct cordon_doorbell __iomem *doorbell;
	struct cordon_wake __iomem *wake;
	unsigned long flags;

	struct cordon_caps_port port;
	bool has_ipsec;
	struct cordon_caps_ipsec ipsec_caps;
	struct cordon_ipsec *ipsec;

	struct cordon_cmd_queue cmd;
	struct cordon_event_queue events;
	u32 arm;
	struct cordon_vector vectors[CORDON_VECTORS_MAX];
	unsigned int vector_cnt;

	/* Protects the port's configuration in struct cordon_priv. */
	struct mutex port_lock;

	struct workqueue_struct *wq;
	struct work_struct reset_work;
	struct delayed_work health_work;
	unsigned long stats_time;
	atomic_t resets;
	unsigned long reset_window;
	unsigned int reset_cnt;
	atomic_t nonsense;
	u32 generation;
	u32 fw_version;

	bool devlink_registered;
	struct dentry *debugfs;
};

/**
 * struct cordon_coalesce - interrupt moderation of all queue pairs
 * @rx_usecs: microseconds
 * @rx_frames: completions
 * @tx_usecs: microseconds
 * @tx_frames: completions
 */
struct cordon_coalesce {
	u32 rx_usecs;
	u32 rx_frames;
	u16 tx_usecs;
	u16 tx_frames;
};

/*
 * Moderation at start: sent packets can wait for their completion, received ones only for what
 * comes with them.
 */
#define CORDON_COALESCE_RX_USECS 10
#define CORDON_COALESCE_RX_FRAMES 16
#define CORDON_COALESCE_TX_USECS 100
#define CORDON_COALESCE_TX_FRAMES 64

/**
 * struct cordon_netdev_tx_stats - a copy of a TX queue's counters
 * @packets: frames that left
 * @bytes: bytes of them
 * @gso_packets: packets that the card segmented
 * @gso_bytes: bytes of them
 * @gso_wire_packets: frames that they became
 * @gso_wire_bytes: bytes of those
 * @csum: packets whose checksum the card was asked for
 * @csum_none: packets that needed none
 * @stop: times that the queue was stopped
 * @wake: times that it was woken
 * @kicks: doorbells
 * @driver_dropped: packets that the driver dropped
 * @card_dropped: packets that the card dropped, or that were with it when it stopped
 */
struct cordon_netdev_tx_stats {
	u64 packets;
	u64 bytes;
	u64 gso_packets;
	u64 gso_bytes;
	u64 gso_wire_packets;
	u64 gso_wire_bytes;
	u64 csum;
	u64 csum_none;
	u64 stop;
	u64 wake;
	u64 kicks;
	u64 driver_dropped;
	u64 card_dropped;
};

/**
 * struct cordon_netdev_rx_stats - a copy of an RX queue's counters
 * @packets: packets
 * @bytes: bytes of them
 * @csum_good: packets whose checksum the card found right
 * @csum_none: the others
 * @alloc_fail: times that there was no memory for a buffer or packet
 * @dropped: packets that the driver dropped
 */
struct cordon_netdev_rx_stats {
	u64 packets;
	u64 bytes;
	u64 csum_good;
	u64 csum_none;
	u64 alloc_fail;
	u64 dropped;
};

/* Members of struct cordon_port_stats, all of them __le64, by number. */
#define CORDON_PORT_STATS_CNT (sizeof(struct cordon_port_stats) / sizeof(__le64))
#define CORDON_PORT_STAT(name) (offsetof(struct cordon_port_stats, name) / sizeof(__le64))

/**
 * struct cordon_priv - private part of the network device
 * @cdev: device
 * @qps: queue pairs, as many as the card has; those below @qp_cnt are used while @queues_up
 * @qp_cnt: number of queue pairs to use; RTNL
 * @tx_log2: log2 of the TX rings' entries; RTNL
 * @rx_log2: log2 of the RX rings' entries; RTNL
 * @queues_up: queue pairs exist, NAPI is enabled; if not, the card has no queue pairs or can't
 *	reach memory, so rings may be freed; RTNL
 * @rx_enabled: the port shall take frames; port_lock
 * @promiscuous: frames to any address; port_lock
 * @all_multicast: frames to any multicast address; port_lock
 * @mtu: MTU that the port shall have; port_lock
 * @mac: address that the port shall have; port_lock
 * @features: features that the port shall have; port_lock
 * @vlans: VLANs of the filter; port_lock
 * @coalesce: interrupt moderation; RTNL
 * @rss_hash: CORDON_RSS_*; RTNL
 * @rss_key: Toeplitz key; RTNL
 * @rss_table: queue pairs; RTNL
 * @rx_mode_work: brings filters and flags into the card
 * @stats_lock: serializes writers of the two below
 * @stats_base: port statistics of the time before the last reset
 * @stats: port statistics since the driver is bound, as last seen
 */
struct cordon_priv {
	struct cordon_dev *cdev;
	struct cordon_queue_pair *qps;
	unsigned int qp_cnt;
	u8 tx_log2;
	u8 rx_log2;
	bool queues_up;

	bool rx_enabled;
	bool promiscuous;
	bool all_multicast;
	u32 mtu;
	u8 mac[ETH_ALEN];
	netdev_features_t features;
	DECLARE_BITMAP(vlans, VLAN_N_VID);

	struct cordon_coalesce coalesce;
	u32 rss_hash;
	u8 rss_key[CORDON_RSS_KEY_SIZE];
	u8 rss_table[CORDON_RSS_TABLE_SIZE];

	struct work_struct rx_mode_work;

	/* Serializes writers of the two arrays. */
	struct mutex stats_lock;
	u64 stats_base[CORDON_PORT_STATS_CNT];
	u64 stats[CORDON_PORT_STATS_CNT];
};

/**
 * struct cordon_tx_accel - what the IPsec part puts into a TX descriptor
 * @flags: CORDON_TX_SA_CRYPTO | CORDON_TX_EXT or CORDON_TX_SA_PACKET, else 0
 * @l3_offset: see struct cordon_tx_desc
 * @esp_offset: see struct cordon_tx_ext
 * @sa: handle
 * @seq: see struct cordon_tx_ext
 */
struct cordon_tx_accel {
	u16 flags;
	u16 l3_offset;
	u16 esp_offset;
	u32 sa;
	u64 seq;
};

static inline struct cordon_dev *cordon_netdev_cdev(const struct net_device *netdev)
{
	return ((struct cordon_priv *)netdev_priv(netdev))->cdev;
}

/* May commands be sent, and will they be answered? */
static inline bool cordon_is_usable(const struct cordon_dev *cdev)
{
	return test_bit(CORDON_DEV_ENABLED, &cdev->flags) &&
	       !test_bit(CORDON_DEV_FAILED, &cdev->flags) &&
	       !test_bit(CORDON_DEV_GONE, &cdev->flags);
}

/* cordon_main.c */
void cordon_reset_schedule(struct cordon_dev *cdev);
void cordon_reset_now(struct cordon_dev *cdev);
void cordon_nonsense(struct cordon_dev *cdev, const char *what);

/* cordon_event.c */
int cordon_event_init(struct cordon_dev *cdev);
void cordon_event_exit(struct cordon_dev *cdev);
void cordon_event_rewind(struct cordon_dev *cdev);
void cordon_event_start(struct cordon_dev *cdev);
void cordon_event_stop(struct cordon_dev *cdev);
int cordon_event_alloc_vectors(struct cordon_dev *cdev);
void cordon_event_free_vectors(struct cordon_dev *cdev);
int cordon_event_request_irqs(struct cordon_dev *cdev);
void cordon_event_free_irqs(struct cordon_dev *cdev);
void cordon_event_arm(struct cordon_dev *cdev);

/* cordon_netdev.c */
int cordon_netdev_alloc(struct cordon_dev *cdev);
void cordon_netdev_free(struct cordon_dev *cdev);
void cordon_netdev_set_link(struct cordon_dev *cdev, bool up);
void cordon_netdev_get_tx_stats(struct cordon_queue_pair *qp,
				struct cordon_netdev_tx_stats *stats);
void cordon_netdev_get_rx_stats(struct cordon_queue_pair *qp,
				struct cordon_netdev_rx_stats *stats);
extern const struct net_device_ops cordon_netdev_ops;
int cordon_netdev_enable_rx(struct cordon_priv *priv, bool enable);
int cordon_netdev_sync(struct cordon_priv *priv);
void cordon_netdev_refresh_stats(struct cordon_priv *priv);
void cordon_netdev_keep_stats(struct cordon_priv *priv);

/* cordon_ethtool.c */
extern const struct ethtool_ops cordon_ethtool_ops;
extern const char *const cordon_result_names[CORDON_RESULT_CNT];

/* cordon_devlink.c */
struct cordon_dev *cordon_devlink_alloc(struct pci_dev *pdev);
void cordon_devlink_free(struct cordon_dev *cdev);
void cordon_devlink_register(struct cordon_dev *cdev);
void cordon_devlink_unregister(struct cordon_dev *cdev);

/* cordon_debugfs.c */
void cordon_debugfs_init(void);
void cordon_debugfs_exit(void);
void cordon_debugfs_add(struct cordon_dev *cdev);
void cordon_debugfs_del(struct cordon_dev *cdev);

#endif
