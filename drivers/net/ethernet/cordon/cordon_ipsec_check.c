// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: IPsec offload, which SAs the card takes.
 *
 * Every refusal says what was asked for and what there is. What is refused in packet mode is
 * refused in crypto mode too, where the stack then does it by itself: who tries both is never left
 * with an SA in one mode and its policy in the other.
 *
 * An extack message has room for 80 characters.
 */

#include <linux/bitops.h>
#include <linux/seq_file.h>
#include <linux/udp.h>
#include <net/xfrm.h>

#include "cordon_ipsec.h"

static const char *const mode_names[] = {
	[XFRM_MODE_TRANSPORT] = "transport",
	[XFRM_MODE_TUNNEL] = "tunnel",
	[XFRM_MODE_ROUTEOPTIMIZATION] = "ro",
	[XFRM_MODE_IN_TRIGGER] = "in_trigger",
	[XFRM_MODE_BEET] = "beet",
};

/**
 * cordon_ipsec_mode() - mode of an SA or template for the card
 * @xfrm_mode: XFRM_MODE_*
 *
 * Context: any.
 * Return: enum cordon_mode, 0 if it has none.
 */
u8 cordon_ipsec_mode(u8 xfrm_mode)
{
	switch (xfrm_mode) {
	case XFRM_MODE_TRANSPORT:
		return CORDON_MODE_TRANSPORT;
	case XFRM_MODE_TUNNEL:
		return CORDON_MODE_TUNNEL;
	case XFRM_MODE_BEET:
		return CORDON_MODE_BEET;
	default:
		return 0;
	}
}

/**
 * cordon_ipsec_family() - address family for the card
 * @family: AF_*
 *
 * Context: any.
 * Return: CORDON_FAMILY_*, CORDON_FAMILY_ANY if it has none.
 */
u8 cordon_ipsec_family(u16 family)
{
	switch (family) {
	case AF_INET:
		return CORDON_FAMILY_INET;
	case AF_INET6:
		return CORDON_FAMILY_INET6;
	default:
		return CORDON_FAMILY_ANY;
	}
}

static int check_offload(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
			 struct netlink_ext_ack *extack)
{
	bool packet = x->xso.type == XFRM_DEV_OFFLOAD_PACKET;
	u32 offload = packet ? CORDON_OFFLOAD_PACKET : CORDON_OFFLOAD_CRYPTO;

	if (x->xso.type != XFRM_DEV_OFFLOAD_PACKET && x->xso.type != XFRM_DEV_OFFLOAD_CRYPTO) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "offload type %u unknown, allowed: crypto packet",
				       x->xso.type);
		return -EOPNOTSUPP;
	}
	if (!(caps->offloads & BIT(offload))) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "%s offload not supported by this card",
				       packet ? "packet" : "crypto");
		return -EOPNOTSUPP;
	}
	if (x->xso.dir != XFRM_DEV_OFFLOAD_IN && x->xso.dir != XFRM_DEV_OFFLOAD_OUT) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "direction %u unknown, allowed: in out", x->xso.dir);
		return -EOPNOTSUPP;
	}

	return 0;
}

static int check_identity(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
			  struct netlink_ext_ack *extack)
{
	u8 family = cordon_ipsec_family(x->props.family);
	u8 mode = cordon_ipsec_mode(x->props.mode);
	const char *name = "unknown";

	if (x->id.proto != IPPROTO_ESP) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "protocol %u not supported, allowed: 50 (ESP)",
				       x->id.proto);
		return -EOPNOTSUPP;
	}
	if (!x->id.spi) {
		NL_SET_ERR_MSG_MOD(extack, "SPI 0 not supported, allowed: 1 to 0xffffffff");
		return -EOPNOTSUPP;
	}
	if (!family || !(caps->families & BIT(family))) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "address family %u not supported, allowed:%s%s",
				       x->props.family,
				       caps->families & BIT(CORDON_FAMILY_INET) ? " IPv4" : "",
				       caps->families & BIT(CORDON_FAMILY_INET6) ? " IPv6" : "");
		return -EOPNOTSUPP;
	}
	if (!mode || !(caps->modes & BIT(mode))) {
		if (x->props.mode < ARRAY_SIZE(mode_names))
			name = mode_names[x->props.mode];
		NL_SET_ERR_MSG_FMT_MOD(extack, "mode %u (%s) not supported, allowed:%s%s%s",
				       x->props.mode, name,
				       caps->modes & BIT(CORDON_MODE_TRANSPORT) ? " transport" : "",
				       caps->modes & BIT(CORDON_MODE_TUNNEL) ? " tunnel" : "",
				       caps->modes & BIT(CORDON_MODE_BEET) ? " beet" : "");
		return -EOPNOTSUPP;
	}
	if (x->coaddr) {
		NL_SET_ERR_MSG_MOD(extack, "care-of address not supported, allowed: none");
		return -EOPNOTSUPP;
	}

	return 0;
}

