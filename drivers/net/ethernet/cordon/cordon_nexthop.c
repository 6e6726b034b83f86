// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: Ethernet addresses for the packets of tunnel SAs.
 *
 * The stack hands a packet for a tunnel SA in packet mode to the device without having looked at
 * the way to the other gateway. So the driver does: the route to the SA's peer must lead through
 * this device, and its neighbour entry has the address. Neighbours announce themselves by
 * netevents; routes and whatever is missed are looked up anew each second. Until an address is
 * known the card drops the SA's packets and asks for it by an event.
 */

#include <linux/etherdevice.h>
#include <linux/inetdevice.h>
#include <net/arp.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/neighbour.h>
#include <net/netevent.h>
#include <net/route.h>

#include "cordon_ipsec.h"
#include "cordon_nexthop.h"

#define CORDON_NEXTHOP_PERIOD HZ

/* Neighbours come in bursts, one look at the table serves them all. */
#define CORDON_NEXTHOP_DELAY msecs_to_jiffies(5)

static struct dst_entry *lookup_inet(struct net *net, const struct cordon_sa *sa)
{
	struct flowi4 fl4 = {};
	struct rtable *rt;

	memcpy(&fl4.daddr, sa->cfg.daddr, sizeof(fl4.daddr));
	memcpy(&fl4.saddr, sa->cfg.saddr, sizeof(fl4.saddr));
	fl4.flowi4_mark = sa->mark;
	fl4.flowi4_proto = IPPROTO_ESP;
	rt = ip_route_output_key(net, &fl4);
	if (IS_ERR(rt))
		return NULL;
	if (rt->rt_type != RTN_UNICAST && rt->rt_type != RTN_LOCAL) {
		ip_rt_put(rt);
		return NULL;
	}

	return &rt->dst;
}

static struct dst_entry *lookup_inet6(struct net *net, const struct net_device *netdev,
				      const struct cordon_sa *sa)
{
	struct flowi6 fl6 = {};
	struct dst_entry *dst;

	if (!IS_ENABLED(CONFIG_IPV6))
		return NULL;

	memcpy(&fl6.daddr, sa->cfg.daddr, sizeof(fl6.daddr));
	memcpy(&fl6.saddr, sa->cfg.saddr, sizeof(fl6.saddr));
	fl6.flowi6_mark = sa->mark;
	fl6.flowi6_proto = IPPROTO_ESP;
	if (ipv6_addr_type(&fl6.daddr) & IPV6_ADDR_LINKLOCAL)
		fl6.flowi6_oif = netdev->ifindex;
	dst = ip6_route_output(net, NULL, &fl6);
	if (dst->error) {
		dst_release(dst);
		return NULL;
	}

	return dst;
}

/* The neighbour's address, if it's known; who isn't known is asked for. */
static bool read_neighbour(struct cordon_sa *sa, struct neighbour *neigh,
			   struct net_device *netdev, u8 *address)
{
	u64 packets = cordon_sa_read(&sa->block->state->packets);
	u8 state = READ_ONCE(neigh->nud_state);

	/*
	 * The stack doesn't see the packets and would let the entry grow old. Only SAs in use are
	 * worth a probe.
	 */
	if (!(state & NUD_VALID) || (!(state & NUD_CONNECTED) && packets != sa->nexthop_packets))
		neigh_event_send(neigh, NULL);
	sa->nexthop_packets = packets;

	if (!(READ_ONCE(neigh->nud_state) & NUD_VALID))
		return false;

	neigh_ha_snapshot(address, neigh, netdev);

	return is_valid_ether_addr(address);
}

/**
 * cordon_nexthop_resolve() - look up the next hop of an SA
 * @ipsec: IPsec offload
 * @sa: SA that has one; its @cfg.next_hop is set
 *
 * Context: process.
 */
