// SPDX-License-Identifier: BSD-3-Clause
#include "path/reassembly.c"

#include <stdio.h>

#include "tests/packet.h"

#define OURS 0x4711u
#define OTHER 0x0815u
#define HANDLE 0u

static struct fw_reassembly *r;
static struct fw_pkt *whole, *piece_pkt;
static uint64_t now;
static uint32_t dropped, dropped_ours, out_frames, taken;
static bool wanted;

static bool wants(void *owner, const struct fw_reassembly_flow *flow)
{
	assert_ptr_equal(owner, &now);
	assert_true(flow->proto == 50 || flow->proto == 17);
	return wanted;
}

/* The SPI says it; behind UDP, which has 8 bytes, as the card's does it. */
static enum fw_reassembly_kind kind_of(void *owner, const struct fw_reassembly_flow *flow, const uint8_t *head,
				       uint32_t len, uint32_t *handle)
{
	assert_ptr_equal(owner, &now);
	if (flow->proto == 17) {
		if (len < 12)
			return FW_REASSEMBLY_UNKNOWN;
		head += 8;
	}
	if (packet_get16(head) != 0 || packet_get16(head + 2) != OURS)
		return FW_REASSEMBLY_OTHER;
	*handle = HANDLE;
	return FW_REASSEMBLY_OURS;
}

static void count_drop(void *owner, const uint32_t *handle, uint32_t count)
{
	assert_ptr_equal(owner, &now);
	dropped += count;
	if (handle) {
		assert_int_equal(*handle, HANDLE);
		dropped_ours += count;
	}
}

static const struct fw_reassembly_ops test_ops = { wants, kind_of, count_drop };

static int setup(void **unused)
{
	(void)unused;
	r = fw_reassembly_alloc(&test_ops, &now);
	assert_non_null(r);
	whole = packet_alloc();
	piece_pkt = packet_alloc();
	now = 1000;
	dropped = dropped_ours = out_frames = taken = 0;
	wanted = true;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	packet_free(whole);
	packet_free(piece_pkt);
	fw_reassembly_free(r);
	return 0;
}

static void whole_make(uint8_t family, uint8_t proto, uint32_t len, uint32_t spi)
{
	struct packet_spec spec = { .family = family, .proto = proto, .len = len, .host = 1 };
	uint8_t *at;

	packet_make(whole, &spec);
	at = fw_pkt_data(whole) + whole->l3 + (family == 4 ? 20 : 40) + (proto == 17 ? 8 : 0);
	packet_put16(at, 0);
	packet_put16(at + 2, spi);
}

static void refit(struct fw_pkt *p)
{
	uint8_t *ip = fw_pkt_data(p) + 14;

	if (ip[0] >> 4 == 4) {
		packet_put16(ip + 2, p->len - 14);
		packet_ipv4_csum(ip);
	} else {
		packet_put16(ip + 4, p->len - 54);
	}
	fw_parse_frame(p);
}

/* A fragment of the packet in `whole`. */
static void cut(uint32_t id, uint32_t offset, uint32_t len)
{
	struct fw_pkt *p = piece_pkt;
	bool v4 = whole->family == 4;
	uint32_t header = v4 ? 34 : 54, total = whole->len - header;
	const uint8_t *from = fw_pkt_data(whole);
	uint8_t *to;
	bool more;

	if (len > total - offset)
		len = total - offset;
	more = offset + len < total;
	*p = (struct fw_pkt) { .buf = p->buf, .size = p->size, .off = FW_PKT_HEADROOM };
	to = fw_pkt_data(p);
	memcpy(to, from, header);
	if (v4) {
		packet_put16(to + 18, id);
		packet_put16(to + 20, offset / 8 | (more ? 0x2000 : 0));
	} else {
		to[54] = to[20];
		to[20] = 44;
		to[55] = 0;
		packet_put16(to + 56, offset | more);
		packet_put16(to + 58, id >> 16);
		packet_put16(to + 60, id);
	}
	p->len = header + (v4 ? 0 : 8) + len;
	memcpy(to + p->len - len, from + header + offset, len);
	refit(p);
}

static bool add(void)
{
	bool was = fw_reassembly_add(r, piece_pkt, now);

	taken += was;
	return was;
}

static bool put(uint32_t id, uint32_t offset, uint32_t len)
{
	cut(id, offset, len);
	return add();
}

