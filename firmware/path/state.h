/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State block of an SA, struct cordon_sa_state. It may lie in memory that a guest writes at any
 * time: each word is loaded once, believed for what it is, and never used as an index or length.
 * Nothing else touches a block.
 *
 * Who may be killed between two stores must not leave a block that permits more than it did: stores
 * that depend on this order are releases, and fw_state_settle() stands before a packet leaves.
 */
#ifndef FW_PATH_STATE_H
#define FW_PATH_STATE_H

#include <endian.h>

#include "path/sa.h"

static inline uint64_t fw_state_load(const __le64 *word)
{
	return le64toh(__atomic_load_n(word, __ATOMIC_RELAXED));
}

static inline void fw_state_store(__le64 *word, uint64_t value)
{
	__atomic_store_n(word, htole64(value), __ATOMIC_RELEASE);
}

/** fw_state_settle() - what was stored is in the block before what comes next is done */
static inline void fw_state_settle(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline uint64_t fw_state_seq(const struct fw_sa *sa)
{
	return fw_state_load(&sa->state->seq);
}

static inline void fw_state_set_seq(struct fw_sa *sa, uint64_t seq)
{
	fw_state_store(&sa->state->seq, seq);
}

/** fw_state_bits() - word of the bitmap that holds number @n; Return: the word */
static inline uint64_t fw_state_bits(const struct fw_sa *sa, uint64_t n)
{
	return fw_state_load(&sa->state->bitmap[n / 64 & sa->words_mask]);
}

static inline void fw_state_set_bits(struct fw_sa *sa, uint64_t n, uint64_t bits)
{
	fw_state_store(&sa->state->bitmap[n / 64 & sa->words_mask], bits);
}

/**
 * fw_state_is_expired() - has a hard limit been reached
 * @sa: SA
 *
 * Asked before a packet is counted, so that packet number hard_packets, and the one that reaches
 * hard_bytes, still go through.
 *
 * Return: true if the SA takes no more packets.
 */
static inline bool fw_state_is_expired(const struct fw_sa *sa)
{
	const struct cordon_sa_state *state = sa->state;

	return fw_state_load(&state->packets) >= fw_state_load(&state->hard_packets) ||
	       fw_state_load(&state->bytes) >= fw_state_load(&state->hard_bytes);
}

/**
 * fw_state_count() - count a packet
 * @sa: SA
 * @len: bytes of it
 *
 * Return: true if a soft limit has been reached.
 */
static inline bool fw_state_count(struct fw_sa *sa, uint32_t len)
{
	struct cordon_sa_state *state = sa->state;
	uint64_t packets = fw_state_load(&state->packets) + 1;
	uint64_t bytes = fw_state_load(&state->bytes) + len;

	fw_state_store(&state->packets, packets);
	fw_state_store(&state->bytes, bytes);
	return packets >= fw_state_load(&state->soft_packets) ||
	       bytes >= fw_state_load(&state->soft_bytes);
}

/** fw_state_mark() - set a flag; Return: true if it wasn't set before */
static inline bool fw_state_mark(struct fw_sa *sa, uint32_t flag)
{
	uint32_t flags = le32toh(__atomic_load_n(&sa->state->flags, __ATOMIC_RELAXED));

	if (flags & flag)
		return false;
	__atomic_store_n(&sa->state->flags, htole32(flags | flag), __ATOMIC_RELEASE);
	return true;
}

/** fw_state_drop() - count a drop, if the reason is one that SAs count */
static inline void fw_state_drop(struct fw_sa *sa, enum cordon_result result)
{
	__le64 *drops;

	if (!sa->state || result < CORDON_SA_DROP_FIRST || result >= CORDON_RESULT_CNT)
		return;
	drops = &sa->state->drops[result - CORDON_SA_DROP_FIRST];
	fw_state_store(drops, fw_state_load(drops) + 1);
}

/** fw_state_encap() - UDP ports in force, network order */
static inline void fw_state_encap(const struct fw_sa *sa, __be16 *sport, __be16 *dport)
{
	*sport = __atomic_load_n(&sa->state->encap_sport, __ATOMIC_RELAXED);
	*dport = __atomic_load_n(&sa->state->encap_dport, __ATOMIC_RELAXED);
}

#endif
