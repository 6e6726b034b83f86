// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: IPsec offload.
 *
 * An SA goes through four layers: the stack's struct xfrm_state, which cordon_ipsec_check.c judges;
 * struct cordon_sa_cfg, which knows nothing of the stack; the command that brings it to the card;
 * and the state block that both work on from then on (cordon_ipsec_state.c).
 *
 * The stack deletes SAs in atomic context and frees them later. Deleting makes an SA unusable at
 * once and lets a work tell the card; freeing waits for that. An SA that the card doesn't answer
 * for goes to limbo, with its index and its block, until the card is reset.
 *
 * When the stack updates an SA it adds a copy to the card and deletes it at once. Packets that came
 * through the copy may still wait in a ring, and are the original's (cordon_sa_current()). So a
 * copy is kept for a while as a ghost, which has nothing but its handle and its block.
 */

#include <linux/ethtool.h>
#include <linux/slab.h>
#include <net/xfrm.h>

#include "cordon_ipsec.h"
#include "cordon_nexthop.h"
#include "cordon_policy.h"

/* Handle of what isn't on the card: an SA that the stack waits for. No SA of the card has it. */
#define CORDON_HANDLE_ACQUIRE 1

/* Commands of a restoration that are sent before it waits for them; they never fill the ring. */
#define CORDON_RESTORE_ROUND (CORDON_CMD_CNT / 2)

/* How long packets may wait in a ring until NAPI takes them. */
#define CORDON_GHOST_TIME HZ

static const struct xfrmdev_ops cordon_ipsec_xfrmdev_ops;

static const char *const param_names[] = {
	[CORDON_PARAM_NONE] = "request",
	[CORDON_PARAM_LENGTH] = "length",
	[CORDON_PARAM_RESERVED] = "reserved field",
	[CORDON_PARAM_HANDLE] = "handle",
	[CORDON_PARAM_FLAGS] = "flags",
	[CORDON_PARAM_DIRECTION] = "direction",
	[CORDON_PARAM_OFFLOAD] = "offload mode",
	[CORDON_PARAM_MODE] = "mode",
	[CORDON_PARAM_FAMILY] = "address family",
	[CORDON_PARAM_PROTOCOL] = "protocol",
	[CORDON_PARAM_CIPHER] = "cipher",
	[CORDON_PARAM_KEY_LENGTH] = "key length",
	[CORDON_PARAM_ICV_LENGTH] = "ICV length",
	[CORDON_PARAM_SPI] = "SPI",
	[CORDON_PARAM_REPLAY_WINDOW] = "replay window",
	[CORDON_PARAM_STATE] = "state block",
	[CORDON_PARAM_ENCAP] = "encapsulation",
	[CORDON_PARAM_SELECTOR] = "selector",
	[CORDON_PARAM_ACTION] = "action",
	[CORDON_PARAM_AUTH] = "authentication",
};

/**
 * cordon_ipsec_no_memory() - what a lack of memory means to the stack
 * @extack: says it in words
 *
 * Context: any.
 * Return: -EAGAIN.
 */
int cordon_ipsec_no_memory(struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG_MOD(extack, "out of memory, try again");

	return -EAGAIN;
}

/**
 * cordon_ipsec_errno() - what a command's failure means to the stack
 * @res: result of the command, zeroed if it wasn't even made
 * @extack: says it in words
 *
 * Context: any.
 * Return: -EOPNOTSUPP, -ENOSPC, -EAGAIN.
 */
int cordon_ipsec_errno(const struct cordon_cmd_result *res, struct netlink_ext_ack *extack)
{
	const char *name = NULL;

	switch (res->status) {
	case CORDON_CMD_STATUS_OK:
		return cordon_ipsec_no_memory(extack);
	case CORDON_CMD_STATUS_FULL:
		NL_SET_ERR_MSG_FMT_MOD(extack, "the card's table is full, it holds %llu", res->max);
		return -ENOSPC;
	case CORDON_CMD_STATUS_UNKNOWN_OPCODE:
	case CORDON_CMD_STATUS_INVALID:
	case CORDON_CMD_STATUS_UNSUPPORTED:
	case CORDON_CMD_STATUS_EXISTS:
		if (res->param < ARRAY_SIZE(param_names))
			name = param_names[res->param];
		NL_SET_ERR_MSG_FMT_MOD(extack, "%s refused by the card, allowed: %llu to %llu",
				       name ?: "parameter", res->min, res->max);
		return -EOPNOTSUPP;
	default:
		NL_SET_ERR_MSG_FMT_MOD(extack, "card not ready (error %d), try again", res->error);
		return -EAGAIN;
	}
}

