// SPDX-License-Identifier: BSD-3-Clause
#include "path/spd.c"

#include "tests/packet.h"

#define OK CORDON_RESULT_OK
#define NONE CORDON_RESULT_POLICY_NONE
#define TEMPLATE CORDON_RESULT_POLICY_TEMPLATE
#define BLOCK CORDON_RESULT_POLICY_BLOCK

static struct fw_pkt *pkt;
static struct fw_spd *spd;
static struct fw_sa sa;
static uint32_t handle;

/* 10.1.1.1:1000 to 10.2.2.2:2000, or fd00:1::1 to fd00:2::2. */
static void make(uint8_t family, uint8_t proto, uint32_t len)
{
	packet_make(pkt, &(struct packet_spec) { .family = family, .proto = proto, .len = len, .host = 1 });
	pkt->sa = &sa;
}

static struct cordon_policy_cfg policy(uint8_t family, uint32_t priority)
{
	struct cordon_policy_cfg cfg = {
		.handle = handle,
		.priority = priority,
		.order = handle,
		.direction = CORDON_DIRECTION_IN,
		.action = CORDON_ACTION_ALLOW,
		.flags = CORDON_POLICY_TEMPLATE,
		.template_mode = CORDON_MODE_TUNNEL,
		.template_family = 4,
		.selector.family = family,
	};

	handle++;
	return cfg;
}

static uint16_t add(const struct cordon_policy_cfg *cfg)
{
	struct cordon_cmd_completion done = { 0 };

	return fw_spd_add(spd, cfg, &done);
}

static void reset(void)
{
	fw_spd_flush(spd);
	handle = 0x05000000;
	memset(&sa, 0, sizeof(sa));
	sa.cfg.mode = CORDON_MODE_TUNNEL;
	sa.cfg.family = 4;
	sa.cfg.reqid = 42;
	sa.cfg.spi = 0x1234;
	test_hex("c0000201", sa.cfg.saddr);
	test_hex("c0000202", sa.cfg.daddr);
}

struct selector_row {
	const char *desc;
	uint8_t family;
	uint8_t proto;
	const char *saddr;
	uint8_t saddr_prefix;
	const char *daddr;
	uint8_t daddr_prefix;
	uint16_t sport;
	uint16_t sport_mask;
	uint16_t dport;
	uint16_t dport_mask;
	bool tcp4;
	bool tcp6;
	bool later;
};

static const struct selector_row selector_rows[] = {
	{ "everything", 0, 0, "", 0, "", 0, 0, 0, 0, 0, true, true, true },
	{ "all IPv4", 4, 0, "", 0, "", 0, 0, 0, 0, 0, true, false, true },
	{ "all IPv6", 6, 0, "", 0, "", 0, 0, 0, 0, 0, false, true, false },
	{ "protocol", 0, 6, "", 0, "", 0, 0, 0, 0, 0, true, true, true },
	{ "other protocol", 0, 17, "", 0, "", 0, 0, 0, 0, 0, false, false, false },
	{ "host", 4, 0, "0a010101", 32, "0a020202", 32, 0, 0, 0, 0, true, false, true },
	{ "other source", 4, 0, "0a010100", 32, "0a020202", 32, 0, 0, 0, 0, false, false, false },
	{ "network of the source", 4, 0, "0a010100", 31, "", 0, 0, 0, 0, 0, true, false, true },
	{ "bits behind the prefix don't count", 4, 0, "0a0101ff", 24, "", 0, 0, 0, 0, 0, true, false, true },
	{ "other network by one bit", 4, 0, "0a014101", 18, "", 0, 0, 0, 0, 0, false, false, false },
	{ "the same bit outside", 4, 0, "0a014101", 17, "", 0, 0, 0, 0, 0, true, false, true },
	{ "other destination", 4, 0, "", 0, "0b020202", 8, 0, 0, 0, 0, false, false, false },
	{ "first bit", 4, 0, "80000000", 1, "", 0, 0, 0, 0, 0, false, false, false },
	{ "IPv6 host", 6, 0, "fd000001000000000000000000000001", 128, "fd000002000000000000000000000002", 128, 0, 0, 0, 0,
	  false, true, false },
	{ "IPv6 network", 6, 0, "fd000001ffff", 32, "", 0, 0, 0, 0, 0, false, true, false },
	{ "other IPv6 network", 6, 0, "fd000001ffff", 33, "", 0, 0, 0, 0, 0, false, false, false },
	{ "ports", 4, 6, "", 0, "", 0, 1000, 0xffff, 2000, 0xffff, true, false, true },
	{ "ports of any protocol", 4, 0, "", 0, "", 0, 1000, 0xffff, 2000, 0xffff, true, false, true },
	{ "other source port", 4, 6, "", 0, "", 0, 1001, 0xffff, 0, 0, false, false, true },
	{ "other destination port", 4, 6, "", 0, "", 0, 0, 0, 2001, 0xffff, false, false, true },
	{ "range of ports", 4, 6, "", 0, "", 0, 1001, 0xfffe, 2003, 0xfffc, true, false, true },
	{ "ports changed about", 4, 6, "", 0, "", 0, 2000, 0xffff, 1000, 0xffff, false, false, true },
};

