// SPDX-License-Identifier: BSD-3-Clause
/*
 * Packets that ESP in packet mode doesn't let through: why, what is counted, and that nothing else has changed.
 */
#include "tests/esp.h"

/* Packets that don't go out, why, and that they took no number. */
struct out_row {
	const char *desc;
	uint8_t shape;
	uint8_t family;
	void (*spoil)(struct fw_sa *sa);
	enum cordon_result result;
};

static void spoil_nothing(struct fw_sa *sa)
{
	(void)sa;
}

static void spoil_direction(struct fw_sa *sa)
{
	sa->cfg.direction = IN;
}

static void spoil_offload(struct fw_sa *sa)
{
	sa->cfg.offload = CRYPTO;
}

static void spoil_family(struct fw_sa *sa)
{
	(void)sa;
	pkt->family = 0;
}

static void spoil_length(struct fw_sa *sa)
{
	(void)sa;
	pkt->len--;
}

static void spoil_fragment(struct fw_sa *sa)
{
	(void)sa;
	pkt->is_fragment = true;
}

static void spoil_l3(struct fw_sa *sa)
{
	(void)sa;
	pkt->off += 12;
	pkt->l3 = 2;
	pkt->len -= 12;
}

static void spoil_hop(struct fw_sa *sa)
{
	sa->next_hop.valid = 0;
}

static void spoil_packets(struct fw_sa *sa)
{
	sa->state->hard_packets = 0;
}

static void spoil_bytes(struct fw_sa *sa)
{
	sa->state->hard_bytes = 0;
}

static void spoil_seq(struct fw_sa *sa)
{
	sa->state->seq = 0xffffffff;
}

static void spoil_headroom(struct fw_sa *sa)
{
	(void)sa;
	memmove(pkt->buf, fw_pkt_data(pkt), pkt->len);
	pkt->off = 0;
}

static void spoil_tailroom(struct fw_sa *sa)
{
	(void)sa;
	pkt->size = pkt->off + pkt->len + 17;
}

/* Of IPv4 with TCP: Ethernet 14, outer IP 20, ESP 16, inner 120, padding 2, trailer 2, ICV 16. */
static void spoil_frame_max(struct fw_sa *sa)
{
	(void)sa;
	pkt->frame_max = 189;
}

static void spoil_frame_max_not(struct fw_sa *sa)
{
	(void)sa;
	pkt->frame_max = 190;
}

static const struct out_row out_rows[] = {
	{ "good", 0, 4, spoil_nothing, CORDON_RESULT_OK },
	{ "IN SA", 0, 4, spoil_direction, CORDON_RESULT_SA_MISMATCH },
	{ "crypto SA", 0, 4, spoil_offload, CORDON_RESULT_SA_MISMATCH },
	{ "not IP", 0, 4, spoil_family, CORDON_RESULT_SA_MISMATCH },
	{ "IPv6 in a transport SA of IPv4", 0, 6, spoil_nothing, CORDON_RESULT_SA_MISMATCH },
	{ "fragment in transport mode", 0, 4, spoil_fragment, CORDON_RESULT_SA_MISMATCH },
	{ "fragment in a tunnel", 2, 4, spoil_fragment, CORDON_RESULT_OK },
	{ "no room for an Ethernet header", 2, 4, spoil_l3, CORDON_RESULT_SA_MISMATCH },
	{ "shorter than its header says", 2, 4, spoil_length, CORDON_RESULT_TOO_SHORT },
	{ "next hop not known", 2, 4, spoil_hop, CORDON_RESULT_SA_NO_NEIGHBOUR },
	{ "transport needs no next hop", 1, 6, spoil_hop, CORDON_RESULT_OK },
	{ "packets used up", 3, 6, spoil_packets, CORDON_RESULT_SA_EXPIRED },
	{ "bytes used up", 3, 6, spoil_bytes, CORDON_RESULT_SA_EXPIRED },
	{ "numbers used up", 4, 6, spoil_seq, CORDON_RESULT_SA_EXHAUSTED },
	{ "no headroom", 2, 4, spoil_headroom, CORDON_RESULT_TOO_LONG },
	{ "as long as the port allows", 2, 4, spoil_frame_max_not, CORDON_RESULT_OK },
	{ "longer than the port allows", 2, 4, spoil_frame_max, CORDON_RESULT_TOO_LONG },
	{ "no tailroom", 2, 4, spoil_tailroom, CORDON_RESULT_TOO_LONG },
};

