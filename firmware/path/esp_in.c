// SPDX-License-Identifier: BSD-3-Clause
#include "path/esp.h"

#include <errno.h>

#include "cordon/ring.h"
#include "path/csum.h"
#include "path/esp_burst.h"
#include "path/iphdr.h"
#include "path/parse.h"
#include "path/replay.h"
#include "path/spd.h"
#include "path/state.h"

/* Pseudo header of BEET mode: fixed part, and with the most padding. */
#define BEETPH_LEN 4
#define BEETPH_MAX 8
#define IPV4_OPTIONS_MAX 40

/*
 * Bytes between the ESP header's start and the IP packet's end; what a short frame was padded with
 * isn't part of it.
 */
static uint32_t esp_len(const struct fw_pkt *p)
{
	return p->l3_len - (p->esp - p->l3);
}

/* Is there a whole ESP packet, wrapped as the SA says? */
static bool layout_is_right(const struct fw_sa *sa, const struct fw_pkt *p)
{
	const uint8_t *ip = fw_pkt_data(p) + p->l3;
	uint8_t proto = le32toh(sa->cfg.flags) & CORDON_SA_ENCAP ? FW_PROTO_UDP : FW_PROTO_ESP;
	uint32_t before = proto == FW_PROTO_UDP ? FW_UDP_LEN : 0;

	if (sa->cfg.direction != CORDON_DIRECTION_IN || sa->cfg.family != p->family ||
	    !fw_pkt_is_whole(p))
		return false;
	if (p->l4_proto != proto || !p->l4 || p->esp != p->l4 + before ||
	    (uint32_t)(p->esp - p->l3) > p->l3_len)
		return false;
	/* The ICV doesn't cover the IP header. */
	if (p->family == CORDON_FAMILY_INET && fw_csum_fold(fw_csum_add(ip, (size_t)(ip[0] & 15) * 4, 0)))
		return false;
	return esp_len(p) >= FW_ESP_LEN;
}

/* Room for the trailer isn't asked for: what hasn't got it fails by its ICV, as in Linux. */
static bool is_long_enough(const struct fw_sa *sa, const struct fw_pkt *p)
{
	return esp_len(p) >= FW_ESP_LEN + sa->ops->iv_len + (uint32_t)sa->cfg.icv_len;
}

static uint32_t cipher_len(const struct fw_pkt *p)
{
	return esp_len(p) - FW_ESP_LEN - p->sa->ops->iv_len - p->sa->cfg.icv_len;
}

/* What isn't fit for the card goes up as it came: the stack does it, or counts it. */
static void prepare_crypto(struct fw_pkt *p, struct fw_esp_burst *b)
{
	struct fw_sa *sa = p->sa;
	uint64_t seq;

	p->result = CORDON_RESULT_OK;
	if (p->is_fragment || !layout_is_right(sa, p) || !is_long_enough(sa, p) ||
	    cipher_len(p) % sa->ops->block)
		return;
	if (le32toh(sa->cfg.flags) & CORDON_SA_ESN && !sa->state)
		return;
	seq = fw_get_be32(fw_pkt_data(p) + p->esp + 4);
	if (sa->state)
		seq = fw_replay_number(sa, (uint32_t)seq);
	fw_esp_burst_add(b, p, seq, cipher_len(p))->restore = true;
}

static uint64_t number(const struct fw_pkt *p)
{
	return fw_replay_number(p->sa, fw_get_be32(fw_pkt_data(p) + p->esp + 4));
}

/*
 * Is the packet refused by its number, as the window is before the burst that waits? Behind it the
 * reason may be another one.
 */
static bool is_old(const struct fw_pkt *p)
{
	return !p->is_fragment && p->sa->state && layout_is_right(p->sa, p) &&
	       fw_replay_check(p->sa, number(p)) != CORDON_RESULT_OK;
}

