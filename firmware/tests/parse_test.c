// SPDX-License-Identifier: BSD-3-Clause
#include "path/parse.c"

#include "tests/packet.h"

#define MACS "02000000000a" "02000000000b"
#define IPV4(len, fragment, proto) "4500" len "0001" fragment "40" proto "0000" "0a000001" "0a000002"
#define IPV6(len, next) "60000000" len next "40" "fd000000000000000000000000000001" "fd000000000000000000000000000002"
#define TCP "03e8" "07d0" "00000001" "00000002" "5010" "ffff" "0000" "0000"
#define UDP "03e8" "07d0" "000c" "0000" "aaaaaaaa"
#define ESP "00001000" "00000001" "1111111111111111" "2222222222222222"

struct row {
	const char *desc;
	const char *frame;
	uint8_t family;
	uint16_t l3;
	uint16_t l4;
	uint8_t l4_proto;
	uint16_t esp;
	uint32_t l3_len;
	uint16_t ethertype;
	uint8_t vlan_cnt;
	uint16_t vlan_tci;
	bool is_fragment;
	bool is_first_fragment;
};

static const struct row rows[] = {
	{ .desc = "empty", .frame = "" },
	{ .desc = "too short for Ethernet", .frame = "020000000001" },
	{ .desc = "ARP", .frame = MACS "0806" "0001", .ethertype = 0x0806 },
	{ .desc = "no IP behind the type", .frame = MACS "0800", .ethertype = 0x0800 },
	{ .desc = "TCP over IPv4", .frame = MACS "0800" IPV4("0028", "4000", "06") TCP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4 = 34, .l4_proto = 6, .l3_len = 40 },
	{ .desc = "padded to 60 bytes", .frame = MACS "0800" IPV4("0020", "0000", "11") UDP "0000000000000000000000000000",
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4 = 34, .l4_proto = 17, .l3_len = 32 },
	{ .desc = "longer than the frame", .frame = MACS "0800" IPV4("0060", "0000", "11") UDP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4 = 34, .l4_proto = 17, .l3_len = 96 },
	{ .desc = "TCP header cut short by the length", .frame = MACS "0800" IPV4("0027", "4000", "06") TCP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4_proto = 6, .l3_len = 39 },
	{ .desc = "UDP header cut short", .frame = MACS "0800" IPV4("001b", "0000", "11") UDP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4_proto = 17, .l3_len = 27 },
	{ .desc = "no payload", .frame = MACS "0800" IPV4("0014", "0000", "63"),
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4_proto = 99, .l3_len = 20 },
	{ .desc = "total length below the header", .frame = MACS "0800" IPV4("0013", "0000", "11") UDP, .ethertype = 0x0800 },
	{ .desc = "header length below 20", .frame = MACS "0800" "44000014000100004011" "0000" "0a000001" "0a000002",
	  .ethertype = 0x0800 },
	{ .desc = "options behind the frame's end", .frame = MACS "0800" "4f000040000100004011" "0000" "0a000001" "0a000002",
	  .ethertype = 0x0800 },
	{ .desc = "options", .frame = MACS "0800" "46000024000100004011" "0000" "0a000001" "0a000002" "01010101" UDP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4 = 38, .l4_proto = 17, .l3_len = 36 },
	{ .desc = "first fragment", .frame = MACS "0800" IPV4("0020", "2000", "11") UDP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4 = 34, .l4_proto = 17, .l3_len = 32,
	  .is_fragment = true, .is_first_fragment = true },
	{ .desc = "middle fragment", .frame = MACS "0800" IPV4("0020", "2001", "11") UDP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4_proto = 17, .l3_len = 32, .is_fragment = true },
	{ .desc = "last fragment", .frame = MACS "0800" IPV4("0020", "1fff", "32") ESP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4_proto = 50, .l3_len = 32, .is_fragment = true },
	{ .desc = "ESP", .frame = MACS "0800" IPV4("002c", "0000", "32") ESP,
	  .ethertype = 0x0800, .family = 4, .l3 = 14, .l4 = 34, .l4_proto = 50, .esp = 34, .l3_len = 44 },
	{ .desc = "version 6 behind the type of IPv4", .frame = MACS "0800" IPV6("000c", "11") UDP, .ethertype = 0x0800 },
	{ .desc = "version 4 behind the type of IPv6", .frame = MACS "86dd" IPV4("0020", "0000", "11") UDP "0000000000000000",
	  .ethertype = 0x86dd },
	{ .desc = "version 5", .frame = MACS "0800" "55000020000100004011" "0000" "0a000001" "0a000002" UDP, .ethertype = 0x0800 },
	{ .desc = "UDP over IPv6", .frame = MACS "86dd" IPV6("000c", "11") UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4 = 54, .l4_proto = 17, .l3_len = 52 },
	{ .desc = "IPv6 header cut short", .frame = MACS "86dd" "6000000000001140", .ethertype = 0x86dd },
	{ .desc = "hop-by-hop, destination, routing", .frame = MACS "86dd" IPV6("002c", "00")
	  "3c00000000000000" "2b01000000000000" "0000000000000000" "1100000000000000" UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4 = 86, .l4_proto = 17, .l3_len = 84 },
	{ .desc = "extension header reaches behind the packet", .frame = MACS "86dd" IPV6("0014", "3c") "1102000000000000" UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4_proto = 60, .l3_len = 60 },
	{ .desc = "ESP behind destination options", .frame = MACS "86dd" IPV6("0020", "3c") "3200000000000000" ESP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4 = 62, .l4_proto = 50, .esp = 62, .l3_len = 72 },
	{ .desc = "IPv6 first fragment", .frame = MACS "86dd" IPV6("0014", "2c") "1100000100000001" UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4 = 62, .l4_proto = 17, .l3_len = 60,
	  .is_fragment = true, .is_first_fragment = true },
	{ .desc = "IPv6 later fragment", .frame = MACS "86dd" IPV6("0014", "2c") "1100000800000001" UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4_proto = 17, .l3_len = 60, .is_fragment = true },
	{ .desc = "IPv6 atomic fragment", .frame = MACS "86dd" IPV6("0014", "2c") "1100000000000001" UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4 = 62, .l4_proto = 17, .l3_len = 60 },
	{ .desc = "atomic fragment inside a first one", .frame = MACS "86dd" IPV6("001c", "2c") "2c00000100000001" "1100000000000002" UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4 = 70, .l4_proto = 17, .l3_len = 68,
	  .is_fragment = true, .is_first_fragment = true },
	{ .desc = "extension header of a later fragment isn't followed", .frame = MACS "86dd" IPV6("0014", "2c") "0000000900000001" UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4_proto = 0, .l3_len = 60, .is_fragment = true },
	{ .desc = "no next header", .frame = MACS "86dd" IPV6("0000", "3b"),
	  .ethertype = 0x86dd, .family = 6, .l3 = 14, .l4_proto = 59, .l3_len = 40 },
	{ .desc = "tag", .frame = MACS "8100" "a00a" "0800" IPV4("0020", "0000", "11") UDP,
	  .ethertype = 0x0800, .family = 4, .l3 = 18, .l4 = 38, .l4_proto = 17, .l3_len = 32, .vlan_cnt = 1, .vlan_tci = 0xa00a },
	{ .desc = "two tags", .frame = MACS "88a8" "0001" "8100" "0002" "86dd" IPV6("000c", "11") UDP,
	  .ethertype = 0x86dd, .family = 6, .l3 = 22, .l4 = 62, .l4_proto = 17, .l3_len = 52, .vlan_cnt = 2, .vlan_tci = 1 },
	{ .desc = "tag cut short", .frame = MACS "8100" "a00a", .ethertype = 0x8100 },
	{ .desc = "802.3 length", .frame = MACS "0020" IPV4("0020", "0000", "11") UDP, .ethertype = 0x20 },
};

