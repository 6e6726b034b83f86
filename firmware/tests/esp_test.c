// SPDX-License-Identifier: BSD-3-Clause
/*
 * ESP in packet mode, out and in, against plain OpenSSL and against each other.
 */
#include "tests/esp.h"

/* The outer packet's headers, byte by byte; Return: the ESP header. */
static uint8_t *check_outer(const char *desc, const struct sa_spec *spec, uint8_t proto)
{
	uint8_t *frame = fw_pkt_data(pkt);
	uint8_t *ip = frame + 14;
	uint32_t ip_len = spec->family == 4 ? 20 : 40;

	check_eq(desc, packet_get16(frame + 12), spec->family == 4 ? 0x0800 : 0x86dd);
	check_eq(desc, pkt->family, spec->family);
	check_eq(desc, pkt->esp, 14 + ip_len + (proto == 17 ? 8 : 0));
	if (spec->family == 4) {
		check_eq(desc, packet_get16(ip + 2), pkt->len - 14);
		check_eq(desc, ip[9], proto);
		check_eq(desc, packet_sum(ip, 20, 0), 0xffff);
	} else {
		check_eq(desc, packet_get16(ip + 4), pkt->len - 54);
		check_eq(desc, ip[6], proto);
	}
	if (proto != 17)
		return ip + ip_len;
	check_eq(desc, packet_get16(ip + ip_len), 4500);
	check_eq(desc, packet_get16(ip + ip_len + 2), 4501);
	check_eq(desc, packet_get16(ip + ip_len + 4), pkt->len - 14 - ip_len);
	if (spec->family == 4)
		check_eq(desc, packet_get16(ip + ip_len + 6), 0);
	else
		check_eq(desc, packet_sum(ip + ip_len, pkt->len - 54, packet_sum(ip + 8, 32, pkt->len - 54 + 17)), 0xffff);
	return ip + ip_len + 8;
}

/* What the card made, opened by OpenSSL. */
static void check_esp(const char *desc, const struct sa_spec *spec, uint8_t *esp, uint64_t seq)
{
	static uint8_t opened[70000];
	uint32_t total = (uint32_t)(fw_pkt_data(pkt) + pkt->len - esp);
	uint32_t len = total - 16 - (spec->icv_len ? spec->icv_len : 16);
	uint32_t skip = spec->mode == TUNNEL ? 14 : spec->family == 4 ? 34 : 54;
	const uint8_t *inner = fw_pkt_data(copy) + skip;
	uint32_t inner_len = copy->len - skip;
	uint32_t pad, i;

	memcpy(opened, esp, total);
	check_eq(desc, fw_get_be32(opened), SA_SPI);
	check_eq(desc, fw_get_be32(opened + 4), (uint32_t)seq);
	check_eq(desc, fw_get_be32(opened + 8), seq >> 32);
	check_eq(desc, fw_get_be32(opened + 12), (uint32_t)seq);
	check(desc, sa_crypt(spec, false, opened, len, seq));
	check_eq(desc, len % 4, 0);
	pad = opened[16 + len - 2];
	check(desc, pad <= 3);
	check_eq(desc, len - 2 - pad, inner_len);
	check(desc, !memcmp(opened + 16, inner, inner_len));
	for (i = 0; i < pad; i++)
		check_eq(desc, opened[16 + inner_len + i], i + 1);
	if (spec->mode == TUNNEL)
		check_eq(desc, opened[16 + len - 1], spec->inner == 4 ? 4 : 41);
	else
		check_eq(desc, opened[16 + len - 1], fw_pkt_data(copy)[spec->family == 4 ? 23 : 20]);
}