static void prepare_packet(struct fw_pkt *p, struct fw_esp_burst *b)
{
	struct fw_sa *sa = p->sa;
	enum cordon_result result;
	uint64_t seq;

	if (p->is_fragment) {
		fw_esp_drop(p, CORDON_RESULT_FRAGMENT);
		return;
	}
	if (!layout_is_right(sa, p)) {
		fw_esp_drop(p, CORDON_RESULT_SA_MISMATCH);
		return;
	}
	if (!sa->state) {
		fw_esp_drop(p, CORDON_RESULT_SA_STATE);
		return;
	}
	seq = number(p);
	/* In this order Linux looks at a packet, and counts it. */
	result = fw_replay_check(sa, seq);
	if (result == CORDON_RESULT_OK && fw_sa_expired(sa))
		result = CORDON_RESULT_SA_EXPIRED;
	if (result == CORDON_RESULT_OK && !is_long_enough(sa, p))
		result = CORDON_RESULT_BAD_TRAILER;
	if (result != CORDON_RESULT_OK) {
		fw_esp_drop(p, result);
		return;
	}
	p->result = CORDON_RESULT_OK;
	fw_esp_burst_add(b, p, seq, cipher_len(p));
}

static void finish_crypto(struct fw_pkt *p, uint64_t seq, bool ok)
{
	/* Not counted as a drop: the host gets the packet and counts. */
	p->flags |= CORDON_RX_SA_CRYPTO;
	if (!ok) {
		p->result = CORDON_RESULT_AUTH_FAILED;
		return;
	}
	if (le32toh(p->sa->cfg.flags) & CORDON_SA_ESN)
		fw_replay_advance(p->sa, seq);
}

/*
 * Put the Ethernet header, and @ip_len bytes behind it, right before @payload; the packet then ends
 * @len bytes behind that.
 */
static void close_gap(struct fw_pkt *p, const uint8_t *payload, uint32_t ip_len, uint32_t len)
{
	uint32_t keep = p->l3 + ip_len;
	uint32_t gap = (uint32_t)(payload - fw_pkt_data(p)) - keep;

	memmove(fw_pkt_data(p) + gap, fw_pkt_data(p), keep);
	p->off += gap;
	p->len = keep + len;
}

static bool unwrap_transport_ipv6(struct fw_pkt *p, uint8_t next_header)
{
	struct fw_ipv6_walk walk;

	fw_ipv6_walk_init(&walk, p);
	while (walk.off < p->l4)
		if (!fw_ipv6_walk_next(&walk, p))
			return false;
	if (walk.off != p->l4)
		return false;
	fw_pkt_data(p)[walk.type_off] = next_header;
	return true;
}

static enum cordon_result unwrap_transport(struct fw_pkt *p, const uint8_t *payload, uint32_t len,
					   uint8_t next_header)
{
	uint8_t *ip = fw_pkt_data(p) + p->l3;
	uint32_t ip_len = p->l4 - p->l3;

	if (p->family == CORDON_FAMILY_INET) {
		fw_iphdr_set_ipv4(ip, 2, (uint16_t)(ip_len + len));
		fw_iphdr_set_ipv4(ip, 8, (uint16_t)(ip[8] << 8 | next_header));
	} else {
		if (!unwrap_transport_ipv6(p, next_header))
			return CORDON_RESULT_SA_MISMATCH;
		fw_put_be16(ip + 4, (uint16_t)(ip_len + len - FW_IPV6_LEN));
	}
	close_gap(p, payload, ip_len, len);
	/*
	 * The path may have translated addresses; the ICV was right, RFC 3948 3.1.2 lets the
	 * checksum be.
	 */
	if (le32toh(p->sa->cfg.flags) & CORDON_SA_ENCAP &&
	    (next_header == FW_PROTO_TCP || next_header == FW_PROTO_UDP))
		p->flags |= CORDON_RX_CSUM_GOOD;
	return CORDON_RESULT_OK;
}

/*
 * Bytes of the IP packet by its own header, which is there; 0 if the rest isn't. What follows is
 * traffic flow padding, RFC 4303 2.7.
 */
static uint32_t inner_len(const uint8_t *ip, uint32_t len, uint8_t family)
{
	uint32_t total;

	if (family == CORDON_FAMILY_INET) {
		if (ip[0] >> 4 != 4 || (ip[0] & 15) * 4u < FW_IPV4_LEN)
			return 0;
		total = fw_get_be16(ip + 2);
		if (total < (ip[0] & 15) * 4u)
			return 0;
	} else {
		if (ip[0] >> 4 != 6)
			return 0;
		total = FW_IPV6_LEN + (uint32_t)fw_get_be16(ip + 4);
	}
	return total <= len ? total : 0;
}

