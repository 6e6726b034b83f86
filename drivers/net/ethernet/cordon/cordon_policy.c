// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: IPsec policies.
 *
 * The card uses them for packets that come from the wire: the stack trusts it with that, it neither
 * checks what came through an SA in packet mode against policies, nor drops what came in clear.
 *
 * The stack deletes policies in timers and frees them in any context. So the driver's part is
 * counted: one reference is the stack's, one the card's.
 */

#include <linux/refcount.h>
#include <linux/slab.h>
#include <net/xfrm.h>

#include "cordon_ipsec.h"
#include "cordon_policy.h"

/**
 * struct cordon_policy - a policy of the card
 * @ipsec: where it belongs
 * @refs: the stack's reference, and the card's
 * @handle: handle
 * @deleted: the stack deleted it
 * @del_node: in the list of policies to be deleted from the card, or of those that couldn't be
 * @cfg: what the card was told, for the time after a reset
 */
struct cordon_policy {
	struct cordon_ipsec *ipsec;
	refcount_t refs;
	u32 handle;
	bool deleted;
	struct list_head del_node;
	struct cordon_policy_cfg cfg;
};

static void policy_put(struct cordon_policy *policy)
{
	if (refcount_dec_and_test(&policy->refs))
		kfree(policy);
}

static int check_template(const struct cordon_caps_ipsec *caps, const struct xfrm_policy *xp,
			  struct netlink_ext_ack *extack)
{
	const struct xfrm_tmpl *template = &xp->xfrm_vec[0];
	u8 mode = cordon_ipsec_mode(template->mode);

	if (template->id.proto != IPPROTO_ESP) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "template protocol %u not supported, allowed: 50 (ESP)",
				       template->id.proto);
		return -EOPNOTSUPP;
	}
	if (!mode || !(caps->modes & BIT(mode))) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "template mode %u not supported, allowed:%s%s%s",
				       template->mode,
				       caps->modes & BIT(CORDON_MODE_TRANSPORT) ? " transport" : "",
				       caps->modes & BIT(CORDON_MODE_TUNNEL) ? " tunnel" : "",
				       caps->modes & BIT(CORDON_MODE_BEET) ? " beet" : "");
		return -EOPNOTSUPP;
	}
	if (!template->allalgs) {
		NL_SET_ERR_MSG_MOD(extack,
				   "template's list of algorithms not supported, allowed: all");
		return -EOPNOTSUPP;
	}

	return 0;
}

static int check_policy(struct cordon_dev *cdev, const struct xfrm_policy *xp,
			struct netlink_ext_ack *extack)
{
	const struct cordon_caps_ipsec *caps = &cdev->ipsec_caps;
	u8 family = cordon_ipsec_family(xp->selector.family);

	if (!(caps->offloads & BIT(CORDON_OFFLOAD_PACKET))) {
		NL_SET_ERR_MSG_MOD(extack, "policy offload not supported by this card");
		return -EOPNOTSUPP;
	}
	if (xp->type != XFRM_POLICY_TYPE_MAIN) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "policy type %u not supported, allowed: main", xp->type);
		return -EOPNOTSUPP;
	}
	if (xp->action != XFRM_POLICY_ALLOW && xp->action != XFRM_POLICY_BLOCK) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "action %u not supported, allowed: allow block",
				       xp->action);
		return -EOPNOTSUPP;
	}
	if (xp->mark.v || xp->mark.m) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "mark 0x%x of a policy not supported, allowed: 0",
				       xp->mark.v);
		return -EOPNOTSUPP;
	}
	if (xp->security) {
		NL_SET_ERR_MSG_MOD(extack, "security context not supported, allowed: none");
		return -EOPNOTSUPP;
	}
	if (xp->flags & XFRM_POLICY_ICMP && xp->xdo.dir != XFRM_DEV_OFFLOAD_OUT) {
		NL_SET_ERR_MSG_MOD(extack, "flag icmp not supported, allowed: out policies");
		return -EOPNOTSUPP;
	}
	if (!family || !(caps->families & BIT(family))) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "address family %u not supported by this card",
				       xp->selector.family);
		return -EOPNOTSUPP;
	}
	if (xp->selector.ifindex && xp->selector.ifindex != cdev->netdev->ifindex) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "selector's interface %d not supported, allowed: 0 %d",
				       xp->selector.ifindex, cdev->netdev->ifindex);
		return -EOPNOTSUPP;
	}
	if (xp->xfrm_nr > 1) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "%u templates not supported, allowed: 0 1", xp->xfrm_nr);
		return -EOPNOTSUPP;
	}

	return xp->xfrm_nr ? check_template(caps, xp, extack) : 0;
}

/**
 * cordon_policy_fill_selector() - write a selector for the card
 * @to: selector, zeroed
 * @from: the stack's
 *
 * Context: any.
 */