static void check_back(const char *desc, const struct sa_spec *spec)
{
	uint32_t l2 = 14;

	check_eq(desc, pkt->len, copy->len);
	check(desc, !memcmp(fw_pkt_data(pkt) + l2, fw_pkt_data(copy) + l2, copy->len - l2));
	check_eq(desc, packet_get16(fw_pkt_data(pkt) + 12), spec->inner == 4 ? 0x0800 : 0x86dd);
	if (spec->mode == TRANSPORT)
		check(desc, !memcmp(fw_pkt_data(pkt), fw_pkt_data(copy), 12));
	else
		check(desc, !memcmp(fw_pkt_data(pkt), "\x02\x00\x00\x00\x00\xd1\x02\x00\x00\x00\x00\xd2", 12));
	check_eq(desc, pkt->family, spec->inner);
	check_eq(desc, pkt->l3, 14);
	check_eq(desc, pkt->l4, copy->l4);
	check_eq(desc, pkt->l4_proto, copy->l4_proto);
	check_eq(desc, pkt->l3_len, copy->l3_len);
	check_eq(desc, pkt->ethertype, spec->inner == 4 ? 0x0800 : 0x86dd);
	check_eq(desc, pkt->flags & CORDON_RX_SA_PACKET, CORDON_RX_SA_PACKET);
	check_eq(desc, pkt->flags & CORDON_RX_CSUM_GOOD ? 1 : 0, spec->mode == TRANSPORT && spec->flags & CORDON_SA_ENCAP);
}

/* 1 and more: a packet without a payload isn't taken in. */
static uint32_t row_len(uint32_t i)
{
	static const uint32_t more[] = { 1000, 1400, 1403, 8901, 9500 };

	return i < 200 ? i + 1 : more[i - 200];
}

static void test_round_trip(void **unused)
{
	const struct sa_spec *spec;
	uint64_t bytes, seq;
	struct fw_sa *sa, *peer;
	uint32_t i;

	(void)unused;
	for (spec = shapes; spec < shapes + ARRAY_CNT(shapes); spec++) {
		uint8_t proto = spec->flags & CORDON_SA_ENCAP ? 17 : 50;

		sa = sa_make(spec);
		peer = peer_of(spec);
		bytes = 0;
		for (i = 0; i < 205; i++) {
			struct packet_spec plain = { .family = spec->inner, .proto = 17, .len = row_len(i), .df = i & 1, .label = 0x12345 };

			seq = spec->seq + 1 + i;
			packet_make(pkt, &plain);
			save();
			check_eq(spec->desc, out(sa), CORDON_RESULT_OK);
			check_eq(spec->desc, sa->state->seq, seq);
			check_esp(spec->desc, spec, check_outer(spec->desc, spec, proto), seq);
			/* A short frame comes padded. */
			if (pkt->len < 60)
				pkt->len = 60;
			check_eq(spec->desc, in(peer), CORDON_RESULT_OK);
			check_back(spec->desc, spec);
			check_eq(spec->desc, peer->state->seq, seq);
			bytes += spec->mode == TUNNEL ? copy->l3_len : plain.len;
			check_eq(spec->desc, sa->state->packets, i + 1);
			check_eq(spec->desc, sa->state->bytes, bytes);
			check_eq(spec->desc, peer->state->packets, i + 1);
			check_eq(spec->desc, peer->state->bytes, bytes);
		}
		check_eq(spec->desc, sa_events(sa)->first_use, 1);
		check_eq(spec->desc, sa_events(peer)->first_use, 1);
		check_eq(spec->desc, sa_events(sa)->soft + sa_events(sa)->hard + sa_events(sa)->exhausted + sa_events(sa)->neighbour, 0);
		sa_free(sa);
		sa_free(peer);
	}
}

/* Outer headers, field by field what Linux makes; inner headers behind the tunnel. */
struct tunnel_row {
	const char *desc;
	uint8_t family;
	uint8_t inner;
	uint8_t tos;
	bool df;
	uint32_t len;
	uint32_t flags;
	uint8_t outer_tos;
	bool outer_df;
};