static void test_selector(void **unused)
{
	const struct selector_row *r;

	(void)unused;
	for (r = selector_rows; r < selector_rows + ARRAY_CNT(selector_rows); r++) {
		struct cordon_selector sel = {
			.family = r->family, .protocol = r->proto, .saddr_prefix = r->saddr_prefix, .daddr_prefix = r->daddr_prefix,
			.sport = htobe16(r->sport), .sport_mask = htobe16(r->sport_mask),
			.dport = htobe16(r->dport), .dport_mask = htobe16(r->dport_mask),
		};

		test_hex(r->saddr, sel.saddr);
		test_hex(r->daddr, sel.daddr);
		check(r->desc, fw_selector_check(&sel));
		make(4, 6, 40);
		check_eq(r->desc, fw_selector_match(&sel, pkt), r->tcp4);
		/* A later fragment: what lies where ports would be isn't looked at. */
		packet_put16(fw_pkt_data(pkt) + 20, 0x0001);
		fw_parse_frame(pkt);
		check_eq(r->desc, fw_selector_match(&sel, pkt), r->later);
		make(6, 6, 40);
		check_eq(r->desc, fw_selector_match(&sel, pkt), r->tcp6);
	}
	make(4, 6, 40);
	pkt->family = 0;
	check("not IP", !fw_selector_match(&(struct cordon_selector) { 0 }, pkt));
}

static void test_selector_check(void **unused)
{
	static const struct {
		const char *desc;
		uint8_t family;
		uint8_t saddr_prefix;
		uint8_t daddr_prefix;
		uint32_t reserved;
		bool ok;
	} rows[] = {
		{ "any", 0, 0, 0, 0, true },	       { "any with prefix", 0, 1, 0, 0, false }, { "IPv4", 4, 32, 32, 0, true },
		{ "IPv4 too long", 4, 33, 0, 0, false }, { "IPv6", 6, 128, 128, 0, true },	 { "IPv6 too long", 6, 0, 129, 0, false },
		{ "family 5", 5, 0, 0, 0, false },     { "reserved", 4, 0, 0, 1, false },
	};
	unsigned int i;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(rows); i++) {
		struct cordon_selector sel = { .family = rows[i].family, .saddr_prefix = rows[i].saddr_prefix,
					       .daddr_prefix = rows[i].daddr_prefix, .reserved = rows[i].reserved };

		check_eq(rows[i].desc, fw_selector_check(&sel), rows[i].ok);
	}
}

