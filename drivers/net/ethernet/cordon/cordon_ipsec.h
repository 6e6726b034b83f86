/* SPDX-License-Identifier: GPL-2.0-only */
/* Cordon: IPsec offload. */
#ifndef CORDON_IPSEC_OFFLOAD_H
#define CORDON_IPSEC_OFFLOAD_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/workqueue.h>
#include <net/xfrm.h>

#include "cordon.h"
#include "cordon_ipsec_rxtx.h"
#include "cordon_sa.h"

struct seq_file;

#if IS_ENABLED(CONFIG_CORDON_IPSEC)

/**
 * enum cordon_ipsec_stat - what the driver counts by itself
 * @CORDON_IPSEC_TX_DROP_SA_GONE: the stack chose an SA that this card doesn't have any more
 * @CORDON_IPSEC_TX_DROP_LAYOUT: headers lie where a descriptor can't tell, or a packet that should
 *	have been segmented wasn't
 * @CORDON_IPSEC_TX_DROP_NOT_READY: packet mode, the card was restarting
 * @CORDON_IPSEC_TX_DROP_ROUTE: packet mode, the packet would leave by another device, or another SA
 *	is to be applied after this one
 * @CORDON_IPSEC_TX_DROP_NO_MEMORY: packet mode, no memory to note the SA at the packet
 * @CORDON_IPSEC_RX_DROP_SA_GONE: a decrypted packet's SA was deleted meanwhile
 * @CORDON_IPSEC_RX_DROP_NO_MEMORY: no memory to note the SA at the packet
 * @CORDON_IPSEC_RX_SOFTWARE: crypto mode: the card couldn't decrypt, the stack does
 * @CORDON_IPSEC_SA_REFUSED: SAs that weren't taken
 * @CORDON_IPSEC_SA_RESTORED: SAs that were given to the card again after a reset
 * @CORDON_IPSEC_SA_LOST: SAs that the card didn't take again after a reset
 * @CORDON_IPSEC_STAT_CNT: number of counters
 */
enum cordon_ipsec_stat {
	CORDON_IPSEC_TX_DROP_SA_GONE,
	CORDON_IPSEC_TX_DROP_LAYOUT,
	CORDON_IPSEC_TX_DROP_NOT_READY,
	CORDON_IPSEC_TX_DROP_ROUTE,
	CORDON_IPSEC_TX_DROP_NO_MEMORY,
	CORDON_IPSEC_RX_DROP_SA_GONE,
	CORDON_IPSEC_RX_DROP_NO_MEMORY,
	CORDON_IPSEC_RX_SOFTWARE,
	CORDON_IPSEC_SA_REFUSED,
	CORDON_IPSEC_SA_RESTORED,
	CORDON_IPSEC_SA_LOST,
	CORDON_IPSEC_STAT_CNT,
};

/* How many SAs that were refused in packet mode are remembered. */
#define CORDON_IPSEC_REFUSALS 64

/**
 * struct cordon_ipsec_refusal - an SA that was refused in packet mode
 * @spi: SPI
 * @reqid: request id, 0 = nothing
 * @family: of @daddr
 * @mode: XFRM_MODE_*
 * @dir: XFRM_DEV_OFFLOAD_*
 * @fell_back: it was added in crypto mode then
 * @daddr: outer destination
 * @time: jiffies
 */
struct cordon_ipsec_refusal {
	__be32 spi;
	u32 reqid;
	u16 family;
	u8 mode;
	u8 dir;
	bool fell_back;
	xfrm_address_t daddr;
	unsigned long time;
};