static const struct tunnel_row tunnel_rows[] = {
	{ "plain", 4, 4, 0x00, false, 100, 0, 0x00, false },
	{ "DSCP copied", 4, 4, 0xb8, false, 100, 0, 0xb8, false },
	{ "ECT(0) copied", 4, 4, 0x02, false, 100, 0, 0x02, false },
	{ "ECT(1) copied", 4, 4, 0x01, false, 100, 0, 0x01, false },
	{ "CE becomes ECT(0)", 4, 4, 0x03, false, 100, 0, 0x02, false },
	{ "DSCP and CE", 4, 4, 0xbb, false, 100, 0, 0xba, false },
	{ "DSCP not copied, ECN is", 4, 4, 0xb9, false, 100, CORDON_SA_NO_DSCP, 0x01, false },
	{ "ECN not copied, DSCP is", 4, 4, 0xbb, false, 100, CORDON_SA_NO_ECN, 0xb8, false },
	{ "neither", 4, 4, 0xff, false, 100, CORDON_SA_NO_ECN | CORDON_SA_NO_DSCP, 0x00, false },
	{ "DF copied", 4, 4, 0, true, 100, 0, 0, true },
	{ "DF not copied", 4, 4, 0, true, 100, CORDON_SA_NO_PMTU_DISC, 0, false },
	{ "4in6", 6, 4, 0xbb, true, 100, 0, 0xba, false },
	{ "4in6 without DSCP", 6, 4, 0xbb, false, 100, CORDON_SA_NO_DSCP, 0x02, false },
	{ "6in6", 6, 6, 0xba, false, 100, 0, 0xba, false },
	{ "6in6 without ECN", 6, 6, 0xbb, false, 100, CORDON_SA_NO_ECN, 0xb8, false },
	{ "6in4 small", 4, 6, 0xbb, false, 1240, 0, 0xba, false },
	{ "6in4 big", 4, 6, 0x45, false, 1241, 0, 0x45, true },
	{ "6in4 big without PMTU discovery", 4, 6, 0x45, false, 1241, CORDON_SA_NO_PMTU_DISC, 0x45, false },
};

static void test_tunnel_out(void **unused)
{
	const struct tunnel_row *r;
	uint8_t *frame, *ip;
	struct fw_sa *sa;
	unsigned int i;

	(void)unused;
	for (r = tunnel_rows; r < tunnel_rows + ARRAY_CNT(tunnel_rows); r++) {
		struct sa_spec spec = { r->desc, OUT, PACKET, TUNNEL, r->family, r->inner, 16, 16, r->flags, 0, 0x777 };
		struct packet_spec plain = { .family = r->inner, .proto = 6, .len = r->len, .tos = r->tos, .df = r->df, .label = 0xabcde };

		sa = sa_make(&spec);
		packet_make(pkt, &plain);
		/* A forwarded frame's Ethernet header is junk. */
		memset(fw_pkt_data(pkt), 0x81, 14);
		assert_true(fw_parse_l3(pkt, 14));
		check_eq(r->desc, out(sa), CORDON_RESULT_OK);
		frame = fw_pkt_data(pkt);
		ip = frame + 14;
		check(r->desc, !memcmp(frame, "\x02\x00\x00\x00\x00\xd1\x02\x00\x00\x00\x00\xd2", 12));
		if (r->family == 4) {
			check_eq(r->desc, packet_get16(frame + 12), 0x0800);
			check_eq(r->desc, ip[0], 0x45);
			check_eq(r->desc, ip[1], r->outer_tos);
			check_eq(r->desc, packet_get16(ip + 6), r->outer_df ? 0x4000 : 0);
			check(r->desc, !packet_get16(ip + 4) == r->outer_df);
			check_eq(r->desc, ip[8], 57);
			check(r->desc, !memcmp(ip + 12, "\xc0\x00\x02\x01\xc0\x00\x02\x02", 8));
			check_eq(r->desc, packet_sum(ip, 20, 0), 0xffff);
		} else {
			check_eq(r->desc, packet_get16(frame + 12), 0x86dd);
			check_eq(r->desc, fw_get_be32(ip), 0x60000000u | (uint32_t)r->outer_tos << 20 | (r->inner == 6 ? 0xabcde : 0));
			check_eq(r->desc, ip[7], 57);
			for (i = 0; i < 2; i++) {
				check_eq(r->desc, fw_get_be32(ip + 8 + 16 * i), 0x20010db8);
				check_eq(r->desc, ip[23 + 16 * i], 1 + i);
			}
		}
		sa_free(sa);
	}
}