void cordon_policy_fill_selector(struct cordon_selector *to, const struct xfrm_selector *from)
{
	size_t len = from->family == AF_INET ? sizeof(from->saddr.a4) : sizeof(from->saddr);

	memcpy(to->saddr, &from->saddr, len);
	memcpy(to->daddr, &from->daddr, len);
	to->sport = from->sport;
	to->sport_mask = from->sport_mask;
	to->dport = from->dport;
	to->dport_mask = from->dport_mask;
	to->family = cordon_ipsec_family(from->family);
	to->saddr_prefix = from->prefixlen_s;
	to->daddr_prefix = from->prefixlen_d;
	to->protocol = from->proto;
}

static void fill_template(struct cordon_policy_cfg *cfg, const struct xfrm_tmpl *template)
{
	size_t len = template->encap_family == AF_INET ? sizeof(template->saddr.a4) :
							 sizeof(template->saddr);

	cfg->flags |= CORDON_POLICY_TEMPLATE;
	if (template->optional)
		cfg->flags |= CORDON_POLICY_OPTIONAL;
	cfg->template_mode = cordon_ipsec_mode(template->mode);
	cfg->template_reqid = cpu_to_le32(template->reqid);
	cfg->template_spi = template->id.spi;
	cfg->template_family = cordon_ipsec_family(template->encap_family);
	if (cfg->template_mode == CORDON_MODE_TRANSPORT)
		return;

	memcpy(cfg->template_saddr, &template->saddr, len);
	memcpy(cfg->template_daddr, &template->id.daddr, len);
}

static void fill_cfg(struct cordon_policy_cfg *cfg, const struct xfrm_policy *xp)
{
	switch (xp->xdo.dir) {
	case XFRM_DEV_OFFLOAD_IN:
		cfg->direction = CORDON_DIRECTION_IN;
		break;
	case XFRM_DEV_OFFLOAD_FWD:
		cfg->direction = CORDON_DIRECTION_FORWARD;
		break;
	default:
		cfg->direction = CORDON_DIRECTION_OUT;
		break;
	}

	cfg->priority = cpu_to_le32(xp->priority);
	cfg->if_id = cpu_to_le32(xp->if_id);
	cordon_policy_fill_selector(&cfg->selector, &xp->selector);

	/* What blocks needs no SA. */
	if (xp->action == XFRM_POLICY_BLOCK) {
		cfg->action = CORDON_ACTION_BLOCK;
		return;
	}
	cfg->action = CORDON_ACTION_ALLOW;
	if (xp->xfrm_nr)
		fill_template(cfg, &xp->xfrm_vec[0]);
}

static int add_to_card(struct cordon_policy *policy, struct netlink_ext_ack *extack)
{
	struct cordon_ipsec *ipsec = policy->ipsec;
	struct cordon_cmd_result res = {};
	int err;

	err = cordon_handles_reserve(&ipsec->policies, &policy->handle);
	if (err == -ENOSPC) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "policy %u not supported, the card's table holds %u",
				       ipsec->policies.max + 1, ipsec->policies.max);
		return err;
	}
	if (err)
		return cordon_ipsec_no_memory(extack);

	policy->cfg.handle = cpu_to_le32(policy->handle);
	policy->cfg.order = cpu_to_le64(ipsec->policy_order++);

	err = cordon_cmd_exec(ipsec->cdev, CORDON_CMD_POLICY_ADD, &policy->cfg, sizeof(policy->cfg),
			      NULL, 0, NULL, &res);
	if (err) {
		cordon_handles_release(&ipsec->policies, policy->handle);
		return cordon_ipsec_errno(&res, extack);
	}

	refcount_inc(&policy->refs);
	cordon_handles_publish(&ipsec->policies, policy->handle, policy);
	atomic_inc(&ipsec->policy_cnt);

	return 0;
}

/**
 * cordon_policy_add() - xdo_dev_policy_add
 * @xp: policy
 * @extack: says what is refused
 *
 * Context: process, xfrm_cfg_mutex held.
 * Return: 0, -EOPNOTSUPP, -ENOSPC, -EAGAIN.
 */
int cordon_policy_add(struct xfrm_policy *xp, struct netlink_ext_ack *extack)
{
	struct cordon_dev *cdev = cordon_ipsec_dev(xp->xdo.dev);
	struct cordon_policy *policy;
	int err;

	if (!cdev) {
		NL_SET_ERR_MSG_MOD(extack, "policy offload not supported by this card");
		return -EOPNOTSUPP;
	}

	err = check_policy(cdev, xp, extack);
	if (err)
		return err;

	policy = kzalloc_obj(*policy);
	if (!policy)
		return cordon_ipsec_no_memory(extack);

	policy->ipsec = cdev->ipsec;
	refcount_set(&policy->refs, 1);
	INIT_LIST_HEAD(&policy->del_node);
	fill_cfg(&policy->cfg, xp);

	mutex_lock(&cdev->ipsec->lock);
	err = cordon_ipsec_fallback_check_policy(cdev->ipsec, xp, extack);
	if (!err)
		err = add_to_card(policy, extack);
	mutex_unlock(&cdev->ipsec->lock);
	if (err) {
		policy_put(policy);
		return err;
	}

	xp->xdo.offload_handle = (unsigned long)policy;
	queue_delayed_work(cdev->ipsec->wq, &cdev->ipsec->refresh_work, HZ);

	return 0;
}