/*
 * In packet mode the card makes inner headers with the selector's addresses, in both directions it
 * takes packets between these hosts alone.
 */
static int check_inner_addresses(const struct xfrm_state *x, struct netlink_ext_ack *extack)
{
	u8 bits = x->sel.family == AF_INET6 ? 128 : 32;

	if (x->props.mode != XFRM_MODE_BEET || x->xso.type != XFRM_DEV_OFFLOAD_PACKET)
		return 0;
	if (!cordon_ipsec_family(x->sel.family) || x->sel.prefixlen_s != bits ||
	    x->sel.prefixlen_d != bits) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "selector of /%u and /%u in BEET mode not supported, allowed: /%u",
				       x->sel.prefixlen_s, x->sel.prefixlen_d, bits);
		return -EOPNOTSUPP;
	}

	return 0;
}

static int check_selection(const struct xfrm_state *x, struct netlink_ext_ack *extack)
{
	bool in = x->xso.dir == XFRM_DEV_OFFLOAD_IN;

	if (in && (x->mark.v || x->mark.m)) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "mark 0x%x of an inbound SA not supported, allowed: 0",
				       x->mark.v);
		return -EOPNOTSUPP;
	}
	if (in && (x->props.smark.v || x->props.smark.m)) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "output-mark 0x%x of an inbound SA not supported, allowed: 0",
				       x->props.smark.v);
		return -EOPNOTSUPP;
	}
	/* Some kernels refuse it before they ask us. */
	if (in && x->if_id) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "if_id 0x%x of an inbound SA not supported, allowed: 0",
				       x->if_id);
		return -EOPNOTSUPP;
	}
	if (x->sel.ifindex) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "selector's interface %d not supported, allowed: 0",
				       x->sel.ifindex);
		return -EOPNOTSUPP;
	}
	if (x->security) {
		NL_SET_ERR_MSG_MOD(extack, "security context not supported, allowed: none");
		return -EOPNOTSUPP;
	}
	if (x->tfcpad) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "TFC padding to %u not supported, allowed: 0",
				       x->tfcpad);
		return -EOPNOTSUPP;
	}

	return 0;
}

/* In crypto mode over IPv6 the stack would write the UDP header over the ESP header. */
static bool may_encap(bool packet, u16 family)
{
	return packet || family == AF_INET;
}

/*
 * In crypto mode the stack receives ESP in UDP by a socket of the key manager, whose policy lets
 * through what came through no SA or one in transport mode.
 */
static bool may_encap_mode(bool packet, bool in, u8 mode)
{
	return packet || !in || mode == XFRM_MODE_TRANSPORT;
}

static int check_encap(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
		       struct netlink_ext_ack *extack)
{
	bool packet = x->xso.type == XFRM_DEV_OFFLOAD_PACKET;
	bool in = x->xso.dir == XFRM_DEV_OFFLOAD_IN;

	if (!x->encap)
		return 0;

	if (x->encap->encap_type != UDP_ENCAP_ESPINUDP) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "encap type %u not supported, allowed: %u (espinudp)",
				       x->encap->encap_type, UDP_ENCAP_ESPINUDP);
		return -EOPNOTSUPP;
	}
	if (!(caps->sa_flags & CORDON_SA_ENCAP)) {
		NL_SET_ERR_MSG_MOD(extack, "encap espinudp not supported by this card");
		return -EOPNOTSUPP;
	}
	if (!may_encap(packet, x->props.family)) {
		NL_SET_ERR_MSG_MOD(extack,
				   "encap over IPv6 not supported, allowed: packet offload");
		return -EOPNOTSUPP;
	}
	if (!may_encap_mode(packet, in, x->props.mode)) {
		NL_SET_ERR_MSG_MOD(extack,
				   "encap of inbound tunnel not supported, allowed: packet offload");
		return -EOPNOTSUPP;
	}

	return 0;
}

static int check_replay(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
			struct netlink_ext_ack *extack)
{
	u32 max = min_t(u32, caps->replay_window_max, CORDON_REPLAY_WINDOW_MAX);
	u32 window = x->replay_esn ? x->replay_esn->replay_window : x->props.replay_window;