static void test_tunnel_in(void **unused)
{
	static const struct {
		const char *desc;
		uint8_t outer;
		uint8_t inner;
		uint32_t flags;
		uint8_t result;
	} rows[] = {
		{ "nothing", 0x00, 0x00, 0, 0x00 },
		{ "DSCP stays", 0xb8, 0x28, 0, 0x28 },
		{ "DSCP copied", 0xb8, 0x28, CORDON_SA_DECAP_DSCP, 0xb8 },
		{ "DSCP copied, ECN stays", 0xb9, 0x2a, CORDON_SA_DECAP_DSCP, 0xba },
		{ "CE on ECT(0)", 0x03, 0x02, 0, 0x03 },
		{ "CE on ECT(1)", 0x03, 0x01, 0, 0x03 },
		{ "CE on CE", 0x03, 0x03, 0, 0x03 },
		{ "CE on Not-ECT", 0x03, 0x00, 0, 0x00 },
		{ "ECT(1) isn't copied", 0x01, 0x02, 0, 0x02 },
		{ "CE not copied", 0x03, 0x02, CORDON_SA_NO_ECN, 0x02 },
		{ "CE and DSCP", 0xbb, 0x2a, CORDON_SA_DECAP_DSCP, 0xbb },
		{ "DSCP but not CE", 0xbb, 0x2a, CORDON_SA_DECAP_DSCP | CORDON_SA_NO_ECN, 0xba },
		{ "all bits", 0xff, 0x01, CORDON_SA_DECAP_DSCP, 0xff },
	};
	struct fw_sa *sa, *peer;
	unsigned int i, k;
	uint8_t *ip;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(rows); i++) {
		for (k = 2; k < 6; k++) {
			struct sa_spec spec = shapes[k];
			struct packet_spec plain = { .family = spec.inner, .proto = 6, .len = 40, .tos = rows[i].inner, .label = 0xfedcb };

			spec.flags |= rows[i].flags;
			sa = sa_make(&spec);
			peer = peer_of(&spec);
			packet_make(pkt, &plain);
			save();
			assert_int_equal(out(sa), CORDON_RESULT_OK);
			ip = fw_pkt_data(pkt) + 14;
			if (spec.family == 4) {
				ip[1] = rows[i].outer;
				packet_ipv4_csum(ip);
			} else {
				packet_put16(ip, 0x6000u | (uint32_t)rows[i].outer << 4 | (ip[1] & 15));
			}
			check_eq(rows[i].desc, in(peer), CORDON_RESULT_OK);
			ip = fw_pkt_data(pkt) + 14;
			if (spec.inner == 4) {
				check_eq(rows[i].desc, ip[1], rows[i].result);
				check_eq(rows[i].desc, packet_sum(ip, 20, 0), 0xffff);
				ip[1] = rows[i].inner;
				packet_ipv4_csum(ip);
			} else {
				check_eq(rows[i].desc, fw_get_be32(ip), 0x60000000u | (uint32_t)rows[i].result << 20 | 0xfedcb);
				fw_put_be32(ip, 0x60000000u | (uint32_t)rows[i].inner << 20 | 0xfedcb);
			}
			/* Nothing else has changed. */
			check(rows[i].desc, pkt->len == copy->len && !memcmp(ip, fw_pkt_data(copy) + 14, pkt->len - 14));
			sa_free(sa);
			sa_free(peer);
		}
	}
}

