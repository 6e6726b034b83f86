// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: IPsec offload, the network device goes down.
 *
 * The stack deletes a device's SAs and policies when it goes down, and tells no one: key exchange
 * daemons would believe in dead SAs until the peer doesn't answer them any more. So they are told
 * that the SAs expire, just before the stack deletes them. They bring up new ones as soon as the
 * device is up again.
 */

#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <net/xfrm.h>

#include "cordon_ipsec.h"

static void expire_sa(struct cordon_ipsec *ipsec, struct cordon_sa *sa)
{
	struct xfrm_state *x = sa->owner;

	if (READ_ONCE(sa->dead) || cordon_sa_current(sa) != sa)
		return;
	if (!refcount_inc_not_zero(&x->refcnt))
		return;

	/* SAs of a bond are the bond's: they go to another port. */
	spin_lock_bh(&x->lock);
	if (x->xso.dev == ipsec->cdev->netdev && x->km.state != XFRM_STATE_DEAD)
		km_state_expired(x, 1, 0);
	spin_unlock_bh(&x->lock);
	xfrm_state_put(x);
}

static int netdev_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct cordon_ipsec *ipsec = container_of(nb, struct cordon_ipsec, netdev_nb);
	struct net_device *netdev = netdev_notifier_info_to_dev(info);
	struct cordon_sa *sa;
	unsigned long index;

	if (netdev != ipsec->cdev->netdev)
		return NOTIFY_DONE;

	/* When, and only when, the stack deletes them: xfrm_dev_event(). */
	if (!(event == NETDEV_DOWN && netdev->features & NETIF_F_HW_ESP) &&
	    event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;

	rcu_read_lock();
	xa_for_each(&ipsec->sas.xa, index, sa) {
		expire_sa(ipsec, sa);
		if (need_resched()) {
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();

	return NOTIFY_DONE;
}

/**
 * cordon_ipsec_down_init() - begin to tell of SAs that end with the device
 * @ipsec: IPsec offload, its tables ready
 *
 * Context: process, takes RTNL.
 * Return: 0, -errno.
 */
int cordon_ipsec_down_init(struct cordon_ipsec *ipsec)
{
	ipsec->netdev_nb.notifier_call = netdev_event;
	/* Before the stack's. */
	ipsec->netdev_nb.priority = 1;

	return register_netdevice_notifier(&ipsec->netdev_nb);
}

/**
 * cordon_ipsec_down_exit() - end to tell
 * @ipsec: IPsec offload
 *
 * Context: process, takes RTNL.
 */
void cordon_ipsec_down_exit(struct cordon_ipsec *ipsec)
{
	unregister_netdevice_notifier(&ipsec->netdev_nb);
}
