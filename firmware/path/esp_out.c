// SPDX-License-Identifier: BSD-3-Clause
#include "path/esp.h"

#include "path/csum.h"
#include "path/esp_burst.h"
#include "path/iphdr.h"
#include "path/parse.h"
#include "path/state.h"

/* Pad length and next header, RFC 4303 2.5 and 2.6. */
#define TRAILER_LEN 2

/**
 * struct shape - where everything goes in the packet that is made
 * @l2_len: bytes of the Ethernet header with its tags
 * @ip_len: bytes of the IP header and of the extension headers that stay before ESP
 * @type_off: transport mode: from the IP header's start to the byte that names the next header
 * @payload: what is encrypted begins so far from the start of the frame that was given
 * @payload_len: bytes of it
 * @pad_len: bytes of padding
 * @next_header: what it is
 * @total: bytes of the new IP packet
 */
struct shape {
	uint32_t l2_len;
	uint32_t ip_len;
	uint32_t type_off;
	uint32_t payload;
	uint32_t payload_len;
	uint32_t pad_len;
	uint32_t total;
	uint8_t next_header;
};

static bool is_transport(const struct fw_sa *sa)
{
	return sa->cfg.mode == CORDON_MODE_TRANSPORT;
}

/*
 * Does the mode take such a packet? ESP in transport mode applies to whole packets only, RFC 4303
 * 3.3.4. In BEET mode the header stays behind: so no fragments of IPv4, whose header says that they
 * are, and no options, which the stack doesn't give to the card either.
 */
static bool mode_fits(const struct fw_sa *sa, const struct fw_pkt *p)
{
	if (is_transport(sa))
		return p->family == sa->cfg.family && !p->is_fragment;
	if (sa->cfg.mode != CORDON_MODE_BEET)
		return true;
	if (p->family != sa->cfg.selector.family)
		return false;
	return p->family != CORDON_FAMILY_INET ||
	       (!p->is_fragment && (fw_pkt_data(p)[p->l3] & 15) * 4u == FW_IPV4_LEN);
}

/* May this packet go through this SA at all? Takes nothing yet. */
static enum cordon_result judge(struct fw_sa *sa, const struct fw_pkt *p)
{
	if (sa->cfg.direction != CORDON_DIRECTION_OUT || sa->cfg.offload != CORDON_OFFLOAD_PACKET)
		return CORDON_RESULT_SA_MISMATCH;
	if (!p->family || p->l3 < FW_ETHER_LEN)
		return CORDON_RESULT_SA_MISMATCH;
	if (!sa->state)
		return CORDON_RESULT_SA_STATE;
	if (!fw_pkt_is_whole(p))
		return CORDON_RESULT_TOO_SHORT;
	if (!mode_fits(sa, p))
		return CORDON_RESULT_SA_MISMATCH;
	if (fw_sa_expired(sa))
		return CORDON_RESULT_SA_EXPIRED;
	if (!is_transport(sa) && !sa->next_hop.valid) {
		if (!sa->neighbour_asked && sa->event)
			sa->event(sa, CORDON_EVENT_SA_NEIGHBOUR, 0);
		sa->neighbour_asked = true;
		return CORDON_RESULT_SA_NO_NEIGHBOUR;
	}
	return CORDON_RESULT_OK;
}

/*
 * Tags stay if they fill exactly the room between addresses and type; a forwarded frame's header
 * may be anything.
 */
static uint32_t tags_len(const struct fw_pkt *p)
{
	const uint8_t *frame = fw_pkt_data(p);
	uint32_t off = 12;
	uint16_t type;

	while (off + 4 <= p->l3 - 2u) {
		type = fw_get_be16(frame + off);
		if (type != FW_ETHERTYPE_VLAN && type != FW_ETHERTYPE_QINQ)
			return 0;
		off += 4;
	}
	return off == p->l3 - 2u ? off - 12 : 0;
}

/*
 * ESP goes behind hop-by-hop, routing (with the destination options before it) and fragment
 * headers, RFC 4303 3.1.1.
 */
static void shape_ipv6(struct shape *s, const struct fw_pkt *p)
{
	struct fw_ipv6_walk walk;
	uint8_t passed = FW_PROTO_HOP_BY_HOP;

	fw_ipv6_walk_init(&walk, p);
	do {
		if (passed != FW_PROTO_DEST_OPTS) {
			s->ip_len = walk.off - p->l3;
			s->type_off = walk.type_off - p->l3;
			s->next_header = walk.proto;
		}
		passed = walk.proto;
	} while (fw_ipv6_walk_next(&walk, p));
}

