// SPDX-License-Identifier: BSD-3-Clause
/*
 * Who sends packets for packet-mode SAs: a later fragment has no SPI, but addresses. Each pair of
 * addresses is here once, however many SAs there are between them.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/peer.h"
#include "path/iphdr.h"

/**
 * struct peer - a pair of addresses
 * @node: in the bucket
 * @flow: addresses and protocol
 * @count: SAs
 */
struct peer {
	struct cds_hlist_node node;
	struct fw_reassembly_flow flow;
	uint32_t count;
};

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 32);
}

static uint32_t bucket(const struct fw_peers *peers, const struct fw_reassembly_flow *flow)
{
	uint64_t words[4];

	memcpy(words, flow->saddr, 16);
	memcpy(words + 2, flow->daddr, 16);
	return mix(mix(mix(mix(peers->seed, words[0]), words[1]), words[2]), words[3]) %
	       FW_PEER_BUCKETS;
}

static struct peer *find(const struct fw_peers *peers, const struct fw_reassembly_flow *flow)
{
	struct peer *peer;

	cds_hlist_for_each_entry_2(peer, &peers->buckets[bucket(peers, flow)], node) {
		if (!memcmp(&peer->flow, flow, sizeof(*flow)))
			return peer;
	}
	return NULL;
}

/* Return: false if fragments of the SA aren't the card's. */
static bool flow_of(const struct cordon_sa_cfg *cfg, struct fw_reassembly_flow *flow)
{
	bool encap = le32toh(cfg->flags) & CORDON_SA_ENCAP;

	if (cfg->direction != CORDON_DIRECTION_IN || cfg->offload != CORDON_OFFLOAD_PACKET)
		return false;
	memset(flow, 0, sizeof(*flow));
	memcpy(flow->saddr, cfg->saddr, cfg->family == CORDON_FAMILY_INET ? 4 : 16);
	memcpy(flow->daddr, cfg->daddr, cfg->family == CORDON_FAMILY_INET ? 4 : 16);
	flow->family = cfg->family;
	flow->proto = encap ? FW_PROTO_UDP : FW_PROTO_ESP;
	return true;
}

/**
 * fw_peer_add() - an SA comes
 * @peers: peers
 * @cfg: its configuration, of any kind
 *
 * Return: 0 or -ENOMEM.
 */
int fw_peer_add(struct fw_peers *peers, const struct cordon_sa_cfg *cfg)
{
	struct fw_reassembly_flow flow;
	struct peer *peer;

	if (!flow_of(cfg, &flow))
		return 0;
	peer = find(peers, &flow);
	if (!peer) {
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return -ENOMEM;
		peer->flow = flow;
		cds_hlist_add_head(&peer->node, &peers->buckets[bucket(peers, &flow)]);
	}
	peer->count++;
	return 0;
}

/**
 * fw_peer_del() - an SA for which fw_peer_add() was called goes
 * @peers: peers
 * @cfg: its configuration
 */
void fw_peer_del(struct fw_peers *peers, const struct cordon_sa_cfg *cfg)
{
	struct fw_reassembly_flow flow;
	struct peer *peer;

	if (!flow_of(cfg, &flow))
		return;
	peer = find(peers, &flow);
	if (!peer || --peer->count)
		return;
	cds_hlist_del(&peer->node);
	free(peer);
}

/**
 * fw_peer_is_known() - is there an SA between these addresses
 * @peers: peers
 * @flow: addresses and protocol
 *
 * An SA whose source is no address takes packets from anywhere.
 *
 * Return: true if there is.
 */
bool fw_peer_is_known(const struct fw_peers *peers, const struct fw_reassembly_flow *flow)
{
	struct fw_reassembly_flow any = *flow;

	if (find(peers, flow))
		return true;
	memset(any.saddr, 0, sizeof(any.saddr));
	return find(peers, &any);
}
