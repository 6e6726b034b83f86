// SPDX-License-Identifier: BSD-3-Clause
#include "path/rss.h"

#include "cordon/cmd.h"
#include "cordon/ring.h"
#include "path/iphdr.h"

/* The 32 bits of the key that begin at bit @bit; behind its end the key is zero. */
static uint32_t key_window(const uint8_t *key, unsigned int bit)
{
	uint64_t window = 0;
	unsigned int i;

	for (i = 0; i < 5; i++)
		window = window << 8 | (bit / 8 + i < CORDON_RSS_KEY_SIZE ? key[bit / 8 + i] : 0);
	return (uint32_t)(window >> (8 - bit % 8));
}

void fw_rss_set(struct fw_rss *rss, uint32_t hash, const uint8_t *key, const uint8_t *table)
{
	unsigned int byte, value, bit;
	uint32_t sum;

	rss->hash = hash;
	memcpy(rss->key, key, sizeof(rss->key));
	memcpy(rss->table, table, sizeof(rss->table));
	for (byte = 0; byte < 36; byte++) {
		for (value = 0; value < 256; value++) {
			sum = 0;
			for (bit = 0; bit < 8; bit++)
				if (value & 0x80u >> bit)
					sum ^= key_window(key, byte * 8 + bit);
			rss->lookup[byte][value] = sum;
		}
	}
}

static uint32_t toeplitz(const struct fw_rss *rss, const uint8_t *data, unsigned int len,
			 unsigned int at, uint32_t sum)
{
	unsigned int i;

	for (i = 0; i < len; i++)
		sum ^= rss->lookup[at + i][data[i]];
	return sum;
}

/*
 * What may be hashed beside the addresses: ports or SPI. All of them are the first four bytes of a
 * header.
 */
static uint8_t hash_type(const struct fw_rss *rss, const struct fw_pkt *p)
{
	bool v4 = p->family == CORDON_FAMILY_INET;

	if (p->is_fragment)
		return CORDON_HASH_L3;
	if (p->esp && (rss->hash & (v4 ? CORDON_RSS_ESP4 : CORDON_RSS_ESP6)))
		return CORDON_HASH_SPI;
	if (p->l4 && p->l4_proto == FW_PROTO_TCP &&
	    (rss->hash & (v4 ? CORDON_RSS_TCP4 : CORDON_RSS_TCP6)))
		return CORDON_HASH_L4;
	if (p->l4 && p->l4_proto == FW_PROTO_UDP &&
	    (rss->hash & (v4 ? CORDON_RSS_UDP4 : CORDON_RSS_UDP6)))
		return CORDON_HASH_L4;
	return CORDON_HASH_L3;
}

uint32_t fw_rss_hash(const struct fw_rss *rss, struct fw_pkt *p)
{
	const uint8_t *frame = fw_pkt_data(p);
	unsigned int len = p->family == CORDON_FAMILY_INET ? 8 : 32;
	unsigned int at = p->family == CORDON_FAMILY_INET ? 12 : 8;

	p->hash = 0;
	p->hash_type = CORDON_HASH_NONE;
	if (p->family) {
		p->hash_type = hash_type(rss, p);
		p->hash = toeplitz(rss, frame + p->l3 + at, len, 0, 0);
		if (p->hash_type == CORDON_HASH_L4)
			p->hash = toeplitz(rss, frame + p->l4, 4, len, p->hash);
		else if (p->hash_type == CORDON_HASH_SPI)
			p->hash = toeplitz(rss, frame + p->esp, 4, len, p->hash);
	}
	return rss->table[p->hash % CORDON_RSS_TABLE_SIZE];
}