/* What Linux takes for ports elsewhere. */
static void test_selector_kinds(void **unused)
{
	struct cordon_selector sel = { .family = 4, .sport_mask = 0xffff, .dport_mask = 0xffff };
	uint8_t *l4;

	(void)unused;
	make(4, FW_PROTO_ICMP, 40);
	l4 = fw_pkt_data(pkt) + pkt->l4;
	l4[0] = 8;
	l4[1] = 3;
	sel.sport = htobe16(8);
	sel.dport = htobe16(3);
	check("ICMP type and code", fw_selector_match(&sel, pkt));
	l4[1] = 4;
	check("other code", !fw_selector_match(&sel, pkt));

	make(4, FW_PROTO_GRE, 40);
	l4 = fw_pkt_data(pkt) + pkt->l4;
	test_hex("2000080011223344", l4);
	sel.sport = htobe16(0x1122);
	sel.dport = htobe16(0x3344);
	check("GRE key", fw_selector_match(&sel, pkt));
	test_hex("a00008000000000011223344", l4);
	check("GRE checksum and key", fw_selector_match(&sel, pkt));
	test_hex("0000080011223344", l4);
	check("GRE without key", !fw_selector_match(&sel, pkt));
	make(4, FW_PROTO_GRE, 6);
	test_hex("2000080011223344", fw_pkt_data(pkt) + pkt->l4);
	check("GRE cut short", !fw_selector_match(&sel, pkt));

	make(4, 99, 40);
	sel.sport = 0;
	sel.dport = 0;
	check("a protocol without ports has zeros", fw_selector_match(&sel, pkt));
}

struct clear_row {
	const char *desc;
	uint8_t family;
	uint8_t proto;
	const char *l4;
	uint32_t len;
	uint16_t fragment;
	enum cordon_result result;
};

/* With a policy that protects everything. */
static const struct clear_row clear_rows[] = {
	{ "TCP", 4, 6, "", 40, 0, TEMPLATE },
	{ "UDP", 6, 17, "", 40, 0, TEMPLATE },
	{ "ping", 4, 1, "0800", 40, 0, TEMPLATE },
	{ "IKE from its port to another", 4, 17, "01f41000002800", 40, 0, TEMPLATE },
	{ "IKE to its port", 6, 17, "100001f4002800", 40, 0, OK },
	{ "IKE to the NAT-T port", 4, 17, "100011940020000000000000", 40, 0, OK },
	{ "IKE from the NAT-T port to another", 4, 17, "119410000020000000000000", 40, 0, TEMPLATE },
	{ "IKE port to NAT-T port, other kind", 4, 17, "01f41194000a0000ffff", 10, 0, TEMPLATE },
	{ "ESP in UDP", 4, 17, "100011940020000000000001", 40, 0, OK },
	{ "ESP in UDP over IPv6", 6, 17, "100011940020000000000001", 40, 0, OK },
	{ "ESP in UDP, the least", 4, 17, "10001194001100000000000100000001aa", 17, 0, OK },
	{ "ESP in UDP, header alone", 4, 17, "10001194001000000000000100000001", 16, 0, TEMPLATE },
	{ "ESP in UDP, header cut short", 4, 17, "100011940020000000000001", 12, 0, TEMPLATE },
	{ "ESP from the NAT-T port to another", 4, 17, "119410000020000000000001", 40, 0, TEMPLATE },
	{ "NAT-T port, marker cut short", 4, 17, "11941194000b0000000000", 11, 0, TEMPLATE },
	{ "keepalive", 4, 17, "1194119400090000ff", 9, 0, OK },
	{ "keepalive from the NAT-T port to another", 4, 17, "1194100000090000ff", 9, 0, TEMPLATE },
	{ "keepalive of another kind", 4, 17, "1194119400090000fe", 9, 0, TEMPLATE },
	{ "keepalive that is longer", 4, 17, "11941194000a0000ffff", 10, 0, TEMPLATE },
	{ "port 500 of TCP", 4, 6, "01f401f4", 40, 0, TEMPLATE },
	{ "router solicitation", 6, 58, "8500", 40, 0, OK },
	{ "neighbour solicitation", 6, 58, "8700", 40, 0, OK },
	{ "redirect", 6, 58, "8900", 40, 0, OK },
	{ "echo request of IPv6", 6, 58, "8000", 40, 0, TEMPLATE },
	{ "type 132", 6, 58, "8400", 40, 0, TEMPLATE },
	{ "type 138", 6, 58, "8a00", 40, 0, TEMPLATE },
	{ "ICMPv6 over IPv4", 4, 58, "8700", 40, 0, TEMPLATE },
	{ "ESP", 4, 50, "", 40, 0, OK },
	{ "AH", 6, 51, "", 40, 0, OK },
	{ "fragment of ESP", 4, 50, "", 40, 0x0001, OK },
	{ "first fragment of IKE", 4, 17, "100001f4002800", 40, 0x2000, OK },
	{ "later fragment that looks like IKE", 4, 17, "100001f4002800", 40, 0x0001, TEMPLATE },
	{ "TCP cut short", 4, 6, "", 3, 0, TEMPLATE },
};