/**
 * struct cordon_ipsec - IPsec offload of a function
 * @cdev: device
 * @lock: serializes what changes the card's tables with their restoration after a reset; protects
 *	@blocks, @limbo, @ghosts and @refusals. Commands are sent under it. It's taken with RTNL or
 *	xfrm_cfg_mutex held, and takes neither
 * @sas: SAs
 * @policies: policies
 * @blocks: state blocks
 * @limbo: SAs that the card may still know though it was told to delete them
 * @policy_limbo: policies of that kind
 * @ghosts: copies of SAs that are gone from the card, but may be named by received packets
 * @sa_cnt: SAs on the card
 * @policy_cnt: policies on the card
 * @packet_cnt: of the SAs, those in packet mode
 * @tunnel_cnt: of the SAs, those with a next hop
 * @wq: for the works below, in order
 * @del_work: deletes from the card what is in the two lists
 * @del_lock: protects the two lists; taken in any context
 * @sa_dels: SAs to be deleted
 * @policy_dels: policies to be deleted
 * @ghost_work: frees ghosts
 * @refresh_work: brings limits and ports to the card, and what SAs report to the stack
 * @nexthop_work: keeps next hops current
 * @netevent: tells of changed neighbours
 * @netdev_nb: tells when the network device goes down
 * @template_drops: packets dropped by policies with a template that the stack's counters know of
 * @block_drops: packets dropped by blocking policies that the stack's counters know of
 * @policy_order: age of the next policy
 * @refusals: SAs that were refused in packet mode lately
 * @next_refusal: where the next one is noted
 * @stats: enum cordon_ipsec_stat
 */
struct cordon_ipsec {
	struct cordon_dev *cdev;
	struct mutex lock; /* the card's tables, blocks, lists of SAs */
	struct cordon_handles sas;
	struct cordon_handles policies;
	struct cordon_sa_blocks blocks;
	struct list_head limbo;
	struct list_head policy_limbo;
	struct list_head ghosts;
	atomic_t sa_cnt;
	atomic_t policy_cnt;
	atomic_t packet_cnt;
	atomic_t tunnel_cnt;
	struct workqueue_struct *wq;
	struct work_struct del_work;
	spinlock_t del_lock; /* sa_dels, policy_dels */
	struct list_head sa_dels;
	struct list_head policy_dels;
	struct delayed_work ghost_work;
	struct delayed_work refresh_work;
	struct delayed_work nexthop_work;
	struct notifier_block netevent;
	struct notifier_block netdev_nb;
	atomic64_t template_drops;
	atomic64_t block_drops;
	u64 policy_order;
	struct cordon_ipsec_refusal refusals[CORDON_IPSEC_REFUSALS];
	unsigned int next_refusal;
	atomic64_t stats[CORDON_IPSEC_STAT_CNT];
};

/**
 * struct cordon_ipsec_restore - waits for the commands of a restoration
 * @cdev: device
 * @sent: commands of this round
 * @pending: commands under way, and one for who waits
 * @failed: commands that failed
 * @done: none is under way
 */
struct cordon_ipsec_restore {
	struct cordon_dev *cdev;
	unsigned int sent;
	atomic_t pending;
	atomic_t failed;
	struct completion done;
};

static inline void cordon_ipsec_restore_put(struct cordon_ipsec_restore *restore, int error)
{
	if (error)
		atomic_inc(&restore->failed);
	if (atomic_dec_and_test(&restore->pending))
		complete(&restore->done);
}

/* For the rest of the driver. */
int cordon_ipsec_init(struct cordon_dev *cdev);
void cordon_ipsec_exit(struct cordon_dev *cdev);
int cordon_ipsec_restore(struct cordon_dev *cdev);
int cordon_ipsec_stats_count(struct cordon_dev *cdev);
void cordon_ipsec_stats_strings(struct cordon_dev *cdev, u8 **data);
void cordon_ipsec_stats_get(struct cordon_dev *cdev, u64 **data);

/* cordon_ipsec.c */
struct cordon_dev *cordon_ipsec_dev(const struct net_device *dev);
struct cordon_sa *cordon_ipsec_sa(struct cordon_dev *cdev, const struct xfrm_state *x);
int cordon_ipsec_restore_get(struct cordon_ipsec_restore *restore);
int cordon_ipsec_no_memory(struct netlink_ext_ack *extack);
int cordon_ipsec_errno(const struct cordon_cmd_result *res, struct netlink_ext_ack *extack);