/* The buffer ends with the frame, so that a sanitizer sees each byte too many. */
static void parse(struct fw_pkt *p, const uint8_t *frame, uint32_t len)
{
	memset(p, 0, sizeof(*p));
	p->buf = malloc(len ? len : 1);
	assert_non_null(p->buf);
	memcpy(p->buf, frame, len);
	p->size = len;
	p->len = len;
	fw_parse_frame(p);
	free(p->buf);
}

static void test_frames(void **unused)
{
	uint8_t frame[256];
	struct fw_pkt p;
	const struct row *r;

	(void)unused;
	for (r = rows; r < rows + ARRAY_CNT(rows); r++) {
		parse(&p, frame, (uint32_t)test_hex(r->frame, frame));
		check_eq(r->desc, p.family, r->family);
		check_eq(r->desc, p.l3, r->l3);
		check_eq(r->desc, p.l4, r->l4);
		check_eq(r->desc, p.l4_proto, r->l4_proto);
		check_eq(r->desc, p.esp, r->esp);
		check_eq(r->desc, p.l3_len, r->l3_len);
		check_eq(r->desc, p.ethertype, r->ethertype);
		check_eq(r->desc, p.vlan_cnt, r->vlan_cnt);
		check_eq(r->desc, p.vlan_tci, r->vlan_tci);
		check_eq(r->desc, p.is_fragment, r->is_fragment);
		check_eq(r->desc, p.is_first_fragment, r->is_first_fragment);
	}
}