	if (x->props.flags & XFRM_STATE_ESN && !(caps->sa_flags & CORDON_SA_ESN)) {
		NL_SET_ERR_MSG_MOD(extack, "flag esn not supported by this card");
		return -EOPNOTSUPP;
	}
	if (x->props.flags & XFRM_STATE_ESN && !x->replay_esn) {
		NL_SET_ERR_MSG_MOD(extack, "flag esn without its sequence numbers not supported");
		return -EOPNOTSUPP;
	}
	if (x->xso.dir == XFRM_DEV_OFFLOAD_IN && window > max) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "replay window of %u not supported, allowed: 0 to %u",
				       window, max);
		return -EOPNOTSUPP;
	}

	return 0;
}

/* A flag of the stack that the card has to know. */
struct flag_rule {
	u32 xfrm;
	u32 cordon;
	const char *name;
	bool packet_only;
};

static const struct flag_rule flag_rules[] = {
	{ XFRM_STATE_NOECN, CORDON_SA_NO_ECN, "noecn" },
	{ XFRM_STATE_DECAP_DSCP, CORDON_SA_DECAP_DSCP, "decap-dscp" },
	{ XFRM_STATE_NOPMTUDISC, CORDON_SA_NO_PMTU_DISC, "nopmtudisc" },
};

static const struct flag_rule extra_flag_rules[] = {
	{ XFRM_SA_XFLAG_DONT_ENCAP_DSCP, CORDON_SA_NO_DSCP, "dont-encap-dscp" },
	/* In crypto mode the stack's number is the IV, and would come again. */
	{ XFRM_SA_XFLAG_OSEQ_MAY_WRAP, CORDON_SA_SEQ_MAY_WRAP, "oseq-may-wrap", true },
};

/* ESN has a check of its own; AF_UNSPEC speaks of the selector, ALIGN4 of AH. */
#define CORDON_STATE_FLAGS (XFRM_STATE_NOECN | XFRM_STATE_DECAP_DSCP | XFRM_STATE_NOPMTUDISC | \
			    XFRM_STATE_AF_UNSPEC | XFRM_STATE_ALIGN4 | XFRM_STATE_ESN)
#define CORDON_STATE_EXTRA_FLAGS (XFRM_SA_XFLAG_DONT_ENCAP_DSCP | XFRM_SA_XFLAG_OSEQ_MAY_WRAP)

static int check_flag_rules(const struct cordon_caps_ipsec *caps, const struct flag_rule *rules,
			    size_t count, const struct xfrm_state *x, u32 flags,
			    struct netlink_ext_ack *extack)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (!(flags & rules[i].xfrm))
			continue;
		if (rules[i].packet_only && x->xso.type != XFRM_DEV_OFFLOAD_PACKET) {
			NL_SET_ERR_MSG_FMT_MOD(extack,
					       "flag %s not supported, allowed: packet offload",
					       rules[i].name);
			return -EOPNOTSUPP;
		}
		if (!(caps->sa_flags & rules[i].cordon)) {
			NL_SET_ERR_MSG_FMT_MOD(extack, "flag %s not supported by this card",
					       rules[i].name);
			return -EOPNOTSUPP;
		}
	}

	return 0;
}

static int check_flags(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
		       struct netlink_ext_ack *extack)
{
	int err;

	if (x->props.flags & XFRM_STATE_WILDRECV) {
		NL_SET_ERR_MSG_MOD(extack, "flag wildrecv not supported, allowed: not set");
		return -EOPNOTSUPP;
	}
	if (x->props.flags & XFRM_STATE_ICMP) {
		NL_SET_ERR_MSG_MOD(extack, "flag icmp not supported, allowed: not set");
		return -EOPNOTSUPP;
	}
	if (x->props.flags & ~CORDON_STATE_FLAGS) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "flags 0x%x not supported, allowed: 0x%x",
				       x->props.flags, CORDON_STATE_FLAGS);
		return -EOPNOTSUPP;
	}
	if (x->props.extra_flags & ~CORDON_STATE_EXTRA_FLAGS) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "extra-flags 0x%x not supported, allowed: 0x%x",
				       x->props.extra_flags, CORDON_STATE_EXTRA_FLAGS);
		return -EOPNOTSUPP;
	}

	err = check_flag_rules(caps, flag_rules, ARRAY_SIZE(flag_rules), x, x->props.flags, extack);
	if (err)
		return err;

	return check_flag_rules(caps, extra_flag_rules, ARRAY_SIZE(extra_flag_rules), x,
				x->props.extra_flags, extack);
}

static int check_limit(const char *what, u64 soft, u64 hard, struct netlink_ext_ack *extack)
{
	if (!soft || !hard) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "%s limit %s 0 not supported, allowed: 1 or more", what,
				       soft ? "hard" : "soft");
		return -EOPNOTSUPP;
	}
	if (soft != XFRM_INF && soft > hard) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "%s limit soft %llu not supported, allowed: 1 to %llu",
				       what, soft, hard);
		return -EOPNOTSUPP;
	}

	return 0;
}

