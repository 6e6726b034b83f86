/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_SAD_H
#define CORE_SAD_H

#include <stdint.h>
#include <urcu/hlist.h>

#include "cordon/cmd.h"
#include "cordon/ipsec.h"
#include "core/peer.h"
#include "path/sa.h"

struct fw_port;
struct fw_sad_entry;

/* Counters of IPv4 IDs, a power of two: hosts whose addresses collide share one. */
#define FW_SAD_IP_IDS 1024u

/**
 * struct fw_sad - SAs of a function
 * @table: by index of the handle, @max entries
 * @buckets: IN SAs by destination, SPI; a bucket holds the newest first
 * @mask: buckets - 1
 * @max: greatest number of SAs
 * @count: SAs
 * @seed: of the hash
 * @ip_ids: last IPv4 IDs, by hash of the addresses of an OUT SA
 * @peers: where packets for packet-mode IN SAs come from
 */
struct fw_sad {
	struct fw_sad_entry **table;
	struct cds_hlist_head *buckets;
	uint32_t mask;
	uint32_t max;
	uint32_t count;
	uint64_t seed;
	uint16_t ip_ids[FW_SAD_IP_IDS];
	struct fw_peers peers;
};

int fw_sad_init(struct fw_sad *sad, uint32_t max);
void fw_sad_exit(struct fw_sad *sad);
uint16_t fw_sad_add(struct fw_port *port, const struct cordon_sa_cfg *cfg,
		    struct cordon_cmd_completion *done);
uint16_t fw_sad_del(struct fw_port *port, uint32_t handle);
uint16_t fw_sad_update(struct fw_port *port, const struct cordon_sa_update *cfg,
		       struct cordon_cmd_completion *done);
void fw_sad_flush(struct fw_sad *sad);
struct fw_sa *fw_sad_get(struct fw_port *port, uint32_t handle);
struct fw_sa *fw_sad_find(struct fw_port *port, uint8_t family, const uint8_t *daddr,
			  uint32_t spi);

#endif