static void test_clear(void **unused)
{
	const struct clear_row *r;
	struct cordon_policy_cfg cfg;

	(void)unused;
	reset();
	make(4, 6, 40);
	check_eq("no policies", fw_spd_check_clear(spd, pkt), OK);
	cfg = policy(4, 10);
	check_eq("add", add(&cfg), 0);
	cfg = policy(6, 10);
	check_eq("add", add(&cfg), 0);
	for (r = clear_rows; r < clear_rows + ARRAY_CNT(clear_rows); r++) {
		make(r->family, r->proto, r->len);
		test_hex(r->l4, fw_pkt_data(pkt) + (r->family == 4 ? 34 : 54));
		if (r->fragment)
			packet_put16(fw_pkt_data(pkt) + 20, r->fragment);
		fw_parse_frame(pkt);
		check_eq(r->desc, fw_spd_check_clear(spd, pkt), r->result);
	}
	packet_put16(fw_pkt_data(pkt) + 12, 0x0806);
	fw_parse_frame(pkt);
	check_eq("ARP", fw_spd_check_clear(spd, pkt), OK);
}

/* Which of several policies decides. */
static void test_order(void **unused)
{
	struct cordon_policy_cfg protect, bypass, block, narrow;
	unsigned int i, many;

	(void)unused;
	for (many = 0; many < 2; many++) {
		reset();
		/* The same with the flow cache at work. */
		for (i = 0; many && i < 50; i++) {
			protect = policy(4, 1);
			protect.selector.protocol = 200;
			check_eq("filler", add(&protect), 0);
		}
		make(4, 6, 40);
		protect = policy(4, 100);
		check_eq("protect", add(&protect), 0);
		check_eq("protect", fw_spd_check_clear(spd, pkt), TEMPLATE);
		bypass = policy(4, 50);
		bypass.flags = 0;
		bypass.selector.protocol = 6;
		check_eq("bypass goes first", add(&bypass), 0);
		check_eq("bypass goes first", fw_spd_check_clear(spd, pkt), OK);
		block = policy(4, 50);
		block.action = CORDON_ACTION_BLOCK;
		check_eq("of equal priorities the older one", add(&block), 0);
		check_eq("of equal priorities the older one", fw_spd_check_clear(spd, pkt), OK);
		make(4, 17, 40);
		check_eq("block", fw_spd_check_clear(spd, pkt), BLOCK);
		make(4, 6, 40);
		check_eq("delete bypass", fw_spd_del(spd, bypass.handle), 0);
		check_eq("delete bypass", fw_spd_check_clear(spd, pkt), BLOCK);
		narrow = policy(4, 49);
		narrow.flags = CORDON_POLICY_TEMPLATE | CORDON_POLICY_OPTIONAL;
		narrow.template_mode = CORDON_MODE_TRANSPORT;
		check_eq("optional", add(&narrow), 0);
		check_eq("optional", fw_spd_check_clear(spd, pkt), OK);
		narrow = policy(4, 1);
		narrow.if_id = 7;
		check_eq("policy of an interface", add(&narrow), 0);
		check_eq("policy of an interface", fw_spd_check_clear(spd, pkt), OK);
		narrow = policy(4, 0);
		narrow.direction = CORDON_DIRECTION_OUT;
		narrow.action = CORDON_ACTION_BLOCK;
		check_eq("OUT isn't asked", add(&narrow), 0);
		check_eq("OUT isn't asked", fw_spd_check_clear(spd, pkt), OK);
		check_eq("count", fw_spd_count(spd), 5 + 50 * many);
		fw_spd_flush(spd);
		check_eq("flush", fw_spd_count(spd), 0);
		check_eq("flush", fw_spd_check_clear(spd, pkt), OK);
	}
}

struct decrypted_row {
	const char *desc;
	bool transport;
	uint8_t action;
	uint8_t flags;
	uint8_t mode;
	uint32_t reqid;
	uint32_t spi;
	const char *saddr;
	const char *daddr;
	uint8_t family;
	uint32_t if_id;
	enum cordon_result result;
};