/* What comes out is the packet in `whole`, byte for byte. */
static void expect_whole(const char *desc, uint32_t id, uint32_t frames)
{
	struct fw_pkt *p = fw_reassembly_next(r);

	check(desc, p);
	if (whole->family == 4) {
		packet_put16(fw_pkt_data(whole) + 18, id);
		packet_ipv4_csum(fw_pkt_data(whole) + 14);
	}
	check_eq(desc, p->len, whole->len);
	check(desc, !memcmp(fw_pkt_data(p), fw_pkt_data(whole), p->len));
	check_eq(desc, p->l4, whole->l4);
	check(desc, !p->is_fragment && fw_pkt_is_whole(p));
	check_eq(desc, fw_reassembly_merged(r), frames);
	check(desc, !fw_reassembly_next(r));
	out_frames += frames;
}

/* What comes out is the frame in `piece_pkt`, as it came. */
static void expect_piece(const char *desc)
{
	struct fw_pkt *p = fw_reassembly_next(r);

	check(desc, p);
	check_eq(desc, p->len, piece_pkt->len);
	check(desc, !memcmp(fw_pkt_data(p), fw_pkt_data(piece_pkt), p->len));
	check(desc, p->is_fragment);
	check_eq(desc, fw_reassembly_merged(r), 1);
	out_frames++;
}

static uint32_t held(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < FW_REASSEMBLY_DATAGRAMS; i++)
		count += r->datagrams[i].count;
	return count;
}

static void check_accounts(const char *desc)
{
	check_eq(desc, taken, out_frames + dropped + held());
}

enum order { FORWARD, BACKWARD, SHUFFLED };

static void check_order(uint8_t family, uint8_t proto, uint32_t size, uint32_t step, enum order order, uint32_t id)
{
	uint32_t count = (size + step - 1) / step, at[9000];
	char desc[80];

	snprintf(desc, sizeof(desc), "IPv%u, %u: %u in %u, order %d", family, proto, size, step, order);
	whole_make(family, proto, size, OURS);
	for (uint32_t i = 0; i < count; i++)
		at[i] = order == BACKWARD ? count - 1 - i : i;
	for (uint32_t i = count; order == SHUFFLED && i-- > 1;) {
		uint32_t j = (uint32_t)(test_random() % (i + 1)), swap = at[i];

		at[i] = at[j];
		at[j] = swap;
	}
	for (uint32_t i = 0; i < count; i++) {
		check(desc, !fw_reassembly_next(r));
		check(desc, put(id, at[i] * step, step));
	}
	expect_whole(desc, id, count);
	check_eq(desc, r->used, 0);
}

static void test_orders(void **unused)
{
	static const struct {
		uint32_t size;
		uint32_t step;
	} cuts[] = { { 16, 8 }, { 17, 8 }, { 24, 16 }, { 100, 8 }, { 100, 48 }, { 1481, 1480 }, { 1500, 8 }, { 2000, 576 },
		     { 9000, 1480 }, { 9601, 9600 }, { 65000, 1480 }, { 65515, 104 }, { 65515, 1480 }, { 65515, 9576 } };
	uint32_t id = 7;

	(void)unused;
	for (uint32_t i = 0; i < ARRAY_CNT(cuts); i++) {
		for (uint32_t n = 0; n < 12; n++) {
			check_order(n & 1 ? 6 : 4, n & 2 ? 17 : 50, cuts[i].size, cuts[i].step, n / 4, id);
			id += 0x1001;
		}
	}
	check_order(6, 50, 65535, 1448, SHUFFLED, 0xfedcba98);
	check_accounts("orders");
	assert_int_equal(dropped, 0);
}

