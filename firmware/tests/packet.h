/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets for tests, written with as little help of the code under test as can be.
 */
#ifndef FW_TESTS_PACKET_H
#define FW_TESTS_PACKET_H

#include "path/parse.h"
#include "tests/test.h"

/** packet_alloc() - a packet with an empty frame */
static inline struct fw_pkt *packet_alloc(void)
{
	struct fw_pkt *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	/* As long as the longest IP packet, for segmentation and limits. */
	p->size = FW_PKT_HEADROOM + 66560 + FW_PKT_TAILROOM;
	p->buf = aligned_alloc(64, p->size / 64 * 64 + 64);
	assert_non_null(p->buf);
	p->off = FW_PKT_HEADROOM;
	return p;
}

static inline void packet_free(struct fw_pkt *p)
{
	free(p->buf);
	free(p);
}

/** packet_sum() - RFC 1071 in its plainest form; Return: sum */
static inline uint32_t packet_sum(const uint8_t *data, size_t len, uint32_t sum)
{
	size_t i;

	for (i = 0; i < len; i++) {
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static inline void packet_put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint32_t packet_get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/** packet_ipv4_csum() - fill in an IPv4 header's checksum */
static inline void packet_ipv4_csum(uint8_t *ip)
{
	packet_put16(ip + 10, 0);
	packet_put16(ip + 10, ~packet_sum(ip, (ip[0] & 15) * 4u, 0));
}

/**
 * struct packet_spec - a plain IP packet
 * @family: 4 or 6
 * @proto: protocol; of TCP and UDP the ports are set
 * @tos: TOS or traffic class
 * @df: IPv4: DF
 * @label: IPv6: flow label
 * @len: bytes behind the IP header
 * @host: last byte of the source; the destination's is one more
 */
struct packet_spec {
	uint8_t family;
	uint8_t proto;
	uint8_t tos;
	bool df;
	uint32_t label;
	uint32_t len;
	uint8_t host;
};

/** packet_make() - make the frame of a packet and parse it */
static inline void packet_make(struct fw_pkt *p, const struct packet_spec *spec)
{
	static const uint8_t macs[12] = { 2, 0, 0, 0, 0, 0x0a, 2, 0, 0, 0, 0, 0x0b };
	uint32_t ip_len = spec->family == 4 ? 20 : 40;
	uint8_t *frame, *ip, *l4;

	*p = (struct fw_pkt) { .buf = p->buf, .size = p->size, .off = FW_PKT_HEADROOM, .len = 14 + ip_len + spec->len };
	frame = fw_pkt_data(p);
	memset(p->buf, 0xee, FW_PKT_HEADROOM);
	memcpy(frame, macs, 12);
	packet_put16(frame + 12, spec->family == 4 ? 0x0800 : 0x86dd);
	ip = frame + 14;
	l4 = ip + ip_len;
	memset(ip, 0, ip_len);
	test_fill(l4, spec->len);
	if (spec->family == 4) {
		ip[0] = 0x45;
		ip[1] = spec->tos;
		packet_put16(ip + 2, ip_len + spec->len);
		packet_put16(ip + 4, 0x1234);
		packet_put16(ip + 6, spec->df ? 0x4000 : 0);
		ip[8] = 61;
		ip[9] = spec->proto;
		test_hex("0a010100", ip + 12);
		test_hex("0a020200", ip + 16);
		ip[15] = spec->host;
		ip[19] = (uint8_t)(spec->host + 1);
		packet_ipv4_csum(ip);
	} else {
		packet_put16(ip, 0x6000u | (uint32_t)spec->tos << 4 | spec->label >> 16);
		packet_put16(ip + 2, spec->label);
		packet_put16(ip + 4, spec->len);
		ip[6] = spec->proto;
		ip[7] = 61;
		test_hex("fd000001000000000000000000000000", ip + 8);
		test_hex("fd000002000000000000000000000000", ip + 24);
		ip[23] = spec->host;
		ip[39] = (uint8_t)(spec->host + 1);
	}
	if (spec->len >= 20 && spec->proto == 6)
		l4[12] = 0x50;
	if (spec->len >= 8 && spec->proto == 17)
		packet_put16(l4 + 4, spec->len);
	if (spec->len >= 4 && (spec->proto == 6 || spec->proto == 17)) {
		packet_put16(l4, 1000);
		packet_put16(l4 + 2, 2000);
	}
	fw_parse_frame(p);
}

#endif