static void test_too_long(void **unused)
{
	/* IPv4: 65535 = 20 + 8 + 8 + 65480 + pad + 2 + 16. */
	static const struct {
		const char *desc;
		uint8_t shape;
		uint32_t len;
		enum cordon_result result;
	} rows[] = {
		{ "longest in transport 4", 0, 65478, CORDON_RESULT_OK },
		{ "too long by its padding", 0, 65479, CORDON_RESULT_TOO_LONG },
		{ "too long", 0, 65482, CORDON_RESULT_TOO_LONG },
		{ "longest in 6in6", 3, 65498 - 40, CORDON_RESULT_OK },
		{ "too long in 6in6", 3, 65499 - 40, CORDON_RESULT_TOO_LONG },
	};
	struct fw_sa *sa;
	unsigned int i;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(rows); i++) {
		sa = sa_make(&shapes[rows[i].shape]);
		packet_make(pkt, &(struct packet_spec) { .family = shapes[rows[i].shape].inner, .proto = 17, .len = rows[i].len });
		save();
		check_eq(rows[i].desc, out(sa), rows[i].result);
		check_eq(rows[i].desc, sa->state->seq, rows[i].result == CORDON_RESULT_OK);
		if (rows[i].result == CORDON_RESULT_OK)
			check_esp(rows[i].desc, &shapes[rows[i].shape], check_outer(rows[i].desc, &shapes[rows[i].shape], 50), 1);
		sa_free(sa);
	}
}

static void test_events_once(void **unused)
{
	struct fw_sa *sa = sa_make(&shapes[2]);
	unsigned int i;

	(void)unused;
	sa->next_hop.valid = 0;
	for (i = 0; i < 3; i++) {
		packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 6, .len = 50 });
		assert_int_equal(out(sa), CORDON_RESULT_SA_NO_NEIGHBOUR);
	}
	assert_int_equal(sa_events(sa)->neighbour, 1);
	assert_int_equal(sa_drops(sa, CORDON_RESULT_SA_NO_NEIGHBOUR), 3);
	sa->neighbour_asked = false;
	packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 6, .len = 50 });
	out(sa);
	assert_int_equal(sa_events(sa)->neighbour, 2);
	assert_int_equal(sa_events(sa)->first_use, 0);
	sa_free(sa);
}

/* Limits: the packet that reaches one is sent, as in Linux; events come once. */
static void test_limits(void **unused)
{
	static const struct {
		const char *desc;
		uint64_t soft_packets;
		uint64_t hard_packets;
		uint64_t soft_bytes;
		uint64_t hard_bytes;
		unsigned int soft_at;
		unsigned int last;
	} rows[] = {
		{ "packets", 3, 5, UINT64_MAX, UINT64_MAX, 3, 5 },
		{ "bytes, exactly", UINT64_MAX, UINT64_MAX, 300, 500, 3, 5 },
		{ "bytes, in between", UINT64_MAX, UINT64_MAX, 201, 401, 3, 5 },
		{ "packets before bytes", 1, 2, 300, 900, 1, 2 },
		{ "one packet", 1, 1, UINT64_MAX, UINT64_MAX, 1, 1 },
		{ "no limits", UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 99, 99 },
	};
	struct fw_sa *sa, *peer, *limited;
	unsigned int i, n, k;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(rows); i++) {
		for (k = 0; k < 2; k++) {
			sa = sa_make(&shapes[2]);
			peer = peer_of(&shapes[2]);
			limited = k ? peer : sa;
			limited->state->soft_packets = rows[i].soft_packets;
			limited->state->hard_packets = rows[i].hard_packets;
			limited->state->soft_bytes = rows[i].soft_bytes;
			limited->state->hard_bytes = rows[i].hard_bytes;
			for (n = 1; n <= 8; n++) {
				enum cordon_result result = n <= rows[i].last ? CORDON_RESULT_OK : CORDON_RESULT_SA_EXPIRED;

				packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 6, .len = 80 });
				check_eq(rows[i].desc, out(sa), k ? CORDON_RESULT_OK : result);
				if (k)
					check_eq(rows[i].desc, in(peer), result);
				check_eq(rows[i].desc, sa_events(limited)->soft, n >= rows[i].soft_at);
				check_eq(rows[i].desc, sa_events(limited)->hard, n > rows[i].last);
			}
			check_eq(rows[i].desc, limited->state->packets, rows[i].last > 8 ? 8 : rows[i].last);
			check_eq(rows[i].desc, sa_drops(limited, CORDON_RESULT_SA_EXPIRED), rows[i].last > 8 ? 0 : 8 - rows[i].last);
			sa_free(sa);
			sa_free(peer);
		}
	}
}