/**
 * cordon_ipsec_dev() - the card behind a network device
 * @dev: any network device
 *
 * Context: any.
 * Return: the card, NULL if the device isn't one that offloads IPsec by this driver.
 */
struct cordon_dev *cordon_ipsec_dev(const struct net_device *dev)
{
	struct cordon_dev *cdev;

	if (dev->xfrmdev_ops != &cordon_ipsec_xfrmdev_ops)
		return NULL;

	cdev = cordon_netdev_cdev(dev);

	return cdev->ipsec ? cdev : NULL;
}

/**
 * cordon_ipsec_sa() - the card's SA of one of the stack's
 * @cdev: device
 * @x: the stack's
 *
 * The stack keeps a handle, not a pointer: when the device goes down SAs are freed while packets
 * that chose them are still under way.
 *
 * Context: RCU read side, or the stack keeps the SA from being freed.
 * Return: SA, NULL if this card has none for it.
 */
struct cordon_sa *cordon_ipsec_sa(struct cordon_dev *cdev, const struct xfrm_state *x)
{
	u32 handle = READ_ONCE(x->xso.offload_handle);
	struct cordon_sa *sa;

	if (handle == CORDON_HANDLE_ACQUIRE)
		return NULL;

	sa = cordon_handles_find(&cdev->ipsec->sas, handle);

	return sa && sa->handle == handle && sa->owner == x ? sa : NULL;
}

/* Header fields are the card's business in packet mode only. */
static u32 state_flags(const struct xfrm_state *x, bool packet, bool out)
{
	u32 flags = 0;

	if (x->props.flags & XFRM_STATE_ESN)
		flags |= CORDON_SA_ESN;
	if (x->encap)
		flags |= CORDON_SA_ENCAP;
	if (!packet)
		return flags;

	if (out && x->props.extra_flags & XFRM_SA_XFLAG_OSEQ_MAY_WRAP)
		flags |= CORDON_SA_SEQ_MAY_WRAP;
	if (x->props.mode != XFRM_MODE_TUNNEL)
		return flags;

	if (x->props.flags & XFRM_STATE_NOECN)
		flags |= CORDON_SA_NO_ECN;
	if (!out && x->props.flags & XFRM_STATE_DECAP_DSCP)
		flags |= CORDON_SA_DECAP_DSCP;
	if (out && x->props.extra_flags & XFRM_SA_XFLAG_DONT_ENCAP_DSCP)
		flags |= CORDON_SA_NO_DSCP;
	if (out && x->props.family == AF_INET && x->props.flags & XFRM_STATE_NOPMTUDISC)
		flags |= CORDON_SA_NO_PMTU_DISC;

	return flags;
}

/*
 * The stack matches a selector without looking at its family: one that says nothing lets packets of
 * both through.
 */
static void fill_selector(struct cordon_sa_cfg *cfg, const struct xfrm_selector *sel)
{
	if (!sel->prefixlen_s && !sel->prefixlen_d && !sel->proto && !sel->sport_mask &&
	    !sel->dport_mask)
		return;

	cordon_policy_fill_selector(&cfg->selector, sel);
}

static void fill_cfg(struct cordon_sa_cfg *cfg, const struct xfrm_state *x)
{
	bool packet = x->xso.type == XFRM_DEV_OFFLOAD_PACKET;
	bool out = x->xso.dir == XFRM_DEV_OFFLOAD_OUT;
	size_t addr_len = x->props.family == AF_INET ? sizeof(x->id.daddr.a4) :
						       sizeof(x->id.daddr);
	u32 window = x->replay_esn ? x->replay_esn->replay_window : x->props.replay_window;

	cfg->flags = cpu_to_le32(state_flags(x, packet, out));
	cfg->spi = x->id.spi;
	cfg->reqid = cpu_to_le32(x->props.reqid);
	cfg->direction = out ? CORDON_DIRECTION_OUT : CORDON_DIRECTION_IN;
	cfg->offload = packet ? CORDON_OFFLOAD_PACKET : CORDON_OFFLOAD_CRYPTO;
	cfg->mode = cordon_ipsec_mode(x->props.mode);
	cfg->family = cordon_ipsec_family(x->props.family);
	/* In crypto mode the card needs it to guess a number's upper half as the stack does. */
	if (!out && (packet || x->props.flags & XFRM_STATE_ESN))
		cfg->replay_window = cpu_to_le32(window);
	cfg->if_id = cpu_to_le32(x->if_id);
	memcpy(cfg->saddr, &x->props.saddr, addr_len);
	memcpy(cfg->daddr, &x->id.daddr, addr_len);
	if (x->encap) {
		cfg->encap_sport = x->encap->encap_sport;
		cfg->encap_dport = x->encap->encap_dport;
	}
	if (packet)
		fill_selector(cfg, &x->sel);
	cordon_ipsec_suite_fill(cfg, x);
}

