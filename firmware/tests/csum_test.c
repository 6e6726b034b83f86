// SPDX-License-Identifier: BSD-3-Clause
#include "path/csum.c"

#include "tests/packet.h"

static void test_add(void **unused)
{
	uint8_t data[512];
	uint32_t len, at;

	(void)unused;
	test_fill(data, sizeof(data));
	for (at = 0; at < 9; at++)
		for (len = 0; len <= 300; len++)
			check_eq("sum", fw_csum_fold(fw_csum_add(data + at, len, 0)), (uint16_t)~packet_sum(data + at, len, 0));
	memset(data, 0xff, sizeof(data));
	check_eq("all ones", fw_csum_fold(fw_csum_add(data, 512, 0)), 0);
	check_eq("chained", fw_csum_fold(fw_csum_add(data, 6, fw_csum_add(data + 1, 10, 0xffffffffull))), 0);
}

static void test_long(void **unused)
{
	uint8_t *data = malloc(70000);

	(void)unused;
	assert_non_null(data);
	memset(data, 0xfe, 70000);
	check_eq("long", fw_csum_fold(fw_csum_add(data, 70000, 0)), (uint16_t)~packet_sum(data, 70000, 0));
	free(data);
}

static void test_fill_field(void **unused)
{
	static const struct {
		const char *desc;
		uint32_t start;
		uint32_t offset;
		int ret;
	} rows[] = {
		{ "TCP", 34, 16, 0 },
		{ "last bytes", 34, 64 - 36, 0 },
		{ "one byte outside", 34, 64 - 35, -EINVAL },
		{ "field at the end", 34, 30, -EINVAL },
		{ "start at the end", 64, 0, -EINVAL },
		{ "start behind the end", 65, 0, -EINVAL },
		{ "offset wraps", 34, UINT32_MAX - 33, -EINVAL },
		{ "start wraps", UINT32_MAX, 2, -EINVAL },
	};
	struct packet_spec spec = { .family = 4, .proto = 6, .len = 30 };
	struct fw_pkt *p = packet_alloc();
	unsigned int i;
	uint32_t csum;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(rows); i++) {
		packet_make(p, &spec);
		csum = rows[i].ret ? 0 : (uint16_t)~packet_sum(fw_pkt_data(p) + rows[i].start, p->len - rows[i].start, 0);
		check_eq(rows[i].desc, fw_csum_fill(p, rows[i].start, rows[i].offset), rows[i].ret);
		if (!rows[i].ret)
			check_eq(rows[i].desc, packet_get16(fw_pkt_data(p) + rows[i].start + rows[i].offset), csum);
	}
	packet_free(p);
}

/* What the stack leaves in the field: the pseudo header's sum, not complemented. */
static uint32_t leave_pseudo(struct fw_pkt *p, uint32_t at)
{
	uint8_t *ip = fw_pkt_data(p) + p->l3;
	uint32_t len = p->len - p->l4;
	uint32_t sum = p->l4_proto + len;

	sum = p->family == 4 ? packet_sum(ip + 12, 8, sum) : packet_sum(ip + 8, 32, sum);
	packet_put16(fw_pkt_data(p) + p->l4 + at, sum);
	return sum;
}

static const struct packet_spec l4_specs[] = {
	{ .family = 4, .proto = 6, .len = 20 },	 { .family = 4, .proto = 6, .len = 33 },
	{ .family = 4, .proto = 17, .len = 8 },	 { .family = 4, .proto = 17, .len = 1001 },
	{ .family = 6, .proto = 6, .len = 1460 }, { .family = 6, .proto = 17, .len = 9 },
};

static void test_verify(void **unused)
{
	struct fw_pkt *p = packet_alloc();
	unsigned int i, bit;
	uint32_t at;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(l4_specs); i++) {
		packet_make(p, &l4_specs[i]);
		at = l4_specs[i].proto == 6 ? 16 : 6;
		leave_pseudo(p, at);
		check_eq("fill", fw_csum_fill(p, p->l4, at), 0);
		check("right", fw_csum_verify(p));
		for (bit = p->l4 * 8u; bit < p->len * 8; bit++) {
			fw_pkt_data(p)[bit / 8] ^= (uint8_t)(1 << bit % 8);
			check("one bit is wrong", !fw_csum_verify(p));
			fw_pkt_data(p)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		fw_pkt_data(p)[p->l3 + 12] ^= 1;
		check("address is wrong", !fw_csum_verify(p));
		fw_pkt_data(p)[p->l3 + 12] ^= 1;
		if (p->family == 4) {
			fw_pkt_data(p)[p->l3 + 8]--;
			check("header checksum is wrong", !fw_csum_verify(p));
			fw_pkt_data(p)[p->l3 + 8]++;
		}
		/* What a short frame is padded with doesn't count. */
		p->len += 7;
		check("padded", fw_csum_verify(p));
		p->len -= 8;
		check("cut short", !fw_csum_verify(p));
		p->len++;
		p->is_fragment = true;
		check("fragment", !fw_csum_verify(p));
	}
	packet_free(p);
}

static void test_udp_zero(void **unused)
{
	struct packet_spec spec = { .family = 4, .proto = 17, .len = 10 };
	struct fw_pkt *p = packet_alloc();
	uint32_t sum;

	(void)unused;
	packet_make(p, &spec);
	packet_put16(fw_pkt_data(p) + p->l4 + 6, 0);
	check("no checksum", !fw_csum_verify(p));

	/* Make the whole sum ones, so that the checksum would be zero. */
	packet_put16(fw_pkt_data(p) + p->l4 + 8, 0);
	leave_pseudo(p, 6);
	sum = packet_sum(fw_pkt_data(p) + p->l4, 10, 0);
	packet_put16(fw_pkt_data(p) + p->l4 + 8, 0xffff - sum);
	check_eq("fill", fw_csum_fill(p, p->l4, 6), 0);
	check_eq("zero becomes ones", packet_get16(fw_pkt_data(p) + p->l4 + 6), 0xffff);
	check("zero becomes ones", fw_csum_verify(p));
	packet_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),    cmocka_unit_test(test_long),	cmocka_unit_test(test_fill_field),
		cmocka_unit_test(test_verify), cmocka_unit_test(test_udp_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