void cordon_nexthop_resolve(struct cordon_ipsec *ipsec, struct cordon_sa *sa)
{
	struct net_device *netdev = ipsec->cdev->netdev;
	struct net *net = dev_net(netdev);
	struct cordon_next_hop next_hop = {};
	struct neighbour *neigh;
	struct dst_entry *dst;

	if (sa->cfg.family == CORDON_FAMILY_INET)
		dst = lookup_inet(net, sa);
	else
		dst = lookup_inet6(net, netdev, sa);

	/* Without a route the old hop limit stays, which isn't used then. */
	next_hop.hop_limit = sa->cfg.next_hop.hop_limit ?: 64;
	if (!dst)
		goto out;
	if (dst_dev(dst) != netdev)
		goto out_release;

	if (sa->cfg.family == CORDON_FAMILY_INET)
		next_hop.hop_limit = ip4_dst_hoplimit(dst) ?: 64;
	else if (IS_ENABLED(CONFIG_IPV6))
		next_hop.hop_limit = ip6_dst_hoplimit(dst) ?: 64;

	neigh = dst_neigh_lookup(dst, sa->cfg.daddr);
	if (neigh) {
		if (read_neighbour(sa, neigh, netdev, next_hop.daddr)) {
			ether_addr_copy(next_hop.saddr, netdev->dev_addr);
			next_hop.valid = 1;
		} else {
			eth_zero_addr(next_hop.daddr);
		}
		neigh_release(neigh);
	}

out_release:
	dst_release(dst);
out:
	sa->cfg.next_hop = next_hop;
}

static void update(struct cordon_ipsec *ipsec, struct cordon_sa *sa)
{
	struct cordon_next_hop old = sa->cfg.next_hop;
	struct cordon_sa_update cmd = {};

	lockdep_assert_held(&ipsec->lock);

	cordon_nexthop_resolve(ipsec, sa);
	if (!memcmp(&old, &sa->cfg.next_hop, sizeof(old)))
		return;

	cmd.handle = cpu_to_le32(sa->handle);
	cmd.next_hop = sa->cfg.next_hop;
	/* On failure the card is reset, and gets the address when it gets the SA again. */
	if (cordon_cmd_exec(ipsec->cdev, CORDON_CMD_SA_UPDATE, &cmd, sizeof(cmd), NULL, 0, NULL,
			    NULL))
		netdev_dbg(ipsec->cdev->netdev, "next hop of SA %#x not updated\n", sa->handle);
}

static void nexthop_work(struct work_struct *work)
{
	struct cordon_ipsec *ipsec = container_of(to_delayed_work(work), struct cordon_ipsec,
						  nexthop_work);
	struct cordon_sa *sa;
	unsigned long index;

	if (!atomic_read(&ipsec->tunnel_cnt))
		return;

	/* SAs are freed under the lock; between two of them others get their turn. */
	mutex_lock(&ipsec->lock);
	xa_for_each(&ipsec->sas.xa, index, sa) {
		if (!sa->on_card || READ_ONCE(sa->dead) || !cordon_sa_has_next_hop(sa))
			continue;
		update(ipsec, sa);
		mutex_unlock(&ipsec->lock);
		cond_resched();
		mutex_lock(&ipsec->lock);
	}
	mutex_unlock(&ipsec->lock);

	queue_delayed_work(ipsec->wq, &ipsec->nexthop_work, CORDON_NEXTHOP_PERIOD);
}

static int netevent(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct cordon_ipsec *ipsec = container_of(nb, struct cordon_ipsec, netevent);
	const struct neighbour *neigh = ptr;

	if (event == NETEVENT_NEIGH_UPDATE && neigh->dev == ipsec->cdev->netdev)
		cordon_nexthop_kick(ipsec);

	return NOTIFY_DONE;
}

/**
 * cordon_nexthop_kick() - look at all next hops soon
 * @ipsec: IPsec offload
 *
 * Context: any.
 */
void cordon_nexthop_kick(struct cordon_ipsec *ipsec)
{
	if (atomic_read(&ipsec->tunnel_cnt))
		mod_delayed_work(ipsec->wq, &ipsec->nexthop_work, CORDON_NEXTHOP_DELAY);
}

/**
 * cordon_nexthop_init() - begin to listen
 * @ipsec: IPsec offload
 *
 * Context: process.
 * Return: 0, -errno.
 */
int cordon_nexthop_init(struct cordon_ipsec *ipsec)
{
	INIT_DELAYED_WORK(&ipsec->nexthop_work, nexthop_work);
	ipsec->netevent.notifier_call = netevent;

	return register_netevent_notifier(&ipsec->netevent);
}

/**
 * cordon_nexthop_exit() - end listening
 * @ipsec: IPsec offload
 *
 * Context: process.
 */
void cordon_nexthop_exit(struct cordon_ipsec *ipsec)
{
	unregister_netevent_notifier(&ipsec->netevent);
	cancel_delayed_work_sync(&ipsec->nexthop_work);
}