/* Could the card still use the SA after a command ended with this error? */
static bool is_doubtful(int err)
{
	return err == -ETIMEDOUT || err == -EIO || err == -ENODEV;
}

static void release_sa(struct cordon_ipsec *ipsec, struct cordon_sa *sa)
{
	lockdep_assert_held(&ipsec->lock);

	/* It's dead: even if it has to stay, it isn't restored. */
	cordon_sa_wipe(sa);

	if (sa->on_card) {
		cordon_handles_publish(&ipsec->sas, sa->handle, NULL);
		list_add_tail(&sa->del_node, &ipsec->limbo);
		return;
	}

	if (sa->block && !cordon_sa_is_out(sa) && cordon_sa_block_is_shared(sa)) {
		sa->deleted_at = jiffies;
		list_add_tail(&sa->del_node, &ipsec->ghosts);
		queue_delayed_work(ipsec->wq, &ipsec->ghost_work, CORDON_GHOST_TIME);
		return;
	}

	cordon_handles_release(&ipsec->sas, sa->handle);
	cordon_sa_free(&ipsec->blocks, sa);
}

/* Free ghosts: those of age, or all if their indices are needed. */
static void drop_ghosts(struct cordon_ipsec *ipsec, bool all)
{
	struct cordon_sa *sa, *tmp;

	lockdep_assert_held(&ipsec->lock);

	list_for_each_entry_safe(sa, tmp, &ipsec->ghosts, del_node) {
		if (!all && time_before(jiffies, sa->deleted_at + CORDON_GHOST_TIME))
			break;
		list_del_init(&sa->del_node);
		cordon_handles_release(&ipsec->sas, sa->handle);
		cordon_sa_free(&ipsec->blocks, sa);
	}
}

static void ghost_work(struct work_struct *work)
{
	struct cordon_ipsec *ipsec = container_of(to_delayed_work(work), struct cordon_ipsec,
						  ghost_work);

	mutex_lock(&ipsec->lock);
	drop_ghosts(ipsec, false);
	if (!list_empty(&ipsec->ghosts))
		queue_delayed_work(ipsec->wq, &ipsec->ghost_work, CORDON_GHOST_TIME);
	mutex_unlock(&ipsec->lock);
}

static void drop_limbo(struct cordon_ipsec *ipsec)
{
	struct cordon_sa *sa, *tmp;

	list_for_each_entry_safe(sa, tmp, &ipsec->limbo, del_node) {
		list_del_init(&sa->del_node);
		cordon_handles_release(&ipsec->sas, sa->handle);
		cordon_sa_free(&ipsec->blocks, sa);
	}
}

static void del_from_card(struct cordon_ipsec *ipsec, struct cordon_sa *sa)
{
	struct cordon_cmd_result res = {};
	u64 arg[4] = { sa->handle };
	int err;

	lockdep_assert_held(&ipsec->lock);

	if (!sa->on_card)
		return;

	err = cordon_cmd_exec(ipsec->cdev, CORDON_CMD_SA_DEL, NULL, 0, NULL, 0, arg, &res);
	if (!err || res.status == CORDON_CMD_STATUS_NOT_FOUND)
		WRITE_ONCE(sa->on_card, false);
}

static void count_sa(struct cordon_ipsec *ipsec, const struct cordon_sa *sa, int number)
{
	atomic_add(number, &ipsec->sa_cnt);
	if (cordon_sa_is_packet(sa))
		atomic_add(number, &ipsec->packet_cnt);
	if (cordon_sa_has_next_hop(sa))
		atomic_add(number, &ipsec->tunnel_cnt);
}