/* The end of the numbers, and no IV twice. */
static void test_exhausted(void **unused)
{
	struct sa_spec spec = shapes[0];
	struct fw_sa *sa;
	unsigned int i;
	uint8_t *esp;

	(void)unused;
	spec.seq = 0xfffffffd;
	sa = sa_make(&spec);
	for (i = 0; i < 5; i++) {
		packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 6, .len = 50 });
		check_eq("32 bits", out(sa), i < 2 ? CORDON_RESULT_OK : CORDON_RESULT_SA_EXHAUSTED);
	}
	check_eq("32 bits", sa->state->seq, 0xffffffff);
	check_eq("32 bits", sa_events(sa)->exhausted, 1);
	check_eq("32 bits", sa_drops(sa, CORDON_RESULT_SA_EXHAUSTED), 3);
	sa_free(sa);

	spec.flags = CORDON_SA_SEQ_MAY_WRAP;
	sa = sa_make(&spec);
	for (i = 0; i < 5; i++) {
		packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 6, .len = 50 });
		check_eq("may wrap", out(sa), CORDON_RESULT_OK);
		esp = fw_pkt_data(pkt) + pkt->esp;
		check_eq("may wrap", fw_get_be32(esp + 4), 0xfffffffe + i);
		check_eq("the IV doesn't wrap", fw_get_be32(esp + 8), i >= 2);
	}
	sa_free(sa);

	spec.flags = CORDON_SA_ESN;
	spec.seq = UINT64_MAX - 2;
	sa = sa_make(&spec);
	for (i = 0; i < 5; i++) {
		packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 6, .len = 50 });
		check_eq("64 bits", out(sa), i < 2 ? CORDON_RESULT_OK : CORDON_RESULT_SA_EXHAUSTED);
	}
	check_eq("64 bits", sa->state->seq, UINT64_MAX);
	sa_free(sa);
}