static void shape_transport(struct shape *s, const struct fw_pkt *p)
{
	const uint8_t *ip = fw_pkt_data(p) + p->l3;

	s->l2_len = p->l3;
	if (p->family == CORDON_FAMILY_INET) {
		s->ip_len = (ip[0] & 15) * 4u;
		s->type_off = 9;
		s->next_header = ip[9];
	} else {
		shape_ipv6(s, p);
	}
	s->payload = p->l3 + s->ip_len;
	s->payload_len = p->l3_len - s->ip_len;
}

static void shape_tunnel(struct shape *s, const struct fw_sa *sa, const struct fw_pkt *p)
{
	s->l2_len = FW_ETHER_LEN + tags_len(p);
	s->ip_len = fw_iphdr_len(sa->cfg.family);
	s->next_header = p->family == CORDON_FAMILY_INET ? FW_PROTO_IPIP : FW_PROTO_IPV6;
	s->payload = p->l3;
	s->payload_len = p->l3_len;
}

static void shape_beet(struct shape *s, const struct fw_sa *sa, const struct fw_pkt *p)
{
	const uint8_t *ip = fw_pkt_data(p) + p->l3;
	uint32_t inner_len = fw_iphdr_len(p->family);

	s->l2_len = FW_ETHER_LEN + tags_len(p);
	s->ip_len = fw_iphdr_len(sa->cfg.family);
	s->next_header = ip[p->family == CORDON_FAMILY_INET ? 9 : 6];
	s->payload = p->l3 + inner_len;
	s->payload_len = p->l3_len - inner_len;
}

/* Return: false if the packet becomes longer than IP, the port or the buffer allows. */
static bool shape_make(struct shape *s, const struct fw_sa *sa, const struct fw_pkt *p)
{
	uint32_t front, back;

	if (is_transport(sa))
		shape_transport(s, p);
	else if (sa->cfg.mode == CORDON_MODE_BEET)
		shape_beet(s, sa, p);
	else
		shape_tunnel(s, sa, p);
	s->pad_len = -(s->payload_len + TRAILER_LEN) % sa->ops->block;
	front = s->ip_len + fw_esp_overhead(sa);
	back = s->pad_len + TRAILER_LEN + sa->cfg.icv_len;
	s->total = front + s->payload_len + back;

	if (s->total - (sa->cfg.family == CORDON_FAMILY_INET ? 0 : FW_IPV6_LEN) > UINT16_MAX)
		return false;
	if (p->frame_max && s->l2_len + s->total > p->frame_max)
		return false;
	return s->l2_len + front <= p->off + s->payload &&
	       back <= p->size - p->off - s->payload - s->payload_len;
}

/* Return: false if there is none left. */
static bool take_number(struct fw_sa *sa, uint64_t *seq)
{
	uint32_t flags = le32toh(sa->cfg.flags);
	uint64_t last = fw_state_seq(sa);

	/* The IV is the whole number. So even where its lower half may wrap, no IV comes again. */
	if (last == UINT64_MAX ||
	    (last >= UINT32_MAX && !(flags & (CORDON_SA_ESN | CORDON_SA_SEQ_MAY_WRAP)))) {
		fw_sa_raise(sa, CORDON_SA_STATE_EXHAUSTED, CORDON_EVENT_SA_EXHAUSTED);
		return false;
	}
	*seq = last + 1;
	fw_state_set_seq(sa, *seq);
	return true;
}

static void write_trailer(uint8_t *at, const struct shape *s)
{
	uint32_t i;

	/* RFC 4303 2.4: 1, 2, 3, ... */
	for (i = 0; i < s->pad_len; i++)
		at[i] = (uint8_t)(i + 1);
	at[i] = (uint8_t)s->pad_len;
	at[i + 1] = s->next_header;
}

static void write_transport_ip(uint8_t *ip, const struct shape *s, uint8_t family, uint8_t proto)
{
	ip[s->type_off] = proto;
	if (family == CORDON_FAMILY_INET6) {
		fw_put_be16(ip + 4, (uint16_t)(s->total - FW_IPV6_LEN));
		return;
	}
	fw_put_be16(ip + 2, (uint16_t)s->total);
	fw_put_be16(ip + 10, 0);
	fw_put_be16(ip + 10, fw_csum_fold(fw_csum_add(ip, s->ip_len, 0)));
}