static enum cordon_result unwrap_tunnel(struct fw_pkt *p, uint8_t *payload, uint32_t len,
					uint8_t next_header)
{
	uint8_t outer = fw_iphdr_dsfield(fw_pkt_data(p) + p->l3, p->family);
	uint8_t family;

	if (next_header == FW_PROTO_IPIP)
		family = CORDON_FAMILY_INET;
	else if (next_header == FW_PROTO_IPV6)
		family = CORDON_FAMILY_INET6;
	else
		return CORDON_RESULT_BAD_MODE;
	if (len < (family == CORDON_FAMILY_INET ? FW_IPV4_LEN : FW_IPV6_LEN))
		return CORDON_RESULT_BAD_MODE;
	len = inner_len(payload, len, family);
	if (!len)
		return CORDON_RESULT_BAD_INNER;

	fw_iphdr_decap(payload, family, outer, le32toh(p->sa->cfg.flags));
	close_gap(p, payload, 0, len);
	fw_put_be16(payload - 2, fw_ethertype(family));
	p->ethertype = fw_ethertype(family);
	return CORDON_RESULT_OK;
}

/*
 * IPv4 options of a BEET packet: a pseudo header says how many there are, and how many bytes come
 * before them. Return: bytes of options, or -EINVAL.
 */
static int beet_options(uint8_t **payload, uint32_t *len, uint8_t *next_header)
{
	const uint8_t *head = *payload;
	uint32_t head_len;
	int options;

	if (*len < BEETPH_LEN)
		return -EINVAL;
	/* next header, 8-byte units behind the first 8, bytes of padding; then padding, options */
	head_len = BEETPH_LEN + head[2];
	options = head[1] * 8 + BEETPH_MAX - (int)head_len;
	if (head_len > *len || options < 0 || options % 4 || options > IPV4_OPTIONS_MAX ||
	    (uint32_t)options > *len - head_len)
		return -EINVAL;
	*next_header = head[0];
	*payload += head_len;
	*len -= head_len;
	return options;
}

/* The inner header is made of the outer one, with the addresses of the selector. */
static enum cordon_result unwrap_beet(struct fw_pkt *p, uint8_t *payload, uint32_t len,
				      uint8_t next_header)
{
	const struct cordon_selector *sel = &p->sa->cfg.selector;
	uint32_t head_len = fw_iphdr_len(sel->family);
	uint8_t header[FW_IPV6_LEN];
	int options = 0;
	struct fw_outer inner;
	uint8_t *ip;

	if (sel->family == CORDON_FAMILY_INET && next_header == FW_PROTO_BEETPH)
		options = beet_options(&payload, &len, &next_header);
	if (options < 0 || len > UINT16_MAX - (sel->family == CORDON_FAMILY_INET ? head_len : 0))
		return CORDON_RESULT_BAD_INNER;
	ip = payload - head_len;
	if ((uint32_t)(ip - p->buf) < p->l3)
		return CORDON_RESULT_BAD_INNER;

	inner = (struct fw_outer){
		.saddr = sel->saddr,
		.daddr = sel->daddr,
		.family = sel->family,
		.proto = next_header,
		.len = head_len + len,
	};
	fw_iphdr_translate(header, fw_pkt_data(p) + p->l3, p->family, &inner);
	memmove(ip - p->l3, fw_pkt_data(p), p->l3);
	memcpy(ip, header, head_len);
	if (options) {
		ip[0] = (uint8_t)(0x45 + options / 4);
		fw_put_be16(ip + 10, 0);
		fw_put_be16(ip + 10, fw_csum_fold(fw_csum_add(ip, head_len + (uint32_t)options, 0)));
	}
	p->off = (uint32_t)(ip - p->buf) - p->l3;
	p->len = p->l3 + head_len + len;
	p->ethertype = fw_ethertype(sel->family);
	fw_put_be16(ip - 2, p->ethertype);
	return CORDON_RESULT_OK;
}