/**
 * cordon_ipsec_check() - judge an SA against what the card can do
 * @cdev: device
 * @x: SA
 * @extack: says what is refused, and what would be allowed
 *
 * Context: process.
 * Return: 0, -EOPNOTSUPP.
 */
int cordon_ipsec_check(const struct cordon_dev *cdev, const struct xfrm_state *x,
		       struct netlink_ext_ack *extack)
{
	const struct cordon_caps_ipsec *caps = &cdev->ipsec_caps;
	int err;

	err = check_offload(caps, x, extack);
	if (err)
		return err;
	err = check_identity(caps, x, extack);
	if (err)
		return err;
	err = check_selection(x, extack);
	if (err)
		return err;
	err = check_inner_addresses(x, extack);
	if (err)
		return err;
	err = cordon_ipsec_suite_check(caps, x, extack);
	if (err)
		return err;
	err = check_encap(caps, x, extack);
	if (err)
		return err;
	err = check_replay(caps, x, extack);
	if (err)
		return err;
	err = check_flags(caps, x, extack);
	if (err)
		return err;
	err = check_limit("packet", x->lft.soft_packet_limit, x->lft.hard_packet_limit, extack);
	if (err)
		return err;

	return check_limit("byte", x->lft.soft_byte_limit, x->lft.hard_byte_limit, extack);
}

static void show_flags(struct seq_file *file, const struct cordon_caps_ipsec *caps, bool packet,
		       const struct flag_rule *rules, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (caps->sa_flags & rules[i].cordon && (packet || !rules[i].packet_only))
			seq_printf(file, " %s", rules[i].name);
}

static void show_encap(struct seq_file *file, const struct cordon_caps_ipsec *caps, bool packet,
		       bool in)
{
	seq_printf(file, "%s espinudp %s:", packet ? "packet" : "crypto", in ? "in" : "out");
	if (caps->sa_flags & CORDON_SA_ENCAP)
		seq_printf(file, "%s%s%s",
			   caps->families & BIT(CORDON_FAMILY_INET) ? " IPv4" : "",
			   caps->families & BIT(CORDON_FAMILY_INET6) &&
			   may_encap(packet, AF_INET6) ? " IPv6" : "",
			   may_encap_mode(packet, in, XFRM_MODE_TUNNEL) ? "" : " transport");
	seq_putc(file, '\n');
}

static void show_offload(struct seq_file *file, const struct cordon_caps_ipsec *caps, bool packet)
{
	const char *name = packet ? "packet" : "crypto";

	seq_printf(file, "%s flags:%s", name, caps->sa_flags & CORDON_SA_ESN ? " esn" : "");
	show_flags(file, caps, packet, flag_rules, ARRAY_SIZE(flag_rules));
	show_flags(file, caps, packet, extra_flag_rules, ARRAY_SIZE(extra_flag_rules));
	seq_putc(file, '\n');
	show_encap(file, caps, packet, true);
	show_encap(file, caps, packet, false);
}

/**
 * cordon_ipsec_check_show() - print which SAs cordon_ipsec_check() takes
 * @file: where to print
 * @cdev: device with IPsec offload
 *
 * Context: process.
 */
void cordon_ipsec_check_show(struct seq_file *file, const struct cordon_dev *cdev)
{
	const struct cordon_caps_ipsec *caps = &cdev->ipsec_caps;
	bool crypto = caps->offloads & BIT(CORDON_OFFLOAD_CRYPTO);
	bool packet = caps->offloads & BIT(CORDON_OFFLOAD_PACKET);

	seq_printf(file, "offloads:%s%s\n", crypto ? " crypto" : "", packet ? " packet" : "");
	seq_printf(file, "modes:%s%s%s\n",
		   caps->modes & BIT(CORDON_MODE_TRANSPORT) ? " transport" : "",
		   caps->modes & BIT(CORDON_MODE_TUNNEL) ? " tunnel" : "",
		   caps->modes & BIT(CORDON_MODE_BEET) ? " beet" : "");
	seq_printf(file, "families:%s%s\n",
		   caps->families & BIT(CORDON_FAMILY_INET) ? " IPv4" : "",
		   caps->families & BIT(CORDON_FAMILY_INET6) ? " IPv6" : "");
	seq_printf(file, "replay-window: 0-%u\n", caps->replay_window_max);
	seq_printf(file, "sas: %u\npolicies: %u\n", caps->sa_max, caps->policy_max);
	if (crypto)
		show_offload(file, caps, false);
	if (packet)
		show_offload(file, caps, true);
	cordon_ipsec_suite_show(file, caps);
}
