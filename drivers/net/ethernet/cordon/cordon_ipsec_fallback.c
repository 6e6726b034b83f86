// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: IPsec offload, SAs that key exchange daemons bring to another mode.
 *
 * A daemon may be told to take what it gets: it asks for packet mode, and if that is refused adds
 * the same SA in crypto mode, which works in any case, if only in software. Its policies it puts
 * into packet mode all the same, and for such a policy the stack takes SAs in packet mode only:
 * nothing would pass. So the card refuses the policy, too, and the daemon adds it without offload.
 *
 * Only who did all of this meets with it: an SA was refused in packet mode, the same was added in
 * crypto mode, and then comes a policy that it would serve.
 */

#include <linux/jiffies.h>
#include <net/xfrm.h>

#include "cordon_ipsec.h"

/* How long after an SA a daemon may come with its policies. */
#define CORDON_FALLBACK_TIME (60 * HZ)

static bool is_recent(const struct cordon_ipsec_refusal *refusal)
{
	return refusal->reqid && time_before(jiffies, refusal->time + CORDON_FALLBACK_TIME);
}

/* Would they serve the same template? */
static bool serves_same(const struct cordon_ipsec_refusal *refusal, const struct xfrm_state *x)
{
	return refusal->reqid == x->props.reqid && refusal->family == x->props.family &&
	       refusal->mode == x->props.mode && refusal->dir == x->xso.dir &&
	       xfrm_addr_equal(&refusal->daddr, &x->id.daddr, x->props.family);
}

/**
 * cordon_ipsec_fallback_refused() - an SA was refused in packet mode
 * @ipsec: IPsec offload
 * @x: the stack's
 *
 * Context: process.
 */
void cordon_ipsec_fallback_refused(struct cordon_ipsec *ipsec, const struct xfrm_state *x)
{
	struct cordon_ipsec_refusal *refusal;

	mutex_lock(&ipsec->lock);
	refusal = &ipsec->refusals[ipsec->next_refusal++ % CORDON_IPSEC_REFUSALS];
	refusal->spi = x->id.spi;
	refusal->reqid = x->props.reqid;
	refusal->family = x->props.family;
	refusal->mode = x->props.mode;
	refusal->dir = x->xso.dir;
	refusal->daddr = x->id.daddr;
	refusal->fell_back = false;
	refusal->time = jiffies;
	mutex_unlock(&ipsec->lock);
}

/**
 * cordon_ipsec_fallback_taken() - an SA was taken in packet mode: policies will find it
 * @ipsec: IPsec offload
 * @x: the stack's
 *
 * Context: process.
 */
void cordon_ipsec_fallback_taken(struct cordon_ipsec *ipsec, const struct xfrm_state *x)
{
	unsigned int i;

	mutex_lock(&ipsec->lock);
	for (i = 0; i < CORDON_IPSEC_REFUSALS; i++)
		if (serves_same(&ipsec->refusals[i], x))
			ipsec->refusals[i].reqid = 0;
	mutex_unlock(&ipsec->lock);
}

static bool has_predecessor(struct cordon_ipsec *ipsec, const struct xfrm_state *x)
{
	bool out = x->xso.dir == XFRM_DEV_OFFLOAD_OUT;
	const struct cordon_sa *sa;
	bool found = false;
	unsigned long index;

	rcu_read_lock();
	xa_for_each(&ipsec->sas.xa, index, sa) {
		const struct xfrm_state *other = sa->owner;

		/* A dead one's owner may be gone. */
		if (READ_ONCE(sa->dead) || !cordon_sa_is_packet(sa) ||
		    cordon_sa_is_out(sa) != out ||
		    le32_to_cpu(sa->cfg.reqid) != x->props.reqid)
			continue;
		found = other->props.family == x->props.family &&
			other->props.mode == x->props.mode &&
			xfrm_addr_equal(&other->id.daddr, &x->id.daddr, x->props.family);
		if (found)
			break;
	}
	rcu_read_unlock();

	return found;
}

/**
 * cordon_ipsec_fallback_try() - an SA is about to be added in crypto mode
 * @ipsec: IPsec offload
 * @x: the stack's
 * @extack: says what is refused
 *
 * If it was refused in packet mode just before, and is to succeed one that is in packet mode, its
 * policies are in use and won't come again: it would cut off the traffic. The daemon keeps the old
 * one and tries again.
 *
 * Context: process.
 * Return: 0, -EBUSY if it would cut off the traffic.
 */
int cordon_ipsec_fallback_try(struct cordon_ipsec *ipsec, const struct xfrm_state *x,
			      struct netlink_ext_ack *extack)
{
	struct cordon_ipsec_refusal *refusal = NULL;
	unsigned int i;
	int err = 0;

	mutex_lock(&ipsec->lock);
	for (i = 0; i < CORDON_IPSEC_REFUSALS; i++) {
		if (!is_recent(&ipsec->refusals[i]) || ipsec->refusals[i].spi != x->id.spi ||
		    !serves_same(&ipsec->refusals[i], x))
			continue;
		refusal = &ipsec->refusals[i];
		break;
	}
	if (refusal && has_predecessor(ipsec, x)) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "SA refused in packet mode, reqid %u has another one in it, try again",
				       x->props.reqid);
		err = -EBUSY;
	} else if (refusal) {
		refusal->fell_back = true;
		refusal->time = jiffies;
	}
	mutex_unlock(&ipsec->lock);

	return err;
}

static bool wants(const struct xfrm_policy *xp, const struct cordon_ipsec_refusal *refusal)
{
	bool wanted_out = xp->xdo.dir == XFRM_DEV_OFFLOAD_OUT;
	bool out = refusal->dir == XFRM_DEV_OFFLOAD_OUT;
	const struct xfrm_tmpl *template;
	unsigned int i;

	for (i = 0; i < xp->xfrm_nr; i++) {
		template = &xp->xfrm_vec[i];
		if (template->reqid != refusal->reqid || template->mode != refusal->mode ||
		    out != wanted_out)
			continue;
		if (template->mode == XFRM_MODE_TRANSPORT ||
		    (template->encap_family == refusal->family &&
		     xfrm_addr_equal(&template->id.daddr, &refusal->daddr, refusal->family)))
			return true;
	}

	return false;
}

/**
 * cordon_ipsec_fallback_check_policy() - is there hope for SAs that a policy would take
 * @ipsec: IPsec offload
 * @xp: the stack's
 * @extack: says what is refused
 *
 * Context: process, under the lock of @ipsec.
 * Return: 0, -EOPNOTSUPP.
 */
int cordon_ipsec_fallback_check_policy(struct cordon_ipsec *ipsec, const struct xfrm_policy *xp,
				       struct netlink_ext_ack *extack)
{
	unsigned int i;

	lockdep_assert_held(&ipsec->lock);

	for (i = 0; i < CORDON_IPSEC_REFUSALS; i++) {
		if (!ipsec->refusals[i].fell_back || !is_recent(&ipsec->refusals[i]) ||
		    !wants(xp, &ipsec->refusals[i]))
			continue;
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "policy not supported, packet mode was refused to SA 0x%x",
				       be32_to_cpu(ipsec->refusals[i].spi));
		return -EOPNOTSUPP;
	}

	return 0;
}