/* Transport mode with extension headers: what stays before ESP, RFC 4303 3.1.1. */
static void test_extension_headers(void **unused)
{
	static const struct {
		const char *desc;
		uint8_t first;
		const char *headers;
		uint32_t before;
		uint8_t next_header;
	} rows[] = {
		{ "none", 17, "", 0, 17 },
		{ "hop-by-hop", 0, "1100000000000000", 8, 17 },
		{ "routing", 43, "1101000000000000" "0000000000000000", 16, 17 },
		{ "destination options alone", 60, "1100000000000000", 0, 60 },
		{ "hop-by-hop, destination", 0, "3c00000000000000" "1100000000000000", 8, 60 },
		{ "hop-by-hop, destination, routing, destination", 0,
		  "3c00000000000000" "2b00000000000000" "3c00000000000000" "1100000000000000", 24, 60 },
		{ "atomic fragment", 44, "1100000000000000", 8, 17 },
	};
	struct fw_sa *sa, *peer;
	uint8_t *frame, *esp;
	unsigned int i, k;
	uint32_t len;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(rows); i++) {
		for (k = 0; k < 2; k++) {
			const struct sa_spec *spec = &shapes[k ? 10 : 1];
			uint32_t udp = k ? 8 : 0;

			sa = sa_make(spec);
			peer = peer_of(spec);
			packet_make(pkt, &(struct packet_spec) { .family = 6, .proto = rows[i].first, .len = 100 });
			len = (uint32_t)test_hex(rows[i].headers, fw_pkt_data(pkt) + 54);
			packet_put16(fw_pkt_data(pkt) + 54 + len + 4, 100 - len);
			fw_parse_frame(pkt);
			save();
			check_eq(rows[i].desc, out(sa), CORDON_RESULT_OK);
			frame = fw_pkt_data(pkt);
			check_eq(rows[i].desc, pkt->esp, 54 + rows[i].before + udp);
			check_eq(rows[i].desc, sa->state->bytes, 100 - rows[i].before);
			esp = malloc(pkt->len - pkt->esp);
			assert_non_null(esp);
			memcpy(esp, frame + pkt->esp, pkt->len - pkt->esp);
			check(rows[i].desc, sa_crypt(spec, false, esp, pkt->len - pkt->esp - 32, 1));
			check_eq(rows[i].desc, esp[pkt->len - pkt->esp - 17], rows[i].next_header);
			free(esp);
			check_eq(rows[i].desc, in(peer), CORDON_RESULT_OK);
			check(rows[i].desc, pkt->len == copy->len && !memcmp(fw_pkt_data(pkt), fw_pkt_data(copy), pkt->len));
			check_eq(rows[i].desc, pkt->l4, copy->l4);
			sa_free(sa);
			sa_free(peer);
		}
	}
}

static void test_options(void **unused)
{
	struct fw_sa *sa = sa_make(&shapes[0]);
	struct fw_sa *peer = peer_of(&shapes[0]);
	uint8_t *ip;

	(void)unused;
	packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 17, .len = 60 });
	ip = fw_pkt_data(pkt) + 14;
	ip[0] = 0x4a;
	memset(ip + 20, 1, 20);
	packet_ipv4_csum(ip);
	packet_put16(ip + 44, 40);
	fw_parse_frame(pkt);
	save();
	assert_int_equal(out(sa), CORDON_RESULT_OK);
	assert_int_equal(pkt->esp, 54);
	assert_int_equal(packet_sum(fw_pkt_data(pkt) + 14, 40, 0), 0xffff);
	assert_int_equal(in(peer), CORDON_RESULT_OK);
	assert_int_equal(pkt->len, copy->len);
	assert_memory_equal(fw_pkt_data(pkt), fw_pkt_data(copy), pkt->len);
	sa_free(sa);
	sa_free(peer);
}

static void add_tag(uint16_t tci)
{
	uint8_t *frame = fw_pkt_data(pkt) - 4;

	memmove(frame, frame + 4, 12);
	packet_put16(frame + 12, 0x8100);
	packet_put16(frame + 14, tci);
	pkt->off -= 4;
	pkt->len += 4;
	fw_parse_frame(pkt);
}

static void test_tags(void **unused)
{
	unsigned int i, tags;
	struct fw_sa *sa, *peer;

	(void)unused;
	for (i = 0; i < 6; i++) {
		for (tags = 1; tags < 3; tags++) {
			sa = sa_make(&shapes[i]);
			peer = peer_of(&shapes[i]);
			packet_make(pkt, &(struct packet_spec) { .family = shapes[i].inner, .proto = 17, .len = 60 });
			add_tag(10);
			if (tags == 2)
				add_tag(20);
			save();
			check_eq(shapes[i].desc, out(sa), CORDON_RESULT_OK);
			check_eq(shapes[i].desc, pkt->l3, 14 + 4 * tags);
			check_eq(shapes[i].desc, packet_get16(fw_pkt_data(pkt) + 12), 0x8100);
			check_eq(shapes[i].desc, packet_get16(fw_pkt_data(pkt) + 14), tags * 10);
			check_eq(shapes[i].desc, packet_get16(fw_pkt_data(pkt) + 12 + 4 * tags), shapes[i].family == 4 ? 0x0800 : 0x86dd);
			check_eq(shapes[i].desc, in(peer), CORDON_RESULT_OK);
			check(shapes[i].desc, pkt->len == copy->len);
			check(shapes[i].desc, !memcmp(fw_pkt_data(pkt) + 12, fw_pkt_data(copy) + 12, pkt->len - 12));
			sa_free(sa);
			sa_free(peer);
		}
	}
	/* What only looks like a tag goes. */
	sa = sa_make(&shapes[2]);
	packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 17, .len = 60 });
	add_tag(10);
	memset(fw_pkt_data(pkt), 0x5a, 18);
	assert_true(fw_parse_l3(pkt, 18));
	assert_int_equal(out(sa), CORDON_RESULT_OK);
	assert_int_equal(pkt->l3, 14);
	assert_int_equal(packet_get16(fw_pkt_data(pkt) + 12), 0x0800);
	sa_free(sa);
}

