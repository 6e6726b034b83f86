// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: IPsec offload, what is done for each packet.
 *
 * In packet mode the stack hands over plain IP packets and says nowhere which SA it chose, so
 * cordon_ipsec_offload_ok(), which it asks for each of them with the SA at hand, notes the SA in
 * the packet's secpath: length 1, no offload (olen 0), the SA an outbound one of this device. The
 * stack itself never makes such a secpath for a packet that it sends, and takes it for none of its
 * own (xfrm_offload() is NULL). A packet without it is one that the stack wants sent in clear.
 *
 * Whatever happens to the SA until the packet reaches the device, the note stays, and a noted
 * packet whose SA can't be found is dropped.
 */

#include <linux/hash.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/esp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "cordon_ipsec.h"
#include "cordon_ipsec_rxtx.h"

/* The headers that the stack's crypto offload doesn't expect, see xfrm_dev_offload_ok(). */
static bool has_plain_header(const struct sk_buff *skb)
{
	switch (skb_dst(skb)->ops->family) {
	case AF_INET:
		return ip_hdr(skb)->ihl == 5;
	case AF_INET6:
		return !ipv6_ext_hdr(ipv6_hdr(skb)->nexthdr);
	default:
		return false;
	}
}

/*
 * The stack counts from the ESP header on when it segments, and forgets the UDP header: in a tunnel
 * nothing comes of it, in transport mode more packets than there are numbers for.
 */
static bool may_segment(const struct sk_buff *skb, const struct xfrm_state *x)
{
	return !skb_is_gso(skb) || !x->encap;
}

/* Has the card got a crypto mode SA? If not, the stack's own crypto does it. */
static bool is_on_card(const struct xfrm_state *x)
{
	struct net_device *dev = READ_ONCE(x->xso.real_dev) ?: READ_ONCE(x->xso.dev);
	struct cordon_dev *cdev;
	struct cordon_sa *sa;
	bool ready;

	cdev = dev ? cordon_ipsec_dev(dev) : NULL;
	if (!cdev || !cordon_is_usable(cdev))
		return false;

	rcu_read_lock();
	sa = cordon_ipsec_sa(cdev, x);
	ready = sa && !READ_ONCE(sa->dead) && READ_ONCE(sa->on_card);
	rcu_read_unlock();

	return ready;
}

/*
 * Some kernels ask in packet mode without having looked at the packet's way. By another device it
 * would leave in clear, and a second SA would find a packet that isn't an ESP packet yet.
 */
static bool goes_to(const struct sk_buff *skb, const struct net_device *dev)
{
	struct dst_entry *dst = skb_dst(skb);

	return dst_dev(xfrm_dst_path(dst)) == dev && !xfrm_dst_child(dst)->xfrm;
}

static bool note_sa(struct sk_buff *skb, struct xfrm_state *x)
{
	struct sec_path *sp;

	/* What a forwarded packet came through has been judged. */
	secpath_reset(skb);
	sp = secpath_set(skb);
	if (!sp)
		return false;

	xfrm_state_hold(x);
	sp->xvec[0] = x;
	sp->len = 1;

	return true;
}

/*
 * In BEET mode the stack forgets to say where the inner transport header is, as it does in the
 * other modes, then looks there for the length of a GSO packet's headers, and drops it.
 */
static void set_inner_transport(struct sk_buff *skb, const struct xfrm_state *x)
{
	if (x->props.mode == XFRM_MODE_BEET && skb_is_gso(skb) && !skb->inner_protocol)
		skb_set_inner_transport_header(skb, skb_transport_offset(skb));
}

/**
 * cordon_ipsec_offload_ok() - may this packet be left to the card
 * @skb: packet, before any header of the SA is added
 * @x: SA that the stack chose
 *
 * Context: any but hard interrupts.
 * Return: crypto mode: false if the stack shall encrypt it; packet mode: false to drop it.
 */
bool cordon_ipsec_offload_ok(struct sk_buff *skb, struct xfrm_state *x)
{
	struct net_device *dev = READ_ONCE(x->xso.dev);
	struct cordon_dev *cdev;
	struct cordon_sa *sa;
	bool alive;

	if (x->xso.type != XFRM_DEV_OFFLOAD_PACKET) {
		if (!has_plain_header(skb) || !may_segment(skb, x) || !is_on_card(x))
			return false;
		set_inner_transport(skb, x);
		return true;
	}

	cdev = dev ? cordon_ipsec_dev(dev) : NULL;
	if (!cdev)
		return false;

	if (!cordon_is_usable(cdev)) {
		cordon_ipsec_count(cdev->ipsec, CORDON_IPSEC_TX_DROP_NOT_READY);
		return false;
	}

	rcu_read_lock();
	sa = cordon_ipsec_sa(cdev, x);
	alive = sa && !READ_ONCE(sa->dead);
	rcu_read_unlock();
	if (!alive) {
		cordon_ipsec_count(cdev->ipsec, CORDON_IPSEC_TX_DROP_SA_GONE);
		return false;
	}

	if (!goes_to(skb, dev)) {
		cordon_ipsec_count(cdev->ipsec, CORDON_IPSEC_TX_DROP_ROUTE);
		return false;
	}

	if (!note_sa(skb, x)) {
		cordon_ipsec_count(cdev->ipsec, CORDON_IPSEC_TX_DROP_NO_MEMORY);
		return false;
	}

	/* What the stack does in the modes where it makes the packet. */
	skb->mark = xfrm_smark_get(skb->mark, x);

	return true;
}