static int insert_sa(struct cordon_ipsec *ipsec, struct cordon_sa *sa, struct xfrm_state *x,
		     struct netlink_ext_ack *extack)
{
	struct cordon_cmd_result res = {};
	int err;

	lockdep_assert_held(&ipsec->lock);

	cordon_sa_follow(&ipsec->blocks, sa);
	err = cordon_sa_block_get(&ipsec->blocks, sa, x->lastused);
	if (err)
		return cordon_ipsec_no_memory(extack);
	if (list_is_singular(&sa->block->sas))
		cordon_ipsec_state_load(sa, x);
	if (cordon_sa_has_next_hop(sa))
		cordon_nexthop_resolve(ipsec, sa);

	/* The card may name it before it has answered. */
	cordon_handles_publish(&ipsec->sas, sa->handle, sa);
	err = cordon_cmd_exec(ipsec->cdev, CORDON_CMD_SA_ADD, &sa->cfg, sizeof(sa->cfg), NULL, 0,
			      NULL, &res);
	WRITE_ONCE(sa->on_card, !err || is_doubtful(err));

	return err ? cordon_ipsec_errno(&res, extack) : 0;
}

static int add_sa(struct cordon_dev *cdev, struct xfrm_state *x, struct netlink_ext_ack *extack)
{
	struct cordon_ipsec *ipsec = cdev->ipsec;
	struct cordon_sa *sa;
	int err;

	if (!cordon_is_usable(cdev)) {
		NL_SET_ERR_MSG_MOD(extack, "card not ready, try again");
		return -EAGAIN;
	}

	sa = cordon_sa_alloc();
	if (!sa)
		return cordon_ipsec_no_memory(extack);
	sa->ipsec = ipsec;
	sa->owner = x;
	sa->mark = xfrm_smark_get(0, x);
	fill_cfg(&sa->cfg, x);

	mutex_lock(&ipsec->lock);
	err = cordon_handles_reserve(&ipsec->sas, &sa->handle);
	if (err == -ENOSPC && !list_empty(&ipsec->ghosts)) {
		drop_ghosts(ipsec, true);
		err = cordon_handles_reserve(&ipsec->sas, &sa->handle);
	}
	if (err) {
		if (err == -ENOSPC)
			NL_SET_ERR_MSG_FMT_MOD(extack,
					       "SA %u not supported, the card's table holds %u",
					       ipsec->sas.max + 1, ipsec->sas.max);
		else
			err = cordon_ipsec_no_memory(extack);
		cordon_sa_free(&ipsec->blocks, sa);
		mutex_unlock(&ipsec->lock);
		return err;
	}

	sa->cfg.handle = cpu_to_le32(sa->handle);
	err = insert_sa(ipsec, sa, x, extack);
	if (err) {
		WRITE_ONCE(sa->dead, true);
		release_sa(ipsec, sa);
		mutex_unlock(&ipsec->lock);
		return err;
	}

	x->xso.offload_handle = sa->handle;
	count_sa(ipsec, sa, 1);
	mutex_unlock(&ipsec->lock);

	if (cordon_sa_is_packet(sa))
		queue_delayed_work(ipsec->wq, &ipsec->refresh_work, HZ);
	cordon_nexthop_kick(ipsec);

	return 0;
}

static int cordon_ipsec_state_add(struct net_device *dev, struct xfrm_state *x,
				  struct netlink_ext_ack *extack)
{
	bool packet = x->xso.type == XFRM_DEV_OFFLOAD_PACKET;
	struct cordon_dev *cdev = cordon_ipsec_dev(dev);
	int err;

	if (!cdev) {
		NL_SET_ERR_MSG_MOD(extack, "IPsec offload not supported by this card");
		return -EOPNOTSUPP;
	}

	/* Atomic context: the stack waits for a key exchange. The SA comes by another call. */
	if (x->xso.flags & XFRM_DEV_OFFLOAD_FLAG_ACQ) {
		x->xso.offload_handle = CORDON_HANDLE_ACQUIRE;
		return 0;
	}

	if (!packet) {
		err = cordon_ipsec_fallback_try(cdev->ipsec, x, extack);
		if (err)
			return err;
	}

	err = cordon_ipsec_check(cdev, x, extack);
	if (!err)
		err = add_sa(cdev, x, extack);
	if (!err) {
		if (packet)
			cordon_ipsec_fallback_taken(cdev->ipsec, x);
		return 0;
	}