/* Genuine by its ICV, but not yet known to be new. */
static enum cordon_result unwrap(struct fw_pkt *p, const struct fw_crypto_op *op, uint64_t seq)
{
	struct fw_sa *sa = p->sa;
	enum cordon_result result = fw_replay_commit(sa, seq);
	uint8_t pad_len, next_header;
	uint32_t len;

	if (result != CORDON_RESULT_OK)
		return result;
	/* Packets of the same burst may have used up what was left. */
	if (fw_sa_expired(sa))
		return CORDON_RESULT_SA_EXPIRED;
	/*
	 * What the padding holds isn't looked at: the ICV vouches for it, and not everyone fills it
	 * as RFC 4303 2.4 says.
	 */
	if (op->len < 2)
		return CORDON_RESULT_BAD_TRAILER;
	pad_len = op->data[op->len - 2];
	next_header = op->data[op->len - 1];
	if (pad_len + 2u > op->len)
		return CORDON_RESULT_BAD_TRAILER;
	if (next_header == FW_PROTO_NONE)
		return CORDON_RESULT_DUMMY;
	/* Linux takes no packet without a payload. */
	if (pad_len + 2u == op->len)
		return CORDON_RESULT_BAD_TRAILER;

	/*
	 * Counted where and as Linux does: before inner header and selector are judged, without ESP
	 * header and trailer.
	 */
	len = op->len - 2 - pad_len;
	fw_sa_used(sa, len);
	if (sa->cfg.mode == CORDON_MODE_TRANSPORT)
		result = unwrap_transport(p, op->data, len, next_header);
	else if (sa->cfg.mode == CORDON_MODE_BEET)
		result = unwrap_beet(p, op->data, len, next_header);
	else
		result = unwrap_tunnel(p, op->data, len, next_header);
	if (result != CORDON_RESULT_OK)
		return result;

	if (!fw_parse_l3(p, p->l3))
		return CORDON_RESULT_BAD_INNER;
	return fw_selector_match(&sa->cfg.selector, p) ? CORDON_RESULT_OK : CORDON_RESULT_SELECTOR;
}

/*
 * The window may have moved since the packet was prepared. What it would be refused for now, it is
 * refused for: the same as if packets came one by one, whatever bursts they come in.
 */
static void finish_packet(struct fw_pkt *p, const struct fw_crypto_op *op, uint64_t seq)
{
	uint64_t now = fw_replay_number(p->sa, (uint32_t)seq);
	enum cordon_result result = CORDON_RESULT_AUTH_FAILED;

	if (op->ok && now == seq)
		result = unwrap(p, op, seq);
	else if (fw_replay_check(p->sa, now) != CORDON_RESULT_OK)
		result = fw_replay_check(p->sa, now);
	if (result == CORDON_RESULT_OK)
		p->flags |= CORDON_RX_SA_PACKET;
	else
		fw_esp_drop(p, result);
}

static void decrypt(struct fw_esp_burst *b)
{
	struct fw_sa *sa;
	uint32_t i;

	if (!b->count)
		return;
	sa = b->pkts[0]->sa;
	sa->ops->decrypt(sa->crypto, b->ops, b->count);
	for (i = 0; i < b->count; i++) {
		if (sa->cfg.offload == CORDON_OFFLOAD_CRYPTO)
			finish_crypto(b->pkts[i], b->seqs[i], b->ops[i].ok);
		else
			finish_packet(b->pkts[i], &b->ops[i], b->seqs[i]);
	}
	b->count = 0;
}

void fw_esp_in(struct fw_pkt **pkts, uint32_t count)
{
	struct fw_esp_burst b;
	struct fw_pkt *p;
	uint32_t i;

	b.count = 0;
	for (i = 0; i < count; i++) {
		p = pkts[i];
		if (b.count == FW_CRYPTO_BURST || (b.count && p->sa != b.pkts[0]->sa))
			decrypt(&b);
		if (!p->sa) {
			fw_esp_drop(p, CORDON_RESULT_SA_GONE);
		} else if (p->sa->cfg.offload == CORDON_OFFLOAD_CRYPTO) {
			prepare_crypto(p, &b);
		} else {
			if (b.count && is_old(p))
				decrypt(&b);
			prepare_packet(p, &b);
		}
	}
	decrypt(&b);
}
