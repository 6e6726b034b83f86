// SPDX-License-Identifier: BSD-3-Clause
#include "path/parse.h"

#include "path/iphdr.h"

/* As many tags as a host might unwrap; a frame with more isn't IP to it either. */
#define TAGS_MAX 8

/* Bytes of a header without which there is nothing in it to look at. */
static uint32_t l4_len_min(uint8_t proto)
{
	switch (proto) {
	case FW_PROTO_TCP:
		return 20;
	case FW_PROTO_UDP:
	case FW_PROTO_UDPLITE:
		return FW_UDP_LEN;
	case FW_PROTO_ESP:
		return FW_ESP_LEN;
	case FW_PROTO_SCTP:
		return 12;
	case FW_PROTO_ICMP:
	case FW_PROTO_ICMPV6:
	case FW_PROTO_GRE:
		return 4;
	default:
		return 1;
	}
}

/*
 * Of a first fragment only what tells packets apart: ports, type, key. RFC 791 has it 8 bytes long at
 * least, and who sends one shorter than a TCP header mustn't get around policies by that.
 */
static uint32_t l4_len_needed(const struct fw_pkt *p, uint8_t proto)
{
	return p->is_fragment ? FW_MIN(l4_len_min(proto), 8u) : l4_len_min(proto);
}

/* The end of what can be read: of the frame or of the IP packet, whichever comes first. */
static uint32_t packet_end(const struct fw_pkt *p)
{
	return p->l3 + FW_MIN(p->l3_len, p->len - p->l3);
}

static void parse_l4(struct fw_pkt *p, uint32_t off, uint8_t proto)
{
	uint32_t end = packet_end(p);

	p->l4_proto = proto;
	if (p->is_fragment && !p->is_first_fragment)
		return;
	if (off > end || end - off < l4_len_needed(p, proto) || off > UINT16_MAX)
		return;
	p->l4 = (uint16_t)off;
	if (proto == FW_PROTO_ESP)
		p->esp = p->l4;
}

static bool parse_ipv4(struct fw_pkt *p, uint16_t l3)
{
	const uint8_t *ip = fw_pkt_data(p) + l3;
	uint32_t room = p->len - l3;
	uint32_t ip_len;
	uint32_t len;
	uint16_t fragment;

	if (room < FW_IPV4_LEN)
		return false;
	ip_len = (ip[0] & 15) * 4u;
	len = fw_get_be16(ip + 2);
	if (ip_len < FW_IPV4_LEN || ip_len > room || len < ip_len)
		return false;

	p->l3 = l3;
	p->l3_len = len;
	p->family = CORDON_FAMILY_INET;
	fragment = fw_get_be16(ip + 6);
	p->is_fragment = fragment & (FW_IPV4_MF | FW_IPV4_OFFSET);
	p->is_first_fragment = p->is_fragment && !(fragment & FW_IPV4_OFFSET);
	parse_l4(p, l3 + ip_len, ip[9]);
	return true;
}

void fw_ipv6_walk_init(struct fw_ipv6_walk *w, const struct fw_pkt *p)
{
	w->off = (uint32_t)p->l3 + FW_IPV6_LEN;
	w->type_off = (uint32_t)p->l3 + 6;
	w->proto = fw_pkt_data(p)[w->type_off];
	w->fragment = 0;
}

static bool is_extension(uint8_t proto)
{
	return proto == FW_PROTO_HOP_BY_HOP || proto == FW_PROTO_ROUTING ||
	       proto == FW_PROTO_FRAGMENT || proto == FW_PROTO_DEST_OPTS;
}

bool fw_ipv6_walk_next(struct fw_ipv6_walk *w, const struct fw_pkt *p)
{
	const uint8_t *header = fw_pkt_data(p) + w->off;
	uint32_t end = packet_end(p);
	uint32_t len = 8;
	uint16_t fragment;

	if (!is_extension(w->proto) || w->off > end || end - w->off < len)
		return false;

	if (w->proto == FW_PROTO_FRAGMENT) {
		/*
		 * Offset in the high 13 bits, bit 0 is M, RFC 8200 4.5. What lies behind a later
		 * fragment's header isn't a header.
		 */
		fragment = fw_get_be16(header + 2) & 0xfff9;
		if (fragment)
			w->fragment = fragment;
		if (fragment & 0xfff8) {
			w->type_off = w->off;
			w->off += len;
			w->proto = header[0];
			return false;
		}
	} else {
		len += header[1] * 8u;
		if (end - w->off < len)
			return false;
	}
	w->type_off = w->off;
	w->off += len;
	w->proto = header[0];
	return true;
}

static bool parse_ipv6(struct fw_pkt *p, uint16_t l3)
{
	const uint8_t *ip = fw_pkt_data(p) + l3;
	struct fw_ipv6_walk walk;

	if (p->len - l3 < FW_IPV6_LEN)
		return false;

	p->l3 = l3;
	p->l3_len = FW_IPV6_LEN + (uint32_t)fw_get_be16(ip + 4);
	p->family = CORDON_FAMILY_INET6;
	fw_ipv6_walk_init(&walk, p);
	while (fw_ipv6_walk_next(&walk, p))
		;
	p->is_fragment = walk.fragment;
	p->is_first_fragment = p->is_fragment && !(walk.fragment & 0xfff8);
	p->l4_proto = walk.proto;
	/* An extension header is left only if it isn't whole. */
	if (!is_extension(walk.proto))
		parse_l4(p, walk.off, walk.proto);
	return true;
}

bool fw_parse_l3(struct fw_pkt *p, uint16_t l3)
{
	uint8_t version;

	p->l3 = 0;
	p->l4 = 0;
	p->l4_proto = 0;
	p->family = 0;
	p->is_fragment = false;
	p->is_first_fragment = false;
	p->esp = 0;
	p->l3_len = 0;
	if (!l3 || l3 >= p->len)
		return false;

	version = fw_pkt_data(p)[l3] >> 4;
	if (version == 4)
		return parse_ipv4(p, l3);
	if (version == 6)
		return parse_ipv6(p, l3);
	return false;
}

void fw_parse_frame(struct fw_pkt *p)
{
	const uint8_t *frame = fw_pkt_data(p);
	uint32_t off = FW_ETHER_LEN;
	uint16_t type = 0;

	p->vlan_cnt = 0;
	if (p->len >= FW_ETHER_LEN)
		type = fw_get_be16(frame + 12);
	while ((type == FW_ETHERTYPE_VLAN || type == FW_ETHERTYPE_QINQ) && p->vlan_cnt < TAGS_MAX &&
	       p->len - off >= 4) {
		if (!p->vlan_cnt)
			p->vlan_tci = fw_get_be16(frame + off);
		p->vlan_cnt++;
		type = fw_get_be16(frame + off + 2);
		off += 4;
	}
	p->ethertype = type;

	/*
	 * The type and the version must agree, or the host would take the packet for something else
	 * than we do.
	 */
	if (type != FW_ETHERTYPE_IPV4 && type != FW_ETHERTYPE_IPV6)
		off = 0;
	if (!fw_parse_l3(p, (uint16_t)off))
		return;
	if (fw_ethertype(p->family) != type)
		fw_parse_l3(p, 0);
}