#define T CORDON_POLICY_TEMPLATE
#define OPTIONAL (CORDON_POLICY_TEMPLATE | CORDON_POLICY_OPTIONAL)

static const struct decrypted_row decrypted_rows[] = {
	{ "any tunnel", false, 1, T, 2, 0, 0, "", "", 4, 0, OK },
	{ "reqid", false, 1, T, 2, 42, 0, "", "", 4, 0, OK },
	{ "other reqid", false, 1, T, 2, 43, 0, "", "", 4, 0, TEMPLATE },
	{ "SPI", false, 1, T, 2, 0, 0x1234, "", "", 4, 0, OK },
	{ "other SPI", false, 1, T, 2, 0, 0x1235, "", "", 4, 0, TEMPLATE },
	{ "addresses", false, 1, T, 2, 42, 0, "c0000201", "c0000202", 4, 0, OK },
	{ "other source", false, 1, T, 2, 42, 0, "c0000203", "c0000202", 4, 0, TEMPLATE },
	{ "other destination", false, 1, T, 2, 42, 0, "c0000201", "c0000203", 4, 0, TEMPLATE },
	{ "other outer family", false, 1, T, 2, 42, 0, "", "", 6, 0, TEMPLATE },
	{ "transport wanted", false, 1, T, 1, 0, 0, "", "", 4, 0, TEMPLATE },
	{ "tunnel wanted", true, 1, T, 2, 0, 0, "", "", 4, 0, TEMPLATE },
	{ "transport", true, 1, T, 1, 42, 0, "c0000203", "c0000203", 4, 0, OK },
	{ "transport, other reqid", true, 1, T, 1, 43, 0, "", "", 4, 0, TEMPLATE },
	{ "no template, tunnel", false, 1, 0, 0, 0, 0, "", "", 0, 0, TEMPLATE },
	{ "no template, transport", true, 1, 0, 0, 0, 0, "", "", 0, 0, OK },
	{ "optional, tunnel that doesn't fit", false, 1, OPTIONAL, 2, 43, 0, "", "", 4, 0, TEMPLATE },
	{ "optional, transport that doesn't fit", true, 1, OPTIONAL, 1, 43, 0, "", "", 4, 0, OK },
	{ "block", false, 2, T, 2, 0, 0, "", "", 4, 0, BLOCK },
	{ "other interface, tunnel", false, 1, T, 2, 0, 0, "", "", 4, 9, NONE },
	{ "other interface, transport", true, 1, T, 1, 0, 0, "", "", 4, 9, OK },
};

static void test_decrypted(void **unused)
{
	const struct decrypted_row *r;

	(void)unused;
	reset();
	make(4, 6, 40);
	check_eq("no policy, tunnel", fw_spd_check_decrypted(spd, pkt), NONE);
	sa.cfg.mode = CORDON_MODE_TRANSPORT;
	check_eq("no policy, transport", fw_spd_check_decrypted(spd, pkt), OK);
	for (r = decrypted_rows; r < decrypted_rows + ARRAY_CNT(decrypted_rows); r++) {
		struct cordon_policy_cfg cfg = policy(4, 10);

		reset();
		sa.cfg.mode = r->transport ? CORDON_MODE_TRANSPORT : CORDON_MODE_TUNNEL;
		cfg.action = r->action;
		cfg.flags = r->flags;
		cfg.template_mode = r->mode;
		cfg.template_reqid = r->reqid;
		cfg.template_spi = r->spi;
		cfg.template_family = r->family;
		cfg.if_id = r->if_id;
		test_hex(r->saddr, cfg.template_saddr);
		test_hex(r->daddr, cfg.template_daddr);
		check_eq(r->desc, add(&cfg), 0);
		check_eq(r->desc, fw_spd_check_decrypted(spd, pkt), r->result);
	}
	reset();
	sa.cfg.if_id = 9;
	{
		struct cordon_policy_cfg cfg = policy(4, 10);

		cfg.if_id = 9;
		check_eq("the same interface", add(&cfg), 0);
	}
	check_eq("the same interface", fw_spd_check_decrypted(spd, pkt), OK);
}

