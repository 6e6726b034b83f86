/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FW_PATH_RSS_H
#define FW_PATH_RSS_H

#include "cordon/abi.h"
#include "path/pkt.h"

/**
 * struct fw_rss - RSS configuration
 * @hash: CORDON_RSS_*
 * @table: queue pair for the low bits of the hash
 * @key: Toeplitz key as it was given
 * @lookup: tables made of the key
 */
struct fw_rss {
	uint32_t hash;
	uint8_t table[CORDON_RSS_TABLE_SIZE];
	uint8_t key[CORDON_RSS_KEY_SIZE];
	uint32_t lookup[36][256];
};

/**
 * fw_rss_set() - take a configuration
 * @rss: RSS
 * @hash: CORDON_RSS_*
 * @key: key
 * @table: table
 */
void fw_rss_set(struct fw_rss *rss, uint32_t hash, const uint8_t *key, const uint8_t *table);

/**
 * fw_rss_hash() - hash of a parsed packet; sets its @hash and @hash_type
 * @rss: RSS
 * @p: packet
 *
 * Return: queue pair.
 */
uint32_t fw_rss_hash(const struct fw_rss *rss, struct fw_pkt *p);

#endif