/* A datagram of another SA, or of none, comes out as it came and in the order of arrival. */
static void test_given_back(void **unused)
{
	(void)unused;
	for (uint32_t family = 4; family <= 6; family += 2) {
		/* The first one comes first: what follows passes at once. */
		whole_make((uint8_t)family, 50, 3000, OTHER);
		assert_true(put(1, 0, 1400));
		expect_piece("first");
		assert_false(put(1, 1400, 1400));
		assert_false(put(1, 2800, 1400));
		assert_null(fw_reassembly_next(r));
		/* It comes last. */
		assert_true(put(2, 2800, 1400));
		assert_true(put(2, 1400, 1400));
		assert_null(fw_reassembly_next(r));
		assert_true(put(2, 0, 1400));
		cut(2, 2800, 1400);
		expect_piece("arrived first");
		cut(2, 1400, 1400);
		expect_piece("arrived second");
		cut(2, 0, 1400);
		expect_piece("arrived last");
		assert_null(fw_reassembly_next(r));
		assert_false(put(2, 1400, 1400));
		/* The same number is for the card now. */
		whole_make((uint8_t)family, 50, 3000, OURS);
		assert_true(put(1, 0, 1400));
		assert_true(put(1, 1400, 1400));
		assert_true(put(1, 2800, 1400));
		expect_whole("number used again", 1, 3);
	}
	check_accounts("given back");
	assert_int_equal(dropped, 0);
}

/* The SPI comes with the second fragment. */
static void test_udp_head(void **unused)
{
	(void)unused;
	for (uint32_t spi = OTHER; spi != 0; spi = spi == OTHER ? OURS : 0) {
		whole_make(4, 17, 100, spi);
		assert_true(put(spi, 0, 8));
		assert_null(fw_reassembly_next(r));
		assert_true(put(spi, 96, 8));
		assert_null(fw_reassembly_next(r));
		assert_true(put(spi, 8, 8));
		if (spi == OTHER) {
			cut(spi, 0, 8);
			expect_piece("UDP header");
			cut(spi, 96, 8);
			expect_piece("last");
			cut(spi, 8, 8);
			expect_piece("SPI");
		} else {
			assert_true(put(spi, 16, 80));
			expect_whole("short head", spi, 4);
		}
	}
	/* All of it is there, and it's nothing. */
	whole_make(4, 17, 20, OURS);
	piece_pkt->len = 0;
	whole->len = 14 + 20 + 11;
	assert_true(put(3, 8, 8));
	assert_true(put(3, 0, 8));
	cut(3, 8, 8);
	expect_piece("too short for an SPI");
	cut(3, 0, 8);
	expect_piece("too short for an SPI");
	check_accounts("UDP");
	assert_int_equal(dropped, 0);
}

static void test_not_taken(void **unused)
{
	(void)unused;
	whole_make(4, 50, 3000, OURS);
	wanted = false;
	assert_false(put(1, 0, 1480));
	wanted = true;
	cut(1, 0, 1480);
	fw_pkt_data(piece_pkt)[24] ^= 1;
	assert_false(add());
	cut(1, 0, 1480);
	piece_pkt->len--;
	assert_false(add());
	cut(1, 0, 1480);
	piece_pkt->len--;
	refit(piece_pkt);
	assert_false(add());
	cut(1, 0, 1480);
	piece_pkt->len = 34;
	refit(piece_pkt);
	assert_false(add());
	cut(1, 1480, 1480);
	packet_put16(fw_pkt_data(piece_pkt) + 20, 0x1fff);
	refit(piece_pkt);
	assert_false(add());
	cut(1, 0, 1480);
	fw_pkt_data(piece_pkt)[23] = 6;
	refit(piece_pkt);
	assert_false(add());
	whole_make(6, 50, 3000, OURS);
	cut(1, 0, 1480);
	/* Destination options before ESP: not where the card looks. */
	fw_pkt_data(piece_pkt)[54] = 60;
	refit(piece_pkt);
	assert_false(add());
	cut(1, 0, 1480);
	piece_pkt->len -= 4;
	refit(piece_pkt);
	assert_false(add());
	assert_int_equal(r->used, 0);
}

/**
 * struct clash - fragments that don't fit together
 * @desc: which
 * @at: offset, length of each; the packet has 4000 bytes
 * @count: how many
 * @len: bytes of the packet while the last one is cut
 */
struct clash {
	const char *desc;
	uint32_t at[3][2];
	uint32_t count;
	uint32_t len;
};

static void check_clash(const struct clash *c, uint32_t spi, bool first_last, uint32_t id)
{
	uint32_t before = dropped;

	whole_make(4, 50, 4000, spi);
	if (!first_last)
		put(id, 0, 8);
	for (uint32_t i = 0; i < c->count; i++) {
		if (i + 1 == c->count)
			whole->len = 34 + c->len;
		put(id, c->at[i][0], c->at[i][1]);
		while (spi == OTHER && fw_reassembly_next(r))
			out_frames++;
	}
	whole->len = 34 + 4000;
	if (spi == OURS && !first_last) {
		check_eq(c->desc, dropped - before, c->count + 1);
		/* What comes later is of no use. */
		check(c->desc, put(id, 3992, 8));
		check_eq(c->desc, dropped - before, c->count + 2);
		check_eq(c->desc, dropped, dropped_ours);
	}
	check(c->desc, spi == OTHER || !r->pending || first_last);
	while (fw_reassembly_next(r))
		out_frames++;
	check_accounts(c->desc);
}