static void test_refused(void **unused)
{
	struct cordon_cmd_completion done = { 0 };
	struct cordon_policy_cfg cfg;
	unsigned int i;

	(void)unused;
	reset();
	for (i = 0; i < 10; i++) {
		static const uint16_t params[] = {
			CORDON_PARAM_DIRECTION, CORDON_PARAM_DIRECTION, CORDON_PARAM_ACTION, CORDON_PARAM_FLAGS, CORDON_PARAM_FLAGS,
			CORDON_PARAM_MODE, CORDON_PARAM_FAMILY, CORDON_PARAM_SELECTOR, CORDON_PARAM_SELECTOR, CORDON_PARAM_RESERVED,
		};

		cfg = policy(4, 1);
		switch (i) {
		case 0: cfg.direction = 0; break;
		case 1: cfg.direction = 4; break;
		case 2: cfg.action = 3; break;
		case 3: cfg.flags = 4; break;
		case 4: cfg.flags = CORDON_POLICY_OPTIONAL; break;
		case 5: cfg.template_mode = 0; break;
		case 6: cfg.template_family = 0; break;
		case 7: cfg.selector.family = CORDON_FAMILY_ANY; break;
		case 8: cfg.selector.saddr_prefix = 33; break;
		default: cfg.reserved[6] = 1; break;
		}
		assert_int_equal(fw_spd_add(spd, &cfg, &done), CORDON_CMD_STATUS_INVALID);
		assert_int_equal(done.param, params[i]);
	}
	assert_int_equal(fw_spd_count(spd), 0);

	cfg = policy(4, 1);
	assert_int_equal(add(&cfg), 0);
	/* The index is taken, whatever the count in the handle. */
	cfg.handle ^= 0x11000000;
	assert_int_equal(add(&cfg), CORDON_CMD_STATUS_EXISTS);
	assert_int_equal(fw_spd_del(spd, cfg.handle), CORDON_CMD_STATUS_NOT_FOUND);
	assert_int_equal(fw_spd_del(spd, 0x05000077), CORDON_CMD_STATUS_NOT_FOUND);
	assert_int_equal(fw_spd_count(spd), 1);
	cfg.handle ^= 0x11000000;
	assert_int_equal(fw_spd_del(spd, cfg.handle), 0);
	assert_int_equal(fw_spd_del(spd, cfg.handle), CORDON_CMD_STATUS_NOT_FOUND);
}

/* The host could receive or forward a packet: neither list hides what the other asks for. */
static void test_ways(void **unused)
{
	struct cordon_policy_cfg protect, bypass;

	(void)unused;
	reset();
	make(4, 6, 40);
	protect = policy(4, 100);
	bypass = policy(4, 50);
	bypass.flags = 0;
	bypass.direction = CORDON_DIRECTION_FORWARD;
	check_eq("add", add(&protect), 0);
	check_eq("add", add(&bypass), 0);
	check_eq("forwarding is open, receiving isn't", fw_spd_check_clear(spd, pkt), TEMPLATE);
	check_eq("delete", fw_spd_del(spd, bypass.handle), 0);
	bypass.direction = CORDON_DIRECTION_IN;
	check_eq("add", add(&bypass), 0);
	check_eq("receiving is open", fw_spd_check_clear(spd, pkt), OK);
	check_eq("delete", fw_spd_del(spd, protect.handle), 0);
	protect.direction = CORDON_DIRECTION_FORWARD;
	check_eq("add", add(&protect), 0);
	check_eq("receiving is open, forwarding isn't", fw_spd_check_clear(spd, pkt), TEMPLATE);
	fw_spd_flush(spd);
	check_eq("flushed", fw_spd_check_clear(spd, pkt), OK);
}

/* A first fragment that ends behind the ports is judged by them. */
static void test_tiny_fragment(void **unused)
{
	struct cordon_policy_cfg protect, bypass;
	uint8_t proto;

	(void)unused;
	for (proto = 6; proto; proto = proto == 6 ? 132 : 0) {
		reset();
		bypass = policy(4, 1);
		bypass.flags = 0;
		bypass.selector.protocol = proto;
		bypass.selector.dport = htobe16(80);
		bypass.selector.dport_mask = 0xffff;
		protect = policy(4, 2);
		protect.selector.protocol = proto;
		protect.selector.dport = htobe16(22);
		protect.selector.dport_mask = 0xffff;
		check_eq("add", add(&bypass), 0);
		check_eq("add", add(&protect), 0);
		make(4, proto, 8);
		packet_put16(fw_pkt_data(pkt) + 20, 0x2000);
		packet_put16(fw_pkt_data(pkt) + 36, 22);
		fw_parse_frame(pkt);
		check_eq("protected port", fw_spd_check_clear(spd, pkt), TEMPLATE);
		packet_put16(fw_pkt_data(pkt) + 36, 80);
		fw_parse_frame(pkt);
		check_eq("open port", fw_spd_check_clear(spd, pkt), OK);
	}
}