	cordon_ipsec_count(cdev->ipsec, CORDON_IPSEC_SA_REFUSED);

	/* Only by this error the stack's own crypto takes over. */
	if (!packet)
		return -EOPNOTSUPP;
	cordon_ipsec_fallback_refused(cdev->ipsec, x);

	return err;
}

static void kill_sa(struct cordon_ipsec *ipsec, struct cordon_sa *sa)
{
	spin_lock_bh(&ipsec->del_lock);
	if (!sa->dead) {
		WRITE_ONCE(sa->dead, true);
		list_add_tail(&sa->del_node, &ipsec->sa_dels);
		queue_work(ipsec->wq, &ipsec->del_work);
	}
	spin_unlock_bh(&ipsec->del_lock);
}

static void cordon_ipsec_state_delete(struct net_device *dev, struct xfrm_state *x)
{
	struct cordon_dev *cdev = cordon_ipsec_dev(dev);
	struct cordon_sa *sa;

	sa = cdev ? cordon_ipsec_sa(cdev, x) : NULL;
	if (!sa)
		return;

	if (!cordon_sa_block_is_shared(sa)) {
		cordon_ipsec_state_update_stats(sa, x);
		kill_sa(cdev->ipsec, sa);
		return;
	}

	/*
	 * What isn't counted yet is left to the other SA: this is a copy that the stack made to
	 * update it, or the other is a copy with new addresses, made with this one's counters.
	 * Limits and ports may have been updated.
	 */
	cordon_ipsec_state_store(sa, x);
	kill_sa(cdev->ipsec, sa);
	mod_delayed_work(cdev->ipsec->wq, &cdev->ipsec->refresh_work, 0);
}

static void cordon_ipsec_state_free(struct net_device *dev, struct xfrm_state *x)
{
	struct cordon_dev *cdev = cordon_ipsec_dev(dev);
	struct cordon_ipsec *ipsec;
	struct cordon_sa *sa;

	sa = cdev ? cordon_ipsec_sa(cdev, x) : NULL;
	if (!sa)
		return;
	ipsec = cdev->ipsec;

	/* An SA that never got into the stack's tables is freed without having been deleted. */
	if (!READ_ONCE(sa->dead)) {
		kill_sa(ipsec, sa);
		synchronize_rcu();
	}

	mutex_lock(&ipsec->lock);
	spin_lock_bh(&ipsec->del_lock);
	list_del_init(&sa->del_node);
	spin_unlock_bh(&ipsec->del_lock);

	del_from_card(ipsec, sa);
	count_sa(ipsec, sa, -1);
	release_sa(ipsec, sa);
	mutex_unlock(&ipsec->lock);

	x->xso.offload_handle = 0;
}

static struct cordon_sa *pop_pending(struct cordon_ipsec *ipsec)
{
	struct cordon_sa *sa;

	spin_lock_bh(&ipsec->del_lock);
	sa = list_first_entry_or_null(&ipsec->sa_dels, struct cordon_sa, del_node);
	if (sa)
		list_del_init(&sa->del_node);
	spin_unlock_bh(&ipsec->del_lock);

	return sa;
}

static void del_work(struct work_struct *work)
{
	struct cordon_ipsec *ipsec = container_of(work, struct cordon_ipsec, del_work);
	struct cordon_sa *sa;

	do {
		/* Under the lock, so that the SA isn't freed meanwhile. */
		mutex_lock(&ipsec->lock);
		sa = pop_pending(ipsec);
		if (sa)
			del_from_card(ipsec, sa);
		mutex_unlock(&ipsec->lock);
	} while (sa);

	cordon_policy_del_pending(ipsec);
}

/* In crypto mode the card keeps track of the upper half by itself. */
static void cordon_ipsec_state_advance_esn(struct xfrm_state *x)
{
}

static void cordon_ipsec_update_stats(struct xfrm_state *x)
{
	struct net_device *dev = READ_ONCE(x->xso.dev);
	struct cordon_dev *cdev;
	struct cordon_sa *sa;

	cdev = dev ? cordon_ipsec_dev(dev) : NULL;
	if (!cdev)
		return;

	rcu_read_lock();
	sa = cordon_ipsec_sa(cdev, x);
	if (sa && !READ_ONCE(sa->dead))
		cordon_ipsec_state_update_stats(sa, x);
	rcu_read_unlock();
}