/**
 * cordon_policy_delete() - xdo_dev_policy_delete
 * @xp: policy
 *
 * Context: process or softirq.
 */
void cordon_policy_delete(struct xfrm_policy *xp)
{
	struct cordon_policy *policy = (struct cordon_policy *)xp->xdo.offload_handle;
	struct cordon_ipsec *ipsec = policy->ipsec;

	spin_lock_bh(&ipsec->del_lock);
	if (!policy->deleted) {
		policy->deleted = true;
		list_add_tail(&policy->del_node, &ipsec->policy_dels);
		queue_work(ipsec->wq, &ipsec->del_work);
	}
	spin_unlock_bh(&ipsec->del_lock);
}

/**
 * cordon_policy_free() - xdo_dev_policy_free
 * @xp: policy
 *
 * Context: any but hard interrupts.
 */
void cordon_policy_free(struct xfrm_policy *xp)
{
	struct cordon_policy *policy = (struct cordon_policy *)xp->xdo.offload_handle;

	/* A policy that never got into the stack's table is freed without having been deleted. */
	cordon_policy_delete(xp);
	policy_put(policy);
}

static struct cordon_policy *pop_pending(struct cordon_ipsec *ipsec)
{
	struct cordon_policy *policy;

	spin_lock_bh(&ipsec->del_lock);
	policy = list_first_entry_or_null(&ipsec->policy_dels, struct cordon_policy, del_node);
	if (policy)
		list_del_init(&policy->del_node);
	spin_unlock_bh(&ipsec->del_lock);

	return policy;
}

static void forget(struct cordon_policy *policy)
{
	cordon_handles_release(&policy->ipsec->policies, policy->handle);
	policy_put(policy);
}

/**
 * cordon_policy_del_pending() - delete from the card what the stack deleted
 * @ipsec: IPsec offload
 *
 * Context: process.
 */
void cordon_policy_del_pending(struct cordon_ipsec *ipsec)
{
	struct cordon_policy *policy;
	u64 arg[4] = {};
	int err;

	for (;;) {
		struct cordon_cmd_result res = {};

		mutex_lock(&ipsec->lock);
		policy = pop_pending(ipsec);
		if (!policy) {
			mutex_unlock(&ipsec->lock);
			return;
		}

		cordon_handles_publish(&ipsec->policies, policy->handle, NULL);
		atomic_dec(&ipsec->policy_cnt);
		arg[0] = policy->handle;
		err = cordon_cmd_exec(ipsec->cdev, CORDON_CMD_POLICY_DEL, NULL, 0, NULL, 0, arg,
				      &res);
		if (!err || res.status == CORDON_CMD_STATUS_NOT_FOUND)
			forget(policy);
		else
			list_add_tail(&policy->del_node, &ipsec->policy_limbo);
		mutex_unlock(&ipsec->lock);
	}
}

/**
 * cordon_policy_drop_limbo() - forget policies that the card was reset with
 * @ipsec: IPsec offload
 *
 * Context: process, under the lock of @ipsec.
 */
void cordon_policy_drop_limbo(struct cordon_ipsec *ipsec)
{
	struct cordon_policy *policy, *tmp;

	list_for_each_entry_safe(policy, tmp, &ipsec->policy_limbo, del_node) {
		list_del_init(&policy->del_node);
		forget(policy);
	}
}

static void restored(void *ctx, const struct cordon_cmd_result *res)
{
	struct cordon_ipsec_restore *restore = ctx;

	/* What was added since the reset is there already. */
	cordon_ipsec_restore_put(restore, res->status == CORDON_CMD_STATUS_EXISTS ? 0 : res->error);
}

/**
 * cordon_policy_restore() - give the card its policies again
 * @ipsec: IPsec offload
 * @restore: waits for the commands
 *
 * Context: process, under the lock of @ipsec, RTNL.
 * Return: 0, -errno if the commands couldn't be sent.
 */
int cordon_policy_restore(struct cordon_ipsec *ipsec, struct cordon_ipsec_restore *restore)
{
	struct cordon_policy *policy;
	unsigned long index;
	int err;

	xa_for_each(&ipsec->policies.xa, index, policy) {
		err = cordon_ipsec_restore_get(restore);
		if (err)
			return err;

		err = cordon_cmd_post(ipsec->cdev, CORDON_CMD_POLICY_ADD, &policy->cfg,
				      sizeof(policy->cfg), NULL, 0, NULL, restored, restore);
		if (err) {
			cordon_ipsec_restore_put(restore, err);
			return err;
		}
	}

	return 0;
}