static bool fill_crypto(struct sk_buff *skb, const struct xfrm_state *x,
			struct cordon_tx_accel *accel)
{
	const struct xfrm_offload *xo = xfrm_offload(skb);
	int esp_offset = skb_transport_offset(skb);
	u32 low, high;

	if (x->encap)
		esp_offset += sizeof(struct udphdr);
	if (skb_is_gso(skb) || esp_offset < ETH_HLEN || esp_offset > U16_MAX ||
	    esp_offset + sizeof(struct ip_esp_hdr) > skb_headlen(skb))
		return false;

	/*
	 * The segments of a packet that the stack cut share one xfrm_offload, which has moved on to
	 * the number behind the last one; each one's own number is in its header.
	 */
	low = ntohl(((struct ip_esp_hdr *)(skb->data + esp_offset))->seq_no);
	high = xo->seq.hi - (low > xo->seq.low);

	accel->flags = CORDON_TX_SA_CRYPTO | CORDON_TX_EXT;
	accel->esp_offset = esp_offset;
	accel->seq = (u64)high << 32 | low;

	return true;
}

/**
 * __cordon_ipsec_tx() - cordon_ipsec_tx() for a packet with a secpath
 * @cdev: device
 * @skb: packet
 * @accel: what the card has to do, zeroed
 *
 * Context: ndo_start_xmit.
 * Return: false if the packet must be dropped; it's counted.
 */
bool __cordon_ipsec_tx(struct cordon_dev *cdev, struct sk_buff *skb,
		       struct cordon_tx_accel *accel)
{
	struct sec_path *sp = skb_sec_path(skb);
	int l3_offset = skb_network_offset(skb);
	struct cordon_ipsec *ipsec = cdev->ipsec;
	struct cordon_sa *sa;
	struct xfrm_state *x;

	if (!sp->len)
		return true;

	/* Packets that came through an SA and go on in clear keep their secpath. */
	x = sp->xvec[sp->len - 1];
	if (x->xso.dir != XFRM_DEV_OFFLOAD_OUT)
		return true;
	if (WARN_ON_ONCE(!ipsec))
		return false;

	rcu_read_lock();
	sa = sp->len == 1 ? cordon_ipsec_sa(cdev, x) : NULL;
	if (!sa || READ_ONCE(sa->dead) || cordon_sa_is_packet(sa) != !sp->olen) {
		rcu_read_unlock();
		cordon_ipsec_count(ipsec, CORDON_IPSEC_TX_DROP_SA_GONE);
		return false;
	}
	accel->sa = sa->handle;
	rcu_read_unlock();

	if (l3_offset < ETH_HLEN || l3_offset > U16_MAX)
		goto drop_layout;
	accel->l3_offset = l3_offset;

	if (!sp->olen)
		accel->flags = CORDON_TX_SA_PACKET;
	else if (!fill_crypto(skb, x, accel))
		goto drop_layout;

	return true;

drop_layout:
	cordon_ipsec_count(ipsec, CORDON_IPSEC_TX_DROP_LAYOUT);

	return false;
}

/* Status of an ESP packet in crypto mode; 0 if the card did nothing that the stack can't. */
static u32 crypto_status(u8 result, u8 mode)
{
	switch (result) {
	case CORDON_RESULT_OK:
		return CRYPTO_SUCCESS;
	case CORDON_RESULT_AUTH_FAILED:
		return mode == CORDON_MODE_TRANSPORT ? CRYPTO_TRANSPORT_ESP_AUTH_FAILED :
						       CRYPTO_TUNNEL_ESP_AUTH_FAILED;
	case CORDON_RESULT_TOO_SHORT:
	case CORDON_RESULT_SA_MISMATCH:
	case CORDON_RESULT_BAD_TRAILER:
		return CRYPTO_INVALID_PROTOCOL;
	default:
		return 0;
	}
}