static const struct xfrmdev_ops cordon_ipsec_xfrmdev_ops = {
	.xdo_dev_state_add = cordon_ipsec_state_add,
	.xdo_dev_state_delete = cordon_ipsec_state_delete,
	.xdo_dev_state_free = cordon_ipsec_state_free,
	.xdo_dev_offload_ok = cordon_ipsec_offload_ok,
	.xdo_dev_state_advance_esn = cordon_ipsec_state_advance_esn,
	.xdo_dev_state_update_stats = cordon_ipsec_update_stats,
	.xdo_dev_policy_add = cordon_policy_add,
	.xdo_dev_policy_delete = cordon_policy_delete,
	.xdo_dev_policy_free = cordon_policy_free,
};

static void restore_begin(struct cordon_ipsec_restore *restore)
{
	restore->sent = 0;
	atomic_set(&restore->pending, 1);
}

/*
 * RTNL is held, so no one else can reset a card that stops answering now. The reset ends commands
 * under way with an error.
 */
static int restore_end(struct cordon_ipsec_restore *restore)
{
	struct cordon_dev *cdev = restore->cdev;

	cordon_ipsec_restore_put(restore, 0);
	while (!wait_for_completion_timeout(&restore->done, HZ / 20)) {
		if (cordon_is_usable(cdev) && !cordon_cmd_is_late(cdev))
			continue;
		cordon_reset_now(cdev);
		wait_for_completion(&restore->done);
		return -EIO;
	}

	return 0;
}

/**
 * cordon_ipsec_restore_get() - note a command that is about to be sent
 * @restore: waits for it
 *
 * Context: process, RTNL; sleeps.
 * Return: 0, -EIO if the card doesn't answer any more: the command must not be sent.
 */
int cordon_ipsec_restore_get(struct cordon_ipsec_restore *restore)
{
	int err;

	if (restore->sent == CORDON_RESTORE_ROUND) {
		err = restore_end(restore);
		restore_begin(restore);
		if (err)
			return err;
	}
	restore->sent++;
	atomic_inc(&restore->pending);

	return 0;
}

static void sa_restored(void *ctx, const struct cordon_cmd_result *res)
{
	struct cordon_sa *sa = ctx;

	/* What was added since the reset is there already, and no other SA has the handle. */
	int err = res->status == CORDON_CMD_STATUS_EXISTS ? 0 : res->error;

	if (err)
		WRITE_ONCE(sa->on_card, is_doubtful(err));
	cordon_ipsec_restore_put(sa->restore, err);
}

static int restore_sas(struct cordon_ipsec *ipsec, struct cordon_ipsec_restore *restore)
{
	struct cordon_sa *sa;
	unsigned long index;
	int err;

	xa_for_each(&ipsec->sas.xa, index, sa)
		WRITE_ONCE(sa->on_card, false);

	xa_for_each(&ipsec->sas.xa, index, sa) {
		if (READ_ONCE(sa->dead))
			continue;
		if (cordon_sa_has_next_hop(sa))
			cordon_nexthop_resolve(ipsec, sa);

		err = cordon_ipsec_restore_get(restore);
		if (err)
			return err;

		sa->restore = restore;
		WRITE_ONCE(sa->on_card, true);
		err = cordon_cmd_post(ipsec->cdev, CORDON_CMD_SA_ADD, &sa->cfg, sizeof(sa->cfg),
				      NULL, 0, NULL, sa_restored, sa);
		if (err) {
			WRITE_ONCE(sa->on_card, false);
			cordon_ipsec_restore_put(restore, err);
			return err;
		}
		cordon_ipsec_count(ipsec, CORDON_IPSEC_SA_RESTORED);
	}

	return 0;
}

static int restore_all(struct cordon_ipsec *ipsec, struct cordon_ipsec_restore *restore,
		       int (*send)(struct cordon_ipsec *ipsec,
				   struct cordon_ipsec_restore *restore))
{
	int err, end_err;

	restore->cdev = ipsec->cdev;
	init_completion(&restore->done);
	restore_begin(restore);
	err = send(ipsec, restore);
	/* Also after an error: what was sent refers to @restore. */
	end_err = restore_end(restore);

	return err ?: end_err;
}