static void test_overlaps(void **unused)
{
	static const struct clash clashes[] = {
		{ "same beginning, longer", { { 80, 80 }, { 80, 88 } }, 2, 4000 },
		{ "same beginning, shorter", { { 80, 80 }, { 80, 72 } }, 2, 4000 },
		{ "one unit at the end", { { 80, 80 }, { 152, 80 } }, 2, 4000 },
		{ "one unit at the beginning", { { 80, 80 }, { 8, 80 } }, 2, 4000 },
		{ "all around", { { 80, 80 }, { 16, 800 } }, 2, 4000 },
		{ "inside", { { 80, 80 }, { 88, 8 } }, 2, 4000 },
		{ "over the first", { { 80, 80 }, { 0, 16 } }, 2, 4000 },
		{ "far away", { { 520, 8 }, { 8, 1024 } }, 2, 4000 },
		{ "last before others", { { 3000, 80 }, { 2000, 1000 } }, 2, 2100 },
		{ "two ends", { { 3200, 800 }, { 3100, 100 } }, 2, 3190 },
		{ "behind the end", { { 3992, 8 }, { 4000, 8 } }, 2, 4016 },
		{ "at the end, more to come", { { 3992, 8 }, { 3984, 8 }, { 8, 3992 } }, 3, 4016 },
	};
	uint32_t id = 1;

	(void)unused;
	for (uint32_t i = 0; i < ARRAY_CNT(clashes); i++) {
		check_clash(&clashes[i], OURS, false, id++);
		check_clash(&clashes[i], OTHER, false, id++);
		check_clash(&clashes[i], OTHER, true, id++);
		check_clash(&clashes[i], OURS, true, id++);
		fw_reassembly_reset(r);
		dropped = dropped_ours = out_frames = taken = 0;
	}
}

static void test_duplicates(void **unused)
{
	(void)unused;
	whole_make(4, 50, 4000, OURS);
	assert_true(put(1, 0, 1480));
	assert_true(put(1, 0, 1480));
	assert_true(put(1, 2960, 1480));
	assert_true(put(1, 2960, 1480));
	assert_int_equal(dropped, 2);
	assert_true(put(1, 1480, 1480));
	expect_whole("duplicates", 1, 3);
	/* The same place, other bytes. */
	assert_true(put(2, 0, 1480));
	fw_pkt_data(whole)[40] ^= 1;
	assert_true(put(2, 0, 1480));
	assert_int_equal(dropped, 4);
	assert_int_equal(r->pending, 0);
	check_accounts("duplicates");
}

static void test_time(void **unused)
{
	(void)unused;
	assert_int_equal(fw_reassembly_deadline(r), UINT64_MAX);
	whole_make(6, 50, 4000, OURS);
	assert_true(put(1, 0, 1000));
	now += 10;
	assert_true(put(2, 1000, 1000));
	assert_int_equal(fw_reassembly_deadline(r), 1000 + FW_REASSEMBLY_TIME);
	now = 1000 + FW_REASSEMBLY_TIME - 1;
	assert_false(fw_reassembly_expire(r, now));
	assert_int_equal(dropped, 0);
	/* A later fragment doesn't prolong it. */
	assert_true(put(1, 1000, 1000));
	now++;
	assert_false(fw_reassembly_expire(r, now));
	assert_int_equal(dropped_ours, 2);
	now += 10;
	assert_true(fw_reassembly_expire(r, now));
	cut(2, 1000, 1000);
	expect_piece("nobody knows whose");
	assert_null(fw_reassembly_next(r));
	assert_false(fw_reassembly_expire(r, now));
	assert_int_equal(r->used, 0);
	assert_int_equal(fw_reassembly_deadline(r), UINT64_MAX);
	check_accounts("time");
	/* A new datagram with the number of one whose time is over, before anyone looked. */
	assert_true(put(1, 0, 1000));
	assert_true(put(1, 0, 1008));
	now += FW_REASSEMBLY_TIME;
	assert_true(put(1, 0, 2000));
	assert_true(put(1, 2000, 2000));
	expect_whole("number used again", 1, 2);
}