static void write_outer_ip(uint8_t *ip, const uint8_t *inner, const struct shape *s,
			   const struct fw_pkt *p, uint8_t proto)
{
	const struct cordon_sa_cfg *cfg = &p->sa->cfg;
	struct fw_outer outer = {
		.saddr = cfg->saddr,
		.daddr = cfg->daddr,
		.family = cfg->family,
		.inner_family = p->family,
		.flags = le32toh(cfg->flags),
		.hop_limit = p->sa->next_hop.hop_limit,
		.proto = proto,
		.id = ++*p->sa->ip_id,
		.len = s->total,
		.inner_len = s->payload_len,
	};

	if (cfg->mode == CORDON_MODE_BEET)
		fw_iphdr_translate(ip, inner, p->family, &outer);
	else
		fw_iphdr_encap(ip, inner, &outer);
}

static void write_udp(uint8_t *udp, const struct fw_sa *sa, uint32_t len)
{
	__be16 sport, dport;

	fw_state_encap(sa, &sport, &dport);
	memcpy(udp, &sport, 2);
	memcpy(udp + 2, &dport, 2);
	fw_put_be16(udp + 4, (uint16_t)len);
	fw_put_be16(udp + 6, 0);
}

/*
 * Everything but the encryption: the frame grows to the front, its payload stays where it is.
 * Return: false if there is no IV.
 */
static bool build(struct fw_pkt *p, const struct shape *s, uint64_t seq)
{
	struct fw_sa *sa = p->sa;
	bool encap = le32toh(sa->cfg.flags) & CORDON_SA_ENCAP;
	uint8_t proto = encap ? FW_PROTO_UDP : FW_PROTO_ESP;
	uint8_t *payload = fw_pkt_data(p) + s->payload;
	uint8_t *esp = payload - FW_ESP_LEN - sa->ops->iv_len;
	uint8_t *ip = payload - fw_esp_overhead(sa) - s->ip_len;
	uint8_t *frame = ip - s->l2_len;
	uint8_t inner[FW_IPV6_LEN];

	/* In BEET mode what is written comes over what is read. */
	memcpy(inner, fw_pkt_data(p) + p->l3, fw_iphdr_len(p->family));
	/* Tags lie between what is moved and what is written, so they go first. */
	memmove(frame, fw_pkt_data(p), s->l2_len);
	if (is_transport(sa)) {
		memmove(ip, fw_pkt_data(p) + p->l3, s->ip_len);
		write_transport_ip(ip, s, p->family, proto);
	} else {
		memcpy(frame, sa->next_hop.daddr, 6);
		memcpy(frame + 6, sa->next_hop.saddr, 6);
		write_outer_ip(ip, inner, s, p, proto);
	}
	fw_put_be16(ip - 2, fw_ethertype(sa->cfg.family));
	if (encap)
		write_udp(esp - FW_UDP_LEN, sa, s->total - s->ip_len);
	memcpy(esp, &sa->cfg.spi, 4);
	fw_put_be32(esp + 4, (uint32_t)seq);
	write_trailer(payload + s->payload_len, s);

	p->off = (uint32_t)(frame - p->buf);
	p->len = s->l2_len + s->total;
	p->l3 = (uint16_t)s->l2_len;
	p->l3_len = s->total;
	p->family = sa->cfg.family;
	p->ethertype = fw_ethertype(sa->cfg.family);
	p->l4 = (uint16_t)(s->l2_len + s->ip_len);
	p->l4_proto = proto;
	p->esp = (uint16_t)(esp - frame);
	p->is_fragment = false;
	p->is_first_fragment = false;
	return sa->ops->iv(sa->crypto, seq, esp + FW_ESP_LEN);
}

static void prepare_packet(struct fw_pkt *p, struct fw_esp_burst *b)
{
	struct fw_sa *sa = p->sa;
	enum cordon_result result;
	struct shape s = { 0 };
	uint64_t seq;

	result = sa ? judge(sa, p) : CORDON_RESULT_SA_GONE;
	if (result == CORDON_RESULT_OK && !shape_make(&s, sa, p))
		result = CORDON_RESULT_TOO_LONG;
	if (result == CORDON_RESULT_OK && !take_number(sa, &seq))
		result = CORDON_RESULT_SA_EXHAUSTED;
	if (result != CORDON_RESULT_OK) {
		fw_esp_drop(p, result);
		return;
	}

	if (!build(p, &s, seq)) {
		fw_esp_drop(p, CORDON_RESULT_CRYPTO);
		return;
	}
	p->result = CORDON_RESULT_OK;
	/*
	 * Counted as Linux does: the inner packet, or what lies behind the IP header in transport
	 * mode.
	 */
	fw_sa_used(sa, s.payload_len);
	fw_esp_burst_add(b, p, seq, s.payload_len + s.pad_len + TRAILER_LEN);
}