/**
 * cordon_ipsec_restore() - give the card its policies and SAs again
 * @cdev: device, just enabled after a reset that made it forget them
 *
 * The state blocks are where they were: numbers and windows go on.
 *
 * Context: process, RTNL.
 * Return: 0, also if there are SAs that the card didn't take; -EIO if it stopped answering or there
 * are such policies, else the -errno why the commands couldn't be sent. After an error the card
 * must be reset before it may receive.
 */
int cordon_ipsec_restore(struct cordon_dev *cdev)
{
	struct cordon_ipsec *ipsec = cdev->ipsec;
	struct cordon_ipsec_restore policies = {};
	struct cordon_ipsec_restore sas = {};
	unsigned int failed;
	int err;

	if (!ipsec)
		return 0;

	mutex_lock(&ipsec->lock);
	drop_limbo(ipsec);
	cordon_policy_drop_limbo(ipsec);

	/*
	 * Policies first, and all of them: without its SA a packet is dropped, without its policy
	 * it's taken in clear.
	 */
	err = restore_all(ipsec, &policies, cordon_policy_restore);
	failed = atomic_read(&policies.failed);
	if (!err && failed) {
		netdev_err(cdev->netdev, "%u policies weren't taken after the reset\n", failed);
		err = -EIO;
	}
	if (!err)
		err = restore_all(ipsec, &sas, restore_sas);
	mutex_unlock(&ipsec->lock);

	failed = atomic_read(&sas.failed);
	if (!err && failed) {
		atomic64_add(failed, &ipsec->stats[CORDON_IPSEC_SA_LOST]);
		netdev_err(cdev->netdev, "%u SAs weren't taken after the reset\n", failed);
	}

	return err;
}

static const char stat_names[][ETH_GSTRING_LEN] = {
	[CORDON_IPSEC_TX_DROP_SA_GONE] = "ipsec_tx_drop_sa_gone",
	[CORDON_IPSEC_TX_DROP_LAYOUT] = "ipsec_tx_drop_layout",
	[CORDON_IPSEC_TX_DROP_NOT_READY] = "ipsec_tx_drop_not_ready",
	[CORDON_IPSEC_TX_DROP_ROUTE] = "ipsec_tx_drop_route",
	[CORDON_IPSEC_TX_DROP_NO_MEMORY] = "ipsec_tx_drop_no_memory",
	[CORDON_IPSEC_RX_DROP_SA_GONE] = "ipsec_rx_drop_sa_gone",
	[CORDON_IPSEC_RX_DROP_NO_MEMORY] = "ipsec_rx_drop_no_memory",
	[CORDON_IPSEC_RX_SOFTWARE] = "ipsec_rx_software",
	[CORDON_IPSEC_SA_REFUSED] = "ipsec_sa_refused",
	[CORDON_IPSEC_SA_RESTORED] = "ipsec_sa_restored",
	[CORDON_IPSEC_SA_LOST] = "ipsec_sa_lost",
};

/**
 * cordon_ipsec_stats_count() - how many counters ethtool shows
 * @cdev: device
 *
 * Context: any.
 * Return: number of counters.
 */
int cordon_ipsec_stats_count(struct cordon_dev *cdev)
{
	return cdev->ipsec ? CORDON_IPSEC_STAT_CNT + 2 : 0;
}

/**
 * cordon_ipsec_stats_strings() - their names
 * @cdev: device
 * @data: where to write, moved on
 *
 * Context: any.
 */
void cordon_ipsec_stats_strings(struct cordon_dev *cdev, u8 **data)
{
	unsigned int i;

	if (!cdev->ipsec)
		return;

	for (i = 0; i < CORDON_IPSEC_STAT_CNT; i++)
		ethtool_puts(data, stat_names[i]);
	ethtool_puts(data, "ipsec_sas");
	ethtool_puts(data, "ipsec_policies");
}

/**
 * cordon_ipsec_stats_get() - their values
 * @cdev: device
 * @data: where to write, moved on
 *
 * Context: any.
 */
void cordon_ipsec_stats_get(struct cordon_dev *cdev, u64 **data)
{
	struct cordon_ipsec *ipsec = cdev->ipsec;
	unsigned int i;

	if (!ipsec)
		return;

	for (i = 0; i < CORDON_IPSEC_STAT_CNT; i++)
		*(*data)++ = atomic64_read(&ipsec->stats[i]);
	*(*data)++ = atomic_read(&ipsec->sa_cnt);
	*(*data)++ = atomic_read(&ipsec->policy_cnt);
}