#define MANY 2000

/* Add, delete and ask at random, against a list that is searched plainly. */
static void test_model(void **unused)
{
	static struct cordon_policy_cfg model[MANY];
	static bool there[MANY];
	const struct cordon_policy_cfg *best[2];
	enum cordon_result wanted;
	unsigned int round, i, way, count = 0;

	(void)unused;
	reset();
	for (round = 0; round < 20000; round++) {
		i = (unsigned int)(test_random() % MANY);
		if (there[i]) {
			assert_int_equal(fw_spd_del(spd, model[i].handle), 0);
		} else {
			model[i] = policy(4, (uint32_t)(test_random() % 20));
			model[i].handle = i | (uint32_t)test_random() % 200 << 24;
			model[i].order = test_random() % 100000;
			model[i].selector.protocol = (uint8_t)(test_random() % 300 > 250 ? 0 : test_random() % 250);
			model[i].selector.saddr_prefix = test_random() % 2 ? 32 : 0;
			test_hex("0a010100", model[i].selector.saddr);
			model[i].selector.saddr[3] = (uint8_t)(test_random() % 4);
			model[i].flags = test_random() % 2 ? T : 0;
			model[i].action = (uint8_t)(1 + test_random() % 2);
			model[i].direction = test_random() % 2 ? CORDON_DIRECTION_IN : CORDON_DIRECTION_FORWARD;
			assert_int_equal(add(&model[i]), 0);
		}
		there[i] = !there[i];
		count += there[i] ? 1 : -1;
		assert_int_equal(fw_spd_count(spd), count);
		if (round % 8)
			continue;

		make(4, (uint8_t)(110 + test_random() % 20), 40);
		fw_pkt_data(pkt)[14 + 15] = (uint8_t)(test_random() % 4);
		best[0] = best[1] = NULL;
		for (i = 0; i < MANY; i++) {
			const struct cordon_policy_cfg *m = &model[i];

			if (!there[i] || (m->selector.protocol && m->selector.protocol != pkt->l4_proto))
				continue;
			if (m->selector.saddr_prefix && m->selector.saddr[3] != fw_pkt_data(pkt)[29])
				continue;
			way = m->direction == CORDON_DIRECTION_FORWARD;
			if (!best[way] || m->priority < best[way]->priority ||
			    (m->priority == best[way]->priority &&
			     (m->order < best[way]->order || (m->order == best[way]->order && m->handle < best[way]->handle))))
				best[way] = m;
		}
		wanted = OK;
		for (way = 0; way < 2 && wanted == OK; way++) {
			if (best[way] && best[way]->action == CORDON_ACTION_BLOCK)
				wanted = BLOCK;
			else if (best[way] && best[way]->flags)
				wanted = TEMPLATE;
		}
		assert_int_equal(fw_spd_check_clear(spd, pkt), wanted);
		assert_int_equal(fw_spd_check_clear(spd, pkt), wanted);
	}
}

static int start(void **unused)
{
	(void)unused;
	pkt = packet_alloc();
	spd = fw_spd_alloc();
	return spd ? 0 : -1;
}

static int stop(void **unused)
{
	(void)unused;
	packet_free(pkt);
	fw_spd_free(spd);
	fw_spd_free(NULL);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_selector), cmocka_unit_test(test_selector_check), cmocka_unit_test(test_selector_kinds),
		cmocka_unit_test(test_clear),	 cmocka_unit_test(test_order),		cmocka_unit_test(test_decrypted),
		cmocka_unit_test(test_refused),	 cmocka_unit_test(test_ways),
		cmocka_unit_test(test_tiny_fragment),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