static void test_pressure(void **unused)
{
	(void)unused;
	whole_make(4, 50, 4000, OURS);
	for (uint32_t id = 0; id < 200; id++) {
		assert_true(put(id, id % 3 ? 0 : 1480, 1480));
		while (fw_reassembly_next(r))
			out_frames++;
		check_accounts("pressure");
		assert_true(r->used < FW_REASSEMBLY_DATAGRAMS);
	}
	assert_int_equal(held(), FW_REASSEMBLY_DATAGRAMS - 1);
	assert_true(out_frames > 40 && dropped > 80);
	/* What isn't the card's goes first: the 63 stay. */
	whole_make(4, 50, 4000, OTHER);
	for (uint32_t id = 1000; id < 1200; id++) {
		assert_true(put(id, 0, 1480));
		expect_piece("passing");
		assert_null(fw_reassembly_next(r));
	}
	assert_true(held() >= FW_REASSEMBLY_DATAGRAMS - 2);
	whole_make(4, 50, 4000, OURS);
	assert_true(put(2000, 2960, 1480));
	assert_true(put(2000, 1480, 1480));
	assert_true(put(2000, 0, 1480));
	expect_whole("youngest", 2000, 3);
	check_accounts("pressure");
}

static void test_store(void **unused)
{
	uint32_t n;

	(void)unused;
	whole_make(4, 50, 65000, OURS);
	for (n = 0; !dropped; n++)
		assert_true(put(1, n * 8, 8));
	assert_int_equal(dropped, n);
	assert_true(n > 1000);
	check_accounts("store");
	/* Of no one it comes out. */
	for (n = 1; put(2, n * 8, 8); n++)
		assert_null(fw_reassembly_next(r));
	for (uint32_t i = 1; i < n; i++) {
		cut(2, i * 8, 8);
		expect_piece("store");
	}
	assert_null(fw_reassembly_next(r));
	check_accounts("store");
}

/* The payload could be, but not with a header before it. */
static void test_too_long(void **unused)
{
	uint32_t count = 0;

	(void)unused;
	whole_make(4, 50, 65515, OURS);
	whole->len++;
	for (uint32_t offset = 0; offset < 65516; offset += 9600, count++)
		assert_true(put(1, offset, 9600));
	assert_null(fw_reassembly_next(r));
	assert_int_equal(dropped_ours, count);
	check_accounts("too long");
}

static void test_congestion(void **unused)
{
	static const struct {
		const char *desc;
		uint8_t ecn[3];
		int out;
	} rows[] = {
		{ "not capable", { 0, 0, 0 }, 0 }, { "ECT(0)", { 2, 2, 2 }, 2 },    { "ECT(1)", { 1, 1, 1 }, 1 },
		{ "CE", { 3, 3, 3 }, 3 },	   { "one met it", { 2, 3, 2 }, 3 }, { "the last met it", { 1, 1, 3 }, 3 },
		{ "both kinds", { 2, 1, 2 }, 2 },  { "the first met it", { 3, 1, 2 }, 3 },
		{ "mixed", { 0, 3, 0 }, -1 },	   { "mixed, ECT", { 2, 2, 0 }, -1 },
	};

	(void)unused;
	for (uint32_t n = 0; n < 2 * ARRAY_CNT(rows); n++) {
		uint8_t family = n & 1 ? 6 : 4;
		uint32_t i = n / 2;

		whole_make(family, 50, 3000, OURS);
		for (uint32_t k = 0; k < 3; k++) {
			uint8_t *ip = fw_pkt_data(piece_pkt) + 14;

			cut(n, k * 1000, 1000);
			ip[1] = (uint8_t)(family == 4 ? (ip[1] & 0xfc) | rows[i].ecn[k] :
							(ip[1] & 0xcf) | rows[i].ecn[k] << 4);
			refit(piece_pkt);
			check(rows[i].desc, add());
		}
		if (rows[i].out < 0) {
			check(rows[i].desc, !fw_reassembly_next(r));
			check_eq(rows[i].desc, dropped_ours, 3);
			taken = dropped = dropped_ours = 0;
			continue;
		}
		packet_put16(fw_pkt_data(whole) + 14,
			     packet_get16(fw_pkt_data(whole) + 14) | (uint32_t)rows[i].out << (family == 4 ? 0 : 4));
		expect_whole(rows[i].desc, n, 3);
		taken = out_frames = 0;
	}
}