/* Sequence number of an ESP packet; 0, which no packet has, if it isn't where it should be. */
static u32 esp_number(const struct sk_buff *skb, const struct xfrm_state *x)
{
	const struct iphdr *ip;
	struct iphdr ip_buf;
	__be32 number_buf;
	const __be32 *number;
	__be16 frag_off;
	u8 protocol;
	int off;

	ip = skb_header_pointer(skb, 0, sizeof(ip_buf), &ip_buf);
	if (!ip)
		return 0;
	if (x->props.family == AF_INET) {
		off = ip->ihl * 4;
	} else {
		protocol = ((const u8 *)ip)[offsetof(struct ipv6hdr, nexthdr)];
		off = ipv6_skip_exthdr(skb, sizeof(struct ipv6hdr), &protocol, &frag_off);
		if (off < 0)
			return 0;
	}
	if (x->encap)
		off += sizeof(struct udphdr);

	number = skb_header_pointer(skb, off + offsetof(struct ip_esp_hdr, seq_no),
				    sizeof(number_buf), &number_buf);

	return number ? be32_to_cpu(*number) : 0;
}

/*
 * The stack's SA that a packet came through, with a reference. A dead SA's owner isn't touched, and
 * one that is being freed has no references any more.
 */
static struct xfrm_state *get_state(struct cordon_ipsec *ipsec, const struct sk_buff *skb,
				    u32 handle, bool packet, u8 *mode, u8 *result)
{
	struct xfrm_state *x = NULL;
	struct cordon_sa *sa;

	rcu_read_lock();
	sa = cordon_handles_find(&ipsec->sas, handle);
	if (sa && sa->handle == handle && !cordon_sa_is_out(sa) &&
	    cordon_sa_is_packet(sa) == packet)
		sa = cordon_sa_current(sa);
	else
		sa = NULL;
	if (sa && refcount_inc_not_zero(&sa->owner->refcnt)) {
		x = sa->owner;
		*mode = sa->cfg.mode;
		if (*result == CORDON_RESULT_AUTH_FAILED &&
		    !cordon_ipsec_state_confirm(sa, x, esp_number(skb, x)))
			*result = CORDON_RESULT_SA_STATE;
	}
	rcu_read_unlock();

	return x;
}

/*
 * GRO doesn't compare where packets came through, only their hashes: keep what was decrypted apart
 * from what came in clear or through another SA.
 */
static void mix_hash(struct sk_buff *skb, u32 handle)
{
	skb_set_hash(skb, skb->hash ^ (handle * GOLDEN_RATIO_32),
		     skb->l4_hash ? PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
}

/**
 * cordon_ipsec_rx() - tell the stack what the card did with a packet
 * @cdev: device
 * @skb: packet, its hash is set
 * @handle: SA
 * @rx_flags: CORDON_RX_SA_CRYPTO or CORDON_RX_SA_PACKET
 * @result: enum cordon_result
 *
 * Context: NAPI.
 * Return: false if the packet must be dropped; it's counted.
 */
bool cordon_ipsec_rx(struct cordon_dev *cdev, struct sk_buff *skb, u32 handle, u32 rx_flags,
		     u8 result)
{
	struct cordon_ipsec *ipsec = cdev->ipsec;
	u32 status = CRYPTO_SUCCESS;
	struct xfrm_offload *xo;
	struct xfrm_state *x;
	struct sec_path *sp;
	u8 mode = 0;

	if (!ipsec || ((rx_flags & CORDON_RX_SA_PACKET) && result != CORDON_RESULT_OK)) {
		cordon_nonsense(cdev, "result of a decrypted packet");
		return false;
	}

	x = get_state(ipsec, skb, handle, rx_flags & CORDON_RX_SA_PACKET, &mode, &result);
	if (rx_flags & CORDON_RX_SA_CRYPTO)
		status = crypto_status(result, mode);
	if (!status || (!x && result != CORDON_RESULT_OK)) {
		/* The packet is as it came: let the stack find out. */
		cordon_ipsec_count(ipsec, CORDON_IPSEC_RX_SOFTWARE);
		if (x)
			xfrm_state_put(x);
		return true;
	}
	if (!x) {
		cordon_ipsec_count(ipsec, CORDON_IPSEC_RX_DROP_SA_GONE);
		return false;
	}

	sp = secpath_set(skb);
	if (!sp) {
		cordon_ipsec_count(ipsec, CORDON_IPSEC_RX_DROP_NO_MEMORY);
		xfrm_state_put(x);
		return false;
	}

	/* The secpath keeps the reference. */
	sp->xvec[sp->len++] = x;
	sp->olen++;
	xo = xfrm_offload(skb);
	xo->flags = CRYPTO_DONE;
	xo->status = status;

	if (rx_flags & CORDON_RX_SA_PACKET)
		mix_hash(skb, handle);

	return true;
}