static void setup_netdev(struct net_device *netdev)
{
	netdev->xfrmdev_ops = &cordon_ipsec_xfrmdev_ops;
	netdev->features |= NETIF_F_HW_ESP;
	netdev->hw_features |= NETIF_F_HW_ESP;
	/* The stack marks ESP packets as encapsulated, and then looks here. */
	netdev->hw_enc_features |= NETIF_F_HW_ESP | NETIF_F_SG | NETIF_F_HIGHDMA;
}

/**
 * cordon_ipsec_init() - offer IPsec offload
 * @cdev: device, its capabilities known; the network device isn't registered yet
 *
 * Context: process.
 * Return: 0, also if the card does no IPsec; -ENOMEM.
 */
int cordon_ipsec_init(struct cordon_dev *cdev)
{
	struct cordon_ipsec *ipsec;
	int err = -ENOMEM;

	if (!cdev->has_ipsec || !cdev->ipsec_caps.offloads)
		return 0;

	ipsec = kzalloc_obj(*ipsec);
	if (!ipsec)
		return -ENOMEM;

	ipsec->cdev = cdev;
	mutex_init(&ipsec->lock);
	spin_lock_init(&ipsec->del_lock);
	INIT_LIST_HEAD(&ipsec->limbo);
	INIT_LIST_HEAD(&ipsec->policy_limbo);
	INIT_LIST_HEAD(&ipsec->ghosts);
	INIT_LIST_HEAD(&ipsec->sa_dels);
	INIT_LIST_HEAD(&ipsec->policy_dels);
	INIT_WORK(&ipsec->del_work, del_work);
	INIT_DELAYED_WORK(&ipsec->ghost_work, ghost_work);
	INIT_DELAYED_WORK(&ipsec->refresh_work, cordon_ipsec_state_refresh_work);

	ipsec->wq = alloc_ordered_workqueue("cordon-ipsec-%s", 0, pci_name(cdev->pdev));
	if (!ipsec->wq)
		goto err_free;
	err = cordon_sa_blocks_init(&ipsec->blocks, cdev->dev);
	if (err)
		goto err_destroy_wq;
	err = cordon_nexthop_init(ipsec);
	if (err)
		goto err_exit_blocks;

	cordon_handles_init(&ipsec->sas, cdev->ipsec_caps.sa_max);
	cordon_handles_init(&ipsec->policies, cdev->ipsec_caps.policy_max);
	err = cordon_ipsec_down_init(ipsec);
	if (err)
		goto err_exit_handles;
	cdev->ipsec = ipsec;
	setup_netdev(cdev->netdev);

	return 0;

err_exit_handles:
	cordon_handles_exit(&ipsec->policies);
	cordon_handles_exit(&ipsec->sas);
	cordon_nexthop_exit(ipsec);
err_exit_blocks:
	cordon_sa_blocks_exit(&ipsec->blocks);
err_destroy_wq:
	destroy_workqueue(ipsec->wq);
err_free:
	mutex_destroy(&ipsec->lock);
	kfree(ipsec);

	return err;
}

/**
 * cordon_ipsec_exit() - end IPsec offload
 * @cdev: device. The network device is unregistered, or never was registered: the stack has freed
 *	all its SAs and policies. Commands can still be sent, or fail
 *
 * Context: process.
 */
void cordon_ipsec_exit(struct cordon_dev *cdev)
{
	struct cordon_ipsec *ipsec = cdev->ipsec;

	if (!ipsec)
		return;

	cordon_ipsec_down_exit(ipsec);
	cordon_nexthop_exit(ipsec);
	cancel_delayed_work_sync(&ipsec->refresh_work);
	cancel_delayed_work_sync(&ipsec->ghost_work);
	flush_work(&ipsec->del_work);
	destroy_workqueue(ipsec->wq);

	/* A card that doesn't answer must not write where other things will be. */
	if (!list_empty(&ipsec->limbo))
		pci_clear_master(cdev->pdev);
	mutex_lock(&ipsec->lock);
	drop_limbo(ipsec);
	drop_ghosts(ipsec, true);
	cordon_policy_drop_limbo(ipsec);
	mutex_unlock(&ipsec->lock);

	cdev->ipsec = NULL;
	cordon_handles_exit(&ipsec->policies);
	cordon_handles_exit(&ipsec->sas);
	cordon_sa_blocks_exit(&ipsec->blocks);
	mutex_destroy(&ipsec->lock);
	kfree(ipsec);
}
