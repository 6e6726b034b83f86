// SPDX-License-Identifier: BSD-3-Clause
#include "path/csum.h"

#include <errno.h>

#include "path/bytes.h"
#include "path/iphdr.h"

/*
 * RFC 1071 2: the sum doesn't care for byte order, so whole words are added as they lie in memory
 * and the result is swapped once.
 */
uint64_t fw_csum_add(const void *data, size_t len, uint64_t sum)
{
	const uint8_t *at = data;
	uint64_t words = 0;
	uint64_t word;
	uint16_t half = 0;

	for (; len >= 8; len -= 8, at += 8) {
		memcpy(&word, at, 8);
		words += (word & 0xffffffff) + (word >> 32);
	}
	for (; len >= 2; len -= 2, at += 2) {
		memcpy(&half, at, 2);
		words += half;
	}
	if (len) {
		half = 0;
		memcpy(&half, at, 1);
		words += half;
	}
	return sum + be16toh((uint16_t)~fw_csum_fold(words));
}

uint16_t fw_csum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

uint64_t fw_csum_pseudo(const uint8_t *ip, uint8_t family, uint8_t proto, uint32_t len)
{
	uint64_t sum = (uint64_t)proto + len;

	if (family == CORDON_FAMILY_INET)
		return fw_csum_add(ip + 12, 8, sum);
	return fw_csum_add(ip + 8, 32, sum);
}

int fw_csum_fill(struct fw_pkt *p, uint32_t start, uint32_t offset)
{
	uint8_t *from;
	uint16_t csum;

	if (start > p->len || offset > p->len - start || p->len - start - offset < 2)
		return -EINVAL;

	from = fw_pkt_data(p) + start;
	csum = fw_csum_fold(fw_csum_add(from, p->len - start, 0));
	/* Zero says "no checksum" in UDP, RFC 768. */
	if (!csum && (offset == 6 || (p->l4 == start && p->l4_proto == FW_PROTO_UDP)))
		csum = 0xffff;
	fw_put_be16(from + offset, csum);
	return 0;
}

bool fw_csum_verify(const struct fw_pkt *p)
{
	const uint8_t *ip = fw_pkt_data(p) + p->l3;
	const uint8_t *l4 = fw_pkt_data(p) + p->l4;
	uint32_t len;

	if (!p->l4 || p->is_fragment ||
	    (p->l4_proto != FW_PROTO_TCP && p->l4_proto != FW_PROTO_UDP))
		return false;
	if (p->l3 > p->len || p->l3_len > p->len - p->l3)
		return false;
	if (p->family == CORDON_FAMILY_INET && fw_csum_fold(fw_csum_add(ip, (size_t)(ip[0] & 15) * 4, 0)))
		return false;

	len = p->l3_len - (p->l4 - p->l3);
	if (p->l4_proto == FW_PROTO_UDP && (!fw_get_be16(l4 + 6) || fw_get_be16(l4 + 4) != len))
		return false;
	return !fw_csum_fold(fw_csum_add(l4, len, fw_csum_pseudo(ip, p->family, p->l4_proto, len)));
}