static void test_out_drops(void **unused)
{
	const struct out_row *r;
	struct fw_sa *sa;
	uint64_t seq;

	(void)unused;
	for (r = out_rows; r < out_rows + ARRAY_CNT(out_rows); r++) {
		struct packet_spec plain = { .family = r->family, .proto = 6, .len = 100 };

		sa = sa_make(&shapes[r->shape]);
		packet_make(pkt, &plain);
		r->spoil(sa);
		seq = sa->state->seq;
		check_eq(r->desc, out(sa), r->result);
		check_eq(r->desc, sa->state->seq, seq + (r->result == CORDON_RESULT_OK));
		check_eq(r->desc, sa->state->packets, r->result == CORDON_RESULT_OK);
		if (r->result >= CORDON_SA_DROP_FIRST)
			check_eq(r->desc, sa_drops(sa, r->result), 1);
		sa_free(sa);
	}
	pkt->size = copy->size;

	sa = sa_make(&shapes[0]);
	free(sa->state);
	sa->state = NULL;
	packet_make(pkt, &(struct packet_spec) { .family = 4, .len = 10 });
	check_eq("no state block", out(sa), CORDON_RESULT_SA_STATE);
	check_eq("no SA", out(NULL), CORDON_RESULT_SA_GONE);
	sa_free(sa);
}

/* Packets that don't come in, made by OpenSSL. */
struct in_row {
	const char *desc;
	uint8_t shape;
	const char *text;
	uint32_t damage;
	enum cordon_result result;
	uint64_t counted;
};

#define INNER4 "4500001c000100004011" "0000" "0a000001" "0a000002" "0001000200080000"
#define INNER6 "6000000000083b40" "fd000000000000000000000000000001" "fd000000000000000000000000000002" "0001020304050607"