#define BURST 200

/* A burst of several SAs, out and in: each packet is judged by itself. */
static void test_burst(void **unused)
{
	static struct fw_pkt *pkts[BURST];
	struct fw_sa *sas[3], *peers[3];
	uint64_t seqs[3] = { 0 };
	unsigned int i, k;

	(void)unused;
	for (k = 0; k < 3; k++) {
		sas[k] = sa_make(&shapes[k]);
		peers[k] = peer_of(&shapes[k]);
	}
	sas[2]->state->hard_packets = 30;
	for (i = 0; i < BURST; i++) {
		pkts[i] = packet_alloc();
		/* Runs of 1 to many of one SA. */
		k = i < 100 ? 0 : i % 3;
		packet_make(pkts[i], &(struct packet_spec) { .family = shapes[k].inner, .proto = 17, .len = i + 1 });
		pkts[i]->sa = sas[k];
	}
	fw_esp_out_packet(pkts, BURST);
	for (i = 0; i < BURST; i++) {
		k = i < 100 ? 0 : i % 3;
		if (k == 2 && seqs[2] == 30) {
			assert_int_equal(pkts[i]->result, CORDON_RESULT_SA_EXPIRED);
			continue;
		}
		assert_int_equal(pkts[i]->result, CORDON_RESULT_OK);
		assert_int_equal(fw_get_be32(fw_pkt_data(pkts[i]) + pkts[i]->esp + 4), ++seqs[k]);
		pkts[i]->sa = peers[k];
	}
	/* One packet of the run is forged, one is there twice, and the peer's limit ends inside it. */
	fw_pkt_data(pkts[10])[pkts[10]->len - 1] ^= 1;
	memcpy(pkts[21]->buf, pkts[20]->buf, pkts[20]->size);
	pkts[21]->off = pkts[20]->off;
	pkts[21]->len = pkts[20]->len;
	peers[0]->state->hard_packets = 50;
	for (i = 0; i < BURST; i++) {
		pkts[i]->flags = 0;
		fw_parse_frame(pkts[i]);
	}
	fw_esp_in(pkts, 100);
	for (i = 0; i < 100; i++) {
		enum cordon_result result = CORDON_RESULT_OK;

		if (i >= 52)
			result = CORDON_RESULT_SA_EXPIRED;
		if (i == 10)
			result = CORDON_RESULT_AUTH_FAILED;
		if (i == 21)
			result = CORDON_RESULT_REPLAY;
		assert_int_equal(pkts[i]->result, result);
	}
	assert_int_equal(peers[0]->state->packets, 50);
	assert_int_equal(sa_events(peers[0])->hard, 1);
	for (i = 0; i < BURST; i++)
		packet_free(pkts[i]);
	for (k = 0; k < 3; k++) {
		sa_free(sas[k]);
		sa_free(peers[k]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_tunnel_out),
		cmocka_unit_test(test_tunnel_in),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_events_once),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_exhausted),
		cmocka_unit_test(test_extension_headers),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_burst),
	};

	return cmocka_run_group_tests(tests, esp_start, esp_stop);
}