static void check_bounds(const char *desc, const struct fw_pkt *p)
{
	check(desc, !p->family == !p->l3 && !p->family == !p->l3_len);
	check(desc, !p->l4 || (p->l4 > p->l3 && p->l4 < p->len));
	check(desc, p->esp == 0 || (p->esp == p->l4 && p->len - p->esp >= 8));
	check(desc, !p->is_first_fragment || p->is_fragment);
	check(desc, !p->family || p->len - p->l3 >= (p->family == 4 ? 20u : 40u));
}

/* Each frame cut short at each byte, and with each byte changed. */
static void test_damage(void **unused)
{
	uint8_t frame[256];
	struct fw_pkt p;
	const struct row *r;
	uint32_t len, i;

	(void)unused;
	for (r = rows; r < rows + ARRAY_CNT(rows); r++) {
		len = (uint32_t)test_hex(r->frame, frame);
		for (i = 0; i <= len; i++) {
			parse(&p, frame, i);
			check_bounds(r->desc, &p);
		}
		for (i = 0; i < len * 40; i++) {
			uint32_t at = i % len;
			uint8_t was = frame[at];

			frame[at] = (uint8_t)test_random();
			parse(&p, frame, len);
			check_bounds(r->desc, &p);
			/* Half of the changes stay, so they add up. */
			if (i & 1)
				frame[at] = was;
		}
	}
}

static void test_chain(void **unused)
{
	uint8_t *frame = calloc(1, 9600);
	struct fw_pkt p;
	uint32_t i;

	(void)unused;
	assert_non_null(frame);
	/* As many extension headers as fit: a policy must still see what is behind them. */
	test_hex(MACS "86dd" IPV6("2328", "3c"), frame);
	for (i = 0; i < 1124; i++)
		frame[54 + 8 * i] = i == 1123 ? 17 : 60;
	parse(&p, frame, 54 + 9000);
	assert_int_equal(p.l4_proto, 17);
	assert_int_equal(p.l4, 54 + 1124 * 8);
	free(frame);
}

static void test_known_l3(void **unused)
{
	struct packet_spec spec = { .family = 6, .proto = 17, .len = 20 };
	struct fw_pkt *p = packet_alloc();

	(void)unused;
	packet_make(p, &spec);
	memset(fw_pkt_data(p), 0xaa, 14);
	p->vlan_tci = 77;
	assert_true(fw_parse_l3(p, 14));
	assert_int_equal(p->family, 6);
	assert_int_equal(p->l4, 54);
	assert_int_equal(p->vlan_tci, 77);
	assert_false(fw_parse_l3(p, 0));
	assert_false(fw_parse_l3(p, 15));
	assert_false(fw_parse_l3(p, (uint16_t)p->len));
	assert_false(fw_parse_l3(p, UINT16_MAX));
	packet_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_known_l3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
