// SPDX-License-Identifier: BSD-3-Clause
#include "path/segment.c"

#include "tests/packet.h"

struct row {
	const char *desc;
	uint8_t family;
	uint8_t proto;
	uint32_t payload;
	uint32_t mss;
	bool fixed_id;
	int segments;
};

static const struct row rows[] = {
	{ "TCP4", 4, 6, 64000, 1460, false, 44 },     { "TCP4 fixed ID", 4, 6, 5000, 1460, true, 4 },
	{ "TCP6", 6, 6, 65475, 1440, false, 46 },     { "UDP4", 4, 17, 10000, 1472, false, 7 },
	{ "UDP6", 6, 17, 9000, 1000, false, 9 },      { "one byte each", 4, 6, 100, 1, false, 100 },
	{ "just one", 4, 6, 1460, 1460, false, 1 },   { "one byte more", 4, 6, 1461, 1460, false, 2 },
	{ "a single byte", 6, 17, 1, 9000, false, 1 }, { "jumbo", 4, 6, 65000, 9000, false, 8 },
};

static uint32_t l4_len(uint8_t proto)
{
	return proto == 6 ? 20 : 8;
}

/* A packet's checksums, plainly. */
static void check_sums(const char *desc, const struct fw_pkt *p)
{
	const uint8_t *ip = fw_pkt_data(p) + p->l3;
	uint32_t len = p->len - p->l4;
	uint32_t sum = p->l4_proto + len;

	sum = p->family == 4 ? packet_sum(ip + 12, 8, sum) : packet_sum(ip + 8, 32, sum);
	check_eq(desc, packet_sum(fw_pkt_data(p) + p->l4, len, sum), 0xffff);
	if (p->family == 4)
		check_eq(desc, packet_sum(ip, 20, 0), 0xffff);
}

static void check_segment(const struct row *r, const struct fw_pkt *src, const struct fw_pkt *dst, int i)
{
	const uint8_t *ip = fw_pkt_data(dst) + dst->l3;
	const uint8_t *l4 = fw_pkt_data(dst) + dst->l4;
	const uint8_t *from = fw_pkt_data(src) + src->l4;
	bool last = i == r->segments - 1;

	check_sums(r->desc, dst);
	check(r->desc, fw_pkt_is_whole(dst));
	check_eq(r->desc, dst->l3_len, dst->len - dst->l3);
	if (r->family == 4) {
		check_eq(r->desc, packet_get16(ip + 2), dst->len - 14);
		check_eq(r->desc, packet_get16(ip + 4), 0x1234 + (r->fixed_id ? 0 : i));
	} else {
		check_eq(r->desc, packet_get16(ip + 4), dst->len - 54);
	}
	if (r->proto == 17) {
		check_eq(r->desc, packet_get16(l4 + 4), dst->len - dst->l4);
		return;
	}
	check_eq(r->desc, fw_get_be32(l4 + 4), fw_get_be32(from + 4) + (uint32_t)i * r->mss);
	check_eq(r->desc, l4[13] & 0x09, last ? 0x09 : 0);
	check_eq(r->desc, l4[13] & 0x80, i ? 0 : 0x80);
	check_eq(r->desc, l4[13] & 0x76, from[13] & 0x76);
}

static void test_segments(void **unused)
{
	struct fw_pkt *src = packet_alloc();
	struct fw_pkt *dst = packet_alloc();
	struct fw_segment s;
	const struct row *r;
	uint32_t header, done, len;
	int i;

	(void)unused;
	for (r = rows; r < rows + ARRAY_CNT(rows); r++) {
		struct packet_spec spec = { .family = r->family, .proto = r->proto, .len = l4_len(r->proto) + r->payload };

		packet_make(src, &spec);
		header = src->l4 + l4_len(r->proto);
		if (r->proto == 6)
			fw_pkt_data(src)[src->l4 + 13] = 0xff;
		/* The sequence number wraps on the way. */
		if (r->proto == 6)
			fw_put_be32(fw_pkt_data(src) + src->l4 + 4, 0xffffff80);
		check_eq(r->desc, fw_segment_init(&s, src, header, r->mss, r->fixed_id), r->segments);
		done = 0;
		for (i = 0; i < r->segments; i++) {
			memset(dst->buf, 0x55, dst->size);
			check(r->desc, fw_segment_next(&s, dst));
			check_segment(r, src, dst, i);
			len = dst->len - header;
			check(r->desc, len == r->mss || i == r->segments - 1);
			check(r->desc, !memcmp(fw_pkt_data(dst) + header, fw_pkt_data(src) + header + done, len));
			check_eq(r->desc, fw_pkt_data(dst)[dst->len], 0x55);
			done += len;
		}
		check(r->desc, !fw_segment_next(&s, dst));
		check_eq(r->desc, done, r->payload);
	}
	packet_free(src);
	packet_free(dst);
}

static void test_refused(void **unused)
{
	static const struct {
		const char *desc;
		uint8_t proto;
		uint8_t doff;
		uint32_t header;
		uint32_t mss;
		bool fragment;
	} refused[] = {
		{ "no segment size", 6, 0x50, 54, 0, false },
		{ "header ends inside TCP", 6, 0x50, 53, 100, false },
		{ "header ends behind TCP", 6, 0x50, 55, 100, false },
		{ "no header", 6, 0x50, 0, 100, false },
		{ "TCP header shorter than TCP", 6, 0x40, 50, 100, false },
		{ "TCP header longer than the frame", 6, 0xf0, 94, 100, false },
		{ "segment longer than a frame", 6, 0x50, 54, FW_PKT_FRAME_MAX - 53, false },
		{ "segment size wraps", 6, 0x50, 54, UINT32_MAX, false },
		{ "SCTP", 132, 0, 46, 100, false },
		{ "fragment", 6, 0x50, 54, 100, true },
	};
	struct packet_spec spec = { .family = 4, .len = 60 };
	struct fw_pkt *p = packet_alloc();
	struct fw_segment s;
	unsigned int i;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(refused); i++) {
		spec.proto = refused[i].proto;
		packet_make(p, &spec);
		fw_pkt_data(p)[p->l4 + 12] = refused[i].doff;
		p->is_fragment = refused[i].fragment;
		check_eq(refused[i].desc, fw_segment_init(&s, p, refused[i].header, refused[i].mss, false), -EINVAL);
	}
	spec = (struct packet_spec) { .family = 4, .proto = 6, .len = 20 };
	packet_make(p, &spec);
	check_eq("no payload", fw_segment_init(&s, p, 54, 100, false), -EINVAL);
	p->l4 = 0;
	check_eq("not parsed", fw_segment_init(&s, p, 54, 100, false), -EINVAL);
	packet_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