static void test_tags(void **unused)
{
	struct fw_pkt *p;

	(void)unused;
	whole_make(4, 50, 3000, OURS);
	for (uint32_t vlan = 1; vlan <= 2; vlan++) {
		cut(1, 0, 1480);
		piece_pkt->flags = CORDON_RX_VLAN;
		piece_pkt->vlan_tci = (uint16_t)(0x2000 + vlan);
		assert_true(add());
	}
	assert_true(put(1, 1480, 1480));
	assert_int_equal(r->used, 3);
	cut(1, 1480, 1520);
	piece_pkt->flags = CORDON_RX_VLAN;
	piece_pkt->vlan_tci = 2;
	assert_true(add());
	p = fw_reassembly_next(r);
	assert_non_null(p);
	assert_int_equal(p->flags, CORDON_RX_VLAN);
	assert_int_equal(p->vlan_tci, 0x2002);
	assert_int_equal(p->len, whole->len);

	/* With another tag inside, which isn't the one that was taken out. */
	for (uint32_t at = 0; at < 3000; at += 1480) {
		uint8_t *frame;

		cut(2, at, 1480);
		frame = fw_pkt_data(piece_pkt);
		memmove(frame + 16, frame + 12, piece_pkt->len - 12);
		packet_put16(frame + 12, 0x8100);
		packet_put16(frame + 14, 0x0999);
		piece_pkt->len += 4;
		fw_parse_frame(piece_pkt);
		piece_pkt->flags = CORDON_RX_VLAN;
		piece_pkt->vlan_tci = 0x2003;
		assert_true(add());
	}
	p = fw_reassembly_next(r);
	assert_non_null(p);
	assert_int_equal(p->vlan_tci, 0x2003);
}

static void test_forget(void **unused)
{
	(void)unused;
	whole_make(4, 50, 3000, OURS);
	assert_true(put(1, 0, 1480));
	assert_true(put(2, 1480, 1480));
	fw_reassembly_forget(r, HANDLE + 1);
	assert_int_equal(dropped, 0);
	fw_reassembly_forget(r, HANDLE);
	assert_int_equal(dropped_ours, 1);
	assert_int_equal(held(), 1);
	fw_reassembly_reset(r);
	assert_int_equal(held() + r->used, 0);
	assert_false(fw_reassembly_expire(r, UINT64_MAX - 1));
	assert_null(fw_reassembly_next(r));
}

/* Anything at all: each frame that was taken is accounted for once. */
static void test_chaos(void **unused)
{
	(void)unused;
	for (uint32_t n = 0; n < 100000; n++) {
		uint64_t dice = test_random();
		uint32_t size = 100 + (uint32_t)dice % 400, offset;

		if (n % 16 == 0)
			whole_make(dice & 1 ? 4 : 6, dice & 2 ? 50 : 17, size, dice & 12 ? OURS : OTHER);
		size = whole->len - (whole->family == 4 ? 34 : 54);
		offset = (uint32_t)(dice >> 20) % size & ~7u;
		cut((uint32_t)(dice >> 8) % 90, offset, 8 + ((uint32_t)(dice >> 32) % 300 & ~7u));
		if (dice >> 60 == 0)
			fw_pkt_data(piece_pkt)[(dice >> 40) % piece_pkt->len] ^= 0x40;
		fw_parse_frame(piece_pkt);
		if (piece_pkt->is_fragment)
			add();
		now += FW_REASSEMBLY_TIME / 100;
		if (dice >> 58 & 1)
			fw_reassembly_expire(r, now);
		while (fw_reassembly_next(r))
			out_frames += fw_reassembly_merged(r);
		check_accounts("chaos");
	}
	now += 2 * FW_REASSEMBLY_TIME;
	fw_reassembly_expire(r, now);
	while (fw_reassembly_next(r))
		out_frames++;
	fw_reassembly_expire(r, now);
	check_accounts("chaos");
	assert_int_equal(r->used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_orders, setup, teardown),
		cmocka_unit_test_setup_teardown(test_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_udp_head, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlaps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_duplicates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pressure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_congestion, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chaos, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