/* RFC 8200 8.1 wants the UDP checksum; it's over the cipher text. */
static void finish_udp(struct fw_pkt *p)
{
	uint8_t *udp = fw_pkt_data(p) + p->l4;
	uint32_t len = p->len - p->l4;
	uint64_t sum = fw_csum_pseudo(fw_pkt_data(p) + p->l3, p->family, FW_PROTO_UDP, len);
	uint16_t csum = fw_csum_fold(fw_csum_add(udp, len, sum));

	fw_put_be16(udp + 6, csum ? csum : 0xffff);
}

static void encrypt(struct fw_esp_burst *b)
{
	struct fw_sa *sa;
	uint32_t i;

	if (!b->count)
		return;
	sa = b->pkts[0]->sa;
	sa->ops->encrypt(sa->crypto, b->ops, b->count);
	for (i = 0; i < b->count; i++) {
		if (!b->ops[i].ok)
			fw_esp_drop(b->pkts[i], CORDON_RESULT_CRYPTO);
		else if (sa->cfg.offload == CORDON_OFFLOAD_PACKET &&
			 b->pkts[i]->l4_proto == FW_PROTO_UDP &&
			 sa->cfg.family == CORDON_FAMILY_INET6)
			finish_udp(b->pkts[i]);
	}
	b->count = 0;
}

void fw_esp_out_packet(struct fw_pkt **pkts, uint32_t count)
{
	struct fw_esp_burst b;
	uint32_t i;

	b.count = 0;
	for (i = 0; i < count; i++) {
		if (b.count == FW_CRYPTO_BURST || (b.count && pkts[i]->sa != b.pkts[0]->sa))
			encrypt(&b);
		prepare_packet(pkts[i], &b);
	}
	encrypt(&b);
	/* Numbers are in the blocks before a packet is on the wire. */
	fw_state_settle();
}

/*
 * The host made the packet; see that it is one of this SA, with this number and room for IV,
 * trailer and ICV.
 */
static enum cordon_result judge_crypto(const struct fw_sa *sa, const struct fw_pkt *p, uint64_t seq)
{
	const uint8_t *esp = fw_pkt_data(p) + p->esp;
	uint32_t least = FW_ESP_LEN + sa->ops->iv_len + TRAILER_LEN + sa->cfg.icv_len;

	if (sa->cfg.direction != CORDON_DIRECTION_OUT || sa->cfg.offload != CORDON_OFFLOAD_CRYPTO)
		return CORDON_RESULT_SA_MISMATCH;
	if (!p->esp || p->esp > p->len || p->len - p->esp < least)
		return CORDON_RESULT_SA_MISMATCH;
	if ((p->len - p->esp - FW_ESP_LEN - sa->ops->iv_len - sa->cfg.icv_len) % sa->ops->block)
		return CORDON_RESULT_SA_MISMATCH;
	if (memcmp(esp, &sa->cfg.spi, 4) || fw_get_be32(esp + 4) != (uint32_t)seq)
		return CORDON_RESULT_SA_MISMATCH;
	return CORDON_RESULT_OK;
}

void fw_esp_out_crypto(struct fw_pkt **pkts, const uint64_t *seqs, uint32_t count)
{
	struct fw_esp_burst b;
	enum cordon_result result;
	struct fw_sa *sa;
	uint32_t i;

	b.count = 0;
	for (i = 0; i < count; i++) {
		if (b.count == FW_CRYPTO_BURST || (b.count && pkts[i]->sa != b.pkts[0]->sa))
			encrypt(&b);
		sa = pkts[i]->sa;
		result = sa ? judge_crypto(sa, pkts[i], seqs[i]) : CORDON_RESULT_SA_GONE;
		if (result == CORDON_RESULT_OK &&
		    !sa->ops->iv(sa->crypto, seqs[i], fw_pkt_data(pkts[i]) + pkts[i]->esp + FW_ESP_LEN))
			result = CORDON_RESULT_CRYPTO;
		if (result != CORDON_RESULT_OK) {
			fw_esp_drop(pkts[i], result);
			continue;
		}
		pkts[i]->result = CORDON_RESULT_OK;
		fw_esp_burst_add(&b, pkts[i], seqs[i],
				 pkts[i]->len - pkts[i]->esp - FW_ESP_LEN - sa->ops->iv_len -
					 sa->cfg.icv_len);
	}
	encrypt(&b);
}