/* cordon_ipsec_check.c */
int cordon_ipsec_check(const struct cordon_dev *cdev, const struct xfrm_state *x,
		       struct netlink_ext_ack *extack);
void cordon_ipsec_check_show(struct seq_file *file, const struct cordon_dev *cdev);
u8 cordon_ipsec_mode(u8 xfrm_mode);
u8 cordon_ipsec_family(u16 family);

/* cordon_ipsec_suite.c */
int cordon_ipsec_suite_check(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
			     struct netlink_ext_ack *extack);
void cordon_ipsec_suite_fill(struct cordon_sa_cfg *cfg, const struct xfrm_state *x);
void cordon_ipsec_suite_show(struct seq_file *file, const struct cordon_caps_ipsec *caps);

/* cordon_ipsec_down.c */
int cordon_ipsec_down_init(struct cordon_ipsec *ipsec);
void cordon_ipsec_down_exit(struct cordon_ipsec *ipsec);

/* cordon_ipsec_fallback.c */
void cordon_ipsec_fallback_refused(struct cordon_ipsec *ipsec, const struct xfrm_state *x);
void cordon_ipsec_fallback_taken(struct cordon_ipsec *ipsec, const struct xfrm_state *x);
int cordon_ipsec_fallback_try(struct cordon_ipsec *ipsec, const struct xfrm_state *x,
			      struct netlink_ext_ack *extack);
int cordon_ipsec_fallback_check_policy(struct cordon_ipsec *ipsec, const struct xfrm_policy *xp,
				       struct netlink_ext_ack *extack);

/* cordon_ipsec_show.c */
void cordon_ipsec_show(struct seq_file *file, const struct cordon_dev *cdev);

/* cordon_ipsec_state.c */
void cordon_ipsec_state_load(struct cordon_sa *sa, const struct xfrm_state *x);
void cordon_ipsec_state_store(struct cordon_sa *sa, struct xfrm_state *x);
void cordon_ipsec_state_update_stats(struct cordon_sa *sa, struct xfrm_state *x);
bool cordon_ipsec_state_confirm(struct cordon_sa *sa, struct xfrm_state *x, u32 number);
void cordon_ipsec_state_refresh_work(struct work_struct *work);
void cordon_ipsec_event(struct cordon_dev *cdev, u16 type, u32 handle, u64 value);
void cordon_ipsec_events_lost(struct cordon_dev *cdev);

static inline void cordon_ipsec_count(struct cordon_ipsec *ipsec, enum cordon_ipsec_stat stat)
{
	atomic64_inc(&ipsec->stats[stat]);
}

#else

static inline int cordon_ipsec_init(struct cordon_dev *cdev)
{
	return 0;
}

static inline void cordon_ipsec_exit(struct cordon_dev *cdev)
{
}

static inline int cordon_ipsec_restore(struct cordon_dev *cdev)
{
	return 0;
}

static inline void cordon_ipsec_event(struct cordon_dev *cdev, u16 type, u32 handle, u64 value)
{
}

static inline void cordon_ipsec_events_lost(struct cordon_dev *cdev)
{
}

static inline void cordon_ipsec_check_show(struct seq_file *file, const struct cordon_dev *cdev)
{
}

static inline void cordon_ipsec_show(struct seq_file *file, const struct cordon_dev *cdev)
{
}

static inline int cordon_ipsec_stats_count(struct cordon_dev *cdev)
{
	return 0;
}

static inline void cordon_ipsec_stats_strings(struct cordon_dev *cdev, u8 **data)
{
}

static inline void cordon_ipsec_stats_get(struct cordon_dev *cdev, u64 **data)
{
}

#endif /* CONFIG_CORDON_IPSEC */

#endif
