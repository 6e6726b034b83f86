// SPDX-License-Identifier: BSD-3-Clause
/*
 * Toeplitz hash: the vectors that Microsoft publishes in "Verifying the RSS Hash Calculation".
 */
#include "path/rss.c"

#include <arpa/inet.h>

#include "tests/packet.h"

static const char key_hex[] = "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa";

struct vector {
	const char *desc;
	const char *saddr;
	const char *daddr;
	uint16_t sport;
	uint16_t dport;
	uint32_t l3;
	uint32_t l4;
};

static const struct vector vectors[] = {
	{ "IPv4 1", "66.9.149.187", "161.142.100.80", 2794, 1766, 0x323e8fc2, 0x51ccc178 },
	{ "IPv4 2", "199.92.111.2", "65.69.140.83", 14230, 4739, 0xd718262a, 0xc626b0ea },
	{ "IPv4 3", "24.19.198.95", "12.22.207.184", 12898, 38024, 0xd2d0a5de, 0x5c2b394a },
	{ "IPv4 4", "38.27.205.30", "209.142.163.6", 48228, 2217, 0x82989176, 0xafc7327f },
	{ "IPv4 5", "153.39.163.191", "202.188.127.2", 44251, 1303, 0x5d1809c5, 0x10e828a2 },
	{ "IPv6 1", "3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x2cc18cd5, 0x40207d3d },
	{ "IPv6 2", "3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0x0f0c461c, 0xdde51bbf },
	{ "IPv6 3", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024, 0x4b61e985, 0x02d1feef },
};

static struct fw_rss rss;

static void set(uint32_t hash)
{
	uint8_t key[CORDON_RSS_KEY_SIZE];
	uint8_t table[CORDON_RSS_TABLE_SIZE];
	unsigned int i;

	assert_int_equal(test_hex(key_hex, key), sizeof(key));
	for (i = 0; i < sizeof(table); i++)
		table[i] = (uint8_t)(i % 5);
	fw_rss_set(&rss, hash, key, table);
}

static void make(struct fw_pkt *p, const struct vector *v, uint8_t proto)
{
	uint8_t family = strchr(v->saddr, ':') ? 6 : 4;
	struct packet_spec spec = { .family = family, .proto = proto, .len = 24 };
	uint8_t *ip;

	packet_make(p, &spec);
	ip = fw_pkt_data(p) + p->l3;
	assert_int_equal(inet_pton(family == 4 ? AF_INET : AF_INET6, v->saddr, ip + (family == 4 ? 12 : 8)), 1);
	assert_int_equal(inet_pton(family == 4 ? AF_INET : AF_INET6, v->daddr, ip + (family == 4 ? 16 : 24)), 1);
	packet_put16(fw_pkt_data(p) + p->l4, v->sport);
	packet_put16(fw_pkt_data(p) + p->l4 + 2, v->dport);
}

static void test_vectors(void **unused)
{
	struct fw_pkt *p = packet_alloc();
	const struct vector *v;

	(void)unused;
	for (v = vectors; v < vectors + ARRAY_CNT(vectors); v++) {
		set(CORDON_RSS_ALL);
		make(p, v, 6);
		check_eq(v->desc, fw_rss_hash(&rss, p), v->l4 % 128 % 5);
		check_eq(v->desc, p->hash, v->l4);
		check_eq(v->desc, p->hash_type, CORDON_HASH_L4);
		make(p, v, 17);
		fw_rss_hash(&rss, p);
		check_eq(v->desc, p->hash, v->l4);
		make(p, v, 50);
		fw_rss_hash(&rss, p);
		check_eq(v->desc, p->hash, v->l4);
		check_eq(v->desc, p->hash_type, CORDON_HASH_SPI);
		make(p, v, 99);
		fw_rss_hash(&rss, p);
		check_eq(v->desc, p->hash, v->l3);
		check_eq(v->desc, p->hash_type, CORDON_HASH_L3);
		p->l4_proto = 6;
		p->is_fragment = true;
		fw_rss_hash(&rss, p);
		check_eq(v->desc, p->hash, v->l3);
	}
	packet_free(p);
}

static void test_types(void **unused)
{
	static const struct {
		const char *desc;
		uint8_t family;
		uint8_t proto;
		uint32_t hash;
	} rows[] = {
		{ "TCP4", 4, 6, CORDON_RSS_TCP4 },   { "UDP4", 4, 17, CORDON_RSS_UDP4 }, { "ESP4", 4, 50, CORDON_RSS_ESP4 },
		{ "TCP6", 6, 6, CORDON_RSS_TCP6 },   { "UDP6", 6, 17, CORDON_RSS_UDP6 }, { "ESP6", 6, 50, CORDON_RSS_ESP6 },
	};
	struct fw_pkt *p = packet_alloc();
	struct packet_spec spec = { .len = 32 };
	unsigned int i, j;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(rows); i++) {
		set(rows[i].hash);
		for (j = 0; j < ARRAY_CNT(rows); j++) {
			spec.family = rows[j].family;
			spec.proto = rows[j].proto;
			packet_make(p, &spec);
			fw_rss_hash(&rss, p);
			check(rows[j].desc, (p->hash_type != CORDON_HASH_L3) == (i == j));
		}
	}
	p->family = 0;
	check_eq("not IP", fw_rss_hash(&rss, p), rss.table[0]);
	check_eq("not IP", p->hash_type, CORDON_HASH_NONE);
	packet_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
