/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An SA as the path sees it: what it was configured with, its key, and its state block.
 */
#ifndef FW_PATH_SA_H
#define FW_PATH_SA_H

#include "cordon/ipsec.h"
#include "crypto/crypto.h"
#include "path/pkt.h"

/**
 * struct fw_sa - SA
 * @cfg: as it was added, keys wiped
 * @crypto: expanded key
 * @ops: suite
 * @state: state block, NULL if it can't be reached (the packet is dropped with
 *CORDON_RESULT_SA_STATE). May lie in the guest's memory: only path/state.h touches it
 * @words_mask: words of the bitmap - 1
 * @next_hop: where tunnel packets go
 * @ip_id: last IPv4 ID between the two gateways. Their SAs share it: the ID of a packet that may be
 *	fragmented must not come again soon, RFC 6864 4.3
 * @own_ip_id: @ip_id of an SA that shares none
 * @neighbour_asked: CORDON_EVENT_SA_NEIGHBOUR was sent; cleared by who sets @next_hop
 * @event: called when an event of the SA is due (CORDON_EVENT_SA_*), may be NULL
 * @owner: for @event
 */
struct fw_sa {
	struct cordon_sa_cfg cfg;
	struct fw_crypto_key *crypto;
	const struct fw_crypto_ops *ops;
	struct cordon_sa_state *state;
	uint32_t words_mask;
	struct cordon_next_hop next_hop;
	uint16_t *ip_id;
	uint16_t own_ip_id;
	bool neighbour_asked;
	void (*event)(struct fw_sa *sa, uint16_t type, uint64_t value);
	void *owner;
};

/**
 * fw_sa_init() - make an SA of its configuration
 * @sa: SA, zeroed
 * @cfg: configuration, checked by fw_sa_check(); a private copy. The caller wipes it
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP.
 */
int fw_sa_init(struct fw_sa *sa, const struct cordon_sa_cfg *cfg);

/**
 * fw_sa_exit() - wipe and free what fw_sa_init() made
 * @sa: SA
 */
void fw_sa_exit(struct fw_sa *sa);

/**
 * fw_sa_check() - judge a configuration against what the card can do
 * @cfg: configuration, a private copy
 * @caps: capabilities
 * @done: param, min and max are set on refusal
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_sa_check(const struct cordon_sa_cfg *cfg, const struct cordon_cap_ipsec *caps,
		     struct cordon_cmd_completion *done);

/**
 * fw_sa_state_size() - bytes of a state block
 * @window: replay window
 *
 * Return: size with the bitmap.
 */
uint32_t fw_sa_state_size(uint32_t window);

/**
 * fw_sa_bitmap_words() - words of the bitmap
 * @window: replay window, at most CORDON_REPLAY_WINDOW_MAX
 *
 * Return: the least power of two, and at least two, that hold @window + 64 bits.
 */
uint32_t fw_sa_bitmap_words(uint32_t window);

/**
 * fw_next_hop_check() - is a next hop well-formed (CORDON_CMD_SA_ADD, CORDON_CMD_SA_UPDATE)
 * @next_hop: next hop, a private copy
 *
 * Return: true if it is.
 */
bool fw_next_hop_check(const struct cordon_next_hop *next_hop);

/** fw_sa_writes_l2() - Return: the card writes Ethernet and outer header of what goes through */
static inline bool fw_sa_writes_l2(const struct fw_sa *sa)
{
	return sa->cfg.offload == CORDON_OFFLOAD_PACKET && sa->cfg.mode != CORDON_MODE_TRANSPORT;
}

/**
 * fw_sa_used() - a packet went through: count it and raise what that brings about
 * @sa: SA with a state block
 * @len: bytes, as the software counts them
 */
void fw_sa_used(struct fw_sa *sa, uint32_t len);

/**
 * fw_sa_drop() - count a drop in the state block, if the reason is one that SAs count
 * @sa: SA, NULL or without a state block is fine
 * @result: reason
 */
void fw_sa_drop(struct fw_sa *sa, enum cordon_result result);

/**
 * fw_sa_expired() - may the SA take no more packets; raises CORDON_EVENT_SA_HARD once
 * @sa: SA with a state block
 *
 * Return: true if a hard limit is reached.
 */
bool fw_sa_expired(struct fw_sa *sa);

/**
 * fw_sa_raise() - raise an event once, as the state block remembers
 * @sa: SA with a state block
 * @flag: CORDON_SA_STATE_*
 * @type: CORDON_EVENT_SA_*
 */
void fw_sa_raise(struct fw_sa *sa, uint32_t flag, uint16_t type);

#endif
