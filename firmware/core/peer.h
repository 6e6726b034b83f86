/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_PEER_H
#define CORE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/hlist.h>

#include "cordon/ipsec.h"
#include "path/reassembly.h"

#define FW_PEER_BUCKETS 1024

/**
 * struct fw_peers - addresses between which packet-mode IN SAs are
 * @buckets: by both addresses
 * @seed: of the hash
 */
struct fw_peers {
	struct cds_hlist_head buckets[FW_PEER_BUCKETS];
	uint64_t seed;
};

int fw_peer_add(struct fw_peers *peers, const struct cordon_sa_cfg *cfg);
void fw_peer_del(struct fw_peers *peers, const struct cordon_sa_cfg *cfg);
bool fw_peer_is_known(const struct fw_peers *peers, const struct fw_reassembly_flow *flow);

#endif