static const struct in_row in_rows[] = {
	{ "good 4in4", 2, INNER4 "01020204", 0, CORDON_RESULT_OK, 28 },
	{ "good 6in6", 3, INNER6 "01020229", 0, CORDON_RESULT_OK, 48 },
	{ "good 6in4", 4, INNER6 "01020229", 0, CORDON_RESULT_OK, 48 },
	{ "good 4in6", 5, INNER4 "01020204", 0, CORDON_RESULT_OK, 28 },
	{ "padding of another kind", 2, INNER4 "00000204", 0, CORDON_RESULT_OK, 28 },
	{ "padding of 34", 2, INNER4 "000000000000000000000000000000000000000000000000000000000000000000002204", 0, CORDON_RESULT_OK, 28 },
	{ "traffic flow padding", 2, INNER4 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" "01020204", 0, CORDON_RESULT_OK, 48 },
	{ "traffic flow padding IPv6", 3, INNER6 "aaaaaaaa" "01020229", 0, CORDON_RESULT_OK, 52 },
	{ "ICV", 2, INNER4 "01020204", 1, CORDON_RESULT_AUTH_FAILED, 0 },
	{ "padding longer than the text", 2, INNER4 "0102ff04", 0, CORDON_RESULT_BAD_TRAILER, 0 },
	{ "padding longer by one", 2, "000303" "04", 0, CORDON_RESULT_BAD_TRAILER, 0 },
	{ "padding and nothing else", 2, "01020204", 0, CORDON_RESULT_BAD_TRAILER, 0 },
	{ "TCP in a tunnel", 2, INNER4 "01020206", 0, CORDON_RESULT_BAD_MODE, 28 },
	{ "dummy", 2, "00112233445566778899aabb0102023b", 0, CORDON_RESULT_DUMMY, 0 },
	{ "dummy in transport mode", 0, "0102023b", 0, CORDON_RESULT_DUMMY, 0 },
	{ "IPv6 that says it is IPv4", 2, INNER6 "01020204", 0, CORDON_RESULT_BAD_INNER, 48 },
	{ "IPv4 that says it is IPv6", 2, INNER4 "01020229", 0, CORDON_RESULT_BAD_MODE, 28 },
	{ "inner packet cut short", 2, "4500001d000100004011" "0000" "0a000001" "0a000002" "0001000200080000" "01020204", 0,
	  CORDON_RESULT_BAD_INNER, 28 },
	{ "inner IPv6 cut short", 3, "6000000000093b40" "fd000000000000000000000000000001" "fd000000000000000000000000000002"
	  "0001020304050607" "01020229", 0, CORDON_RESULT_BAD_INNER, 48 },
	{ "inner header cut short", 2, "45000013000100004011" "0000" "0a000001" "0a0000" "01020304", 0, CORDON_RESULT_BAD_MODE, 0 },
	{ "inner header length below 20", 2, "4400001c000100004011" "0000" "0a000001" "0a000002" "0001000200080000" "01020204", 0,
	  CORDON_RESULT_BAD_INNER, 28 },
	{ "inner length below the header", 2, "46000017000100004011" "0000" "0a000001" "0a000002" "0001000200080000" "01020204", 0,
	  CORDON_RESULT_BAD_INNER, 28 },
	{ "transport without payload", 0, "01020206", 0, CORDON_RESULT_BAD_TRAILER, 0 },
	{ "transport of ESP", 0, "000000010000000200000000" "01020232", 0, CORDON_RESULT_OK, 12 },
};

static void test_in_drops(void **unused)
{
	uint8_t text[256];
	const struct in_row *r;
	struct fw_sa *sa;
	uint32_t len;
	bool passes;

	(void)unused;
	for (r = in_rows; r < in_rows + ARRAY_CNT(in_rows); r++) {
		sa = peer_of(&shapes[r->shape]);
		len = (uint32_t)test_hex(r->text, text);
		sa_seal(&shapes[r->shape], pkt, 5, text, len);
		fw_pkt_data(pkt)[pkt->len - 1] ^= (uint8_t)r->damage;
		check_eq(r->desc, in(sa), r->result);
		passes = r->result == CORDON_RESULT_OK;
		check_eq(r->desc, !!(pkt->flags & CORDON_RX_SA_PACKET), passes);
		check_eq(r->desc, sa->state->seq, r->result == CORDON_RESULT_AUTH_FAILED ? 0 : 5);
		if (!passes)
			check_eq(r->desc, sa_drops(sa, r->result), 1);
		if (passes)
			check_eq(r->desc, sa->state->bytes, r->counted);
		/* The same again: replayed, if it was verified before, and then nobody looks at the ICV. */
		sa_seal(&shapes[r->shape], pkt, 5, text, len);
		if (r->result != CORDON_RESULT_AUTH_FAILED) {
			fw_pkt_data(pkt)[pkt->len - 1] ^= 1;
			check_eq(r->desc, in(sa), CORDON_RESULT_REPLAY);
		} else {
			check_eq(r->desc, in(sa), CORDON_RESULT_OK);
		}
		sa_free(sa);
	}
}

/* Every bit of an ESP packet counts. */
static void test_in_bits(void **unused)
{
	uint8_t text[64];
	const struct sa_spec *spec;
	struct fw_sa *sa;
	uint32_t bit, from;
	unsigned int i;

	(void)unused;
	for (i = 0; i < 9; i++) {
		spec = &shapes[i];
		sa = peer_of(spec);
		memset(text, 0, sizeof(text));
		for (from = 0; from < 8 * (16 + 16 + 16); from++) {
			enum cordon_result result;

			sa_seal(spec, pkt, spec->seq + 9, text, 16);
			bit = pkt->esp * 8u + from;
			/* The core finds the SA by SPI, so a changed one doesn't come here; the AAD has it all the same. */
			fw_pkt_data(pkt)[bit / 8] ^= (uint8_t)(1 << bit % 8);
			result = in(sa);
			check(spec->desc, result == CORDON_RESULT_AUTH_FAILED || (from / 8 / 4 == 1 && result == CORDON_RESULT_REPLAY));
			check(spec->desc, !(pkt->flags & CORDON_RX_SA_PACKET));
			check_eq(spec->desc, sa->state->seq, spec->seq);
			check_eq(spec->desc, sa->state->packets, 0);
		}
		sa_free(sa);
	}
}

static void test_in_layout(void **unused)
{
	enum cordon_result result;
	uint8_t text[16];
	struct fw_sa *sa;
	unsigned int i, k;

	(void)unused;
	test_hex("00112233445566778899aabb" "01020206", text);
	for (i = 0; i < 2; i++) {
		const struct sa_spec *spec = &shapes[i];

		sa = peer_of(spec);
		/* Cut to each length; the header says so. */
		for (k = 0; k < 16 + 16 + 16; k++) {
			sa_seal(spec, pkt, 5, text, 16);
			pkt->len = pkt->esp + k;
			if (spec->family == 4) {
				packet_put16(fw_pkt_data(pkt) + 16, pkt->len - 14);
				packet_ipv4_csum(fw_pkt_data(pkt) + 14);
			} else {
				packet_put16(fw_pkt_data(pkt) + 18, pkt->len - 54);
			}
			result = k < 16 + 16 ? CORDON_RESULT_BAD_TRAILER : CORDON_RESULT_AUTH_FAILED;
			check_eq("cut short", in(sa), k < 8 ? CORDON_RESULT_SA_MISMATCH : result);
		}
		/* Or it says more than there is. */
		sa_seal(spec, pkt, 5, text, 16);
		pkt->len--;
		check_eq("shorter than its header says", in(sa), CORDON_RESULT_SA_MISMATCH);

		sa_seal(spec, pkt, 5, text, 16);
		sa->cfg.family = spec->family == 4 ? 6 : 4;
		check_eq("other family", in(sa), CORDON_RESULT_SA_MISMATCH);
		sa->cfg.family = spec->family;
		sa->cfg.direction = OUT;
		check_eq("OUT SA", in(sa), CORDON_RESULT_SA_MISMATCH);
		sa->cfg.direction = IN;
		sa->cfg.flags = CORDON_SA_ENCAP;
		check_eq("UDP wanted", in(sa), CORDON_RESULT_SA_MISMATCH);
		sa->cfg.flags = 0;
		check_eq("good", in(sa), CORDON_RESULT_OK);
		sa_free(sa);
	}

	sa = peer_of(&shapes[0]);
	sa_seal(&shapes[0], pkt, 5, text, 16);
	fw_pkt_data(pkt)[14 + 8]--;
	check_eq("IPv4 checksum", in(sa), CORDON_RESULT_SA_MISMATCH);
	sa_seal(&shapes[0], pkt, 5, text, 16);
	packet_put16(fw_pkt_data(pkt) + 20, 0x2000);
	packet_ipv4_csum(fw_pkt_data(pkt) + 14);
	check_eq("first fragment", in(sa), CORDON_RESULT_FRAGMENT);
	sa_seal(&shapes[0], pkt, 5, text, 16);
	free(sa->state);
	sa->state = NULL;
	check_eq("no state block", in(sa), CORDON_RESULT_SA_STATE);
	pkt->sa = NULL;
	fw_esp_in(&pkt, 1);
	check_eq("no SA", pkt->result, CORDON_RESULT_SA_GONE);
	sa_free(sa);
}

static void test_selector(void **unused)
{
	uint8_t text[64];
	uint32_t len;
	struct fw_sa *sa = peer_of(&shapes[2]);

	(void)unused;
	len = (uint32_t)test_hex(INNER4 "01020204", text);
	sa->cfg.selector.family = 4;
	test_hex("0a000000", sa->cfg.selector.saddr);
	sa->cfg.selector.saddr_prefix = 24;
	sa_seal(&shapes[2], pkt, 1, text, len);
	check_eq("fits", in(sa), CORDON_RESULT_OK);
	sa->cfg.selector.saddr[2] = 1;
	sa_seal(&shapes[2], pkt, 2, text, len);
	check_eq("other network", in(sa), CORDON_RESULT_SELECTOR);
	check_eq("other network", sa_drops(sa, CORDON_RESULT_SELECTOR), 1);
	sa->cfg.selector.family = 6;
	sa->cfg.selector.saddr_prefix = 0;
	sa_seal(&shapes[2], pkt, 3, text, len);
	check_eq("other family", in(sa), CORDON_RESULT_SELECTOR);
	/* Linux counts before it looks at the selector. */
	check_eq("counted", sa->state->packets, 3);
	sa_free(sa);
}

/* Junk with every pretension: nothing is accepted, nothing outside is touched. */
static void test_junk(void **unused)
{
	struct fw_sa *peers[ARRAY_CNT(shapes)];
	unsigned int i, k;

	(void)unused;
	for (k = 0; k < ARRAY_CNT(shapes); k++)
		peers[k] = peer_of(&shapes[k]);
	for (i = 0; i < 40000; i++) {
		k = i % ARRAY_CNT(shapes);
		sa_seal(&shapes[k], pkt, shapes[k].seq + 1, "0123456789ab\x01\x02\x02\x06", 16);
		for (unsigned int j = 0; j <= i % 4; j++)
			fw_pkt_data(pkt)[test_random() % (pkt->len - 12) + 12] = (uint8_t)test_random();
		if (i % 5 == 0)
			pkt->len = (uint32_t)(test_random() % (pkt->len + 1));
		if (i % 3 == 0)
			in(peers[k]);
		pkt->sa = peers[k];
		pkt->l3 = i % 2 ? 14 : (uint16_t)(test_random() % 80);
		fw_parse_l3(pkt, pkt->l3);
		pkt->esp = (uint16_t)(test_random() % 100);
		fw_esp_in(&pkt, 1);
	}
	for (k = 0; k < ARRAY_CNT(shapes); k++)
		sa_free(peers[k]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_out_drops),
		cmocka_unit_test(test_in_drops),
		cmocka_unit_test(test_in_bits),
		cmocka_unit_test(test_in_layout),
		cmocka_unit_test(test_selector),
		cmocka_unit_test(test_junk),
	};

	return cmocka_run_group_tests(tests, esp_start, esp_stop);
}
