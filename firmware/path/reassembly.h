/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments of ESP packets, put together before decryption.
 *
 * Only the fragment with the SPI says whether a datagram is for the card. Until it has come, the
 * fragments are kept as they came. If the datagram isn't for the card, they go on in the order in
 * which they came, and what comes of it later passes at once; if it is, it leaves as one packet, or
 * not at all.
 *
 * Bounds: FW_REASSEMBLY_DATAGRAMS datagrams, FW_REASSEMBLY_STORE bytes of frames each, with what
 * is noted of each frame; FW_REASSEMBLY_TIME from the first fragment on. Who needs more than there
 * is ends the eldest.
 */
#ifndef FW_PATH_REASSEMBLY_H
#define FW_PATH_REASSEMBLY_H

#include "path/pkt.h"

#define FW_REASSEMBLY_DATAGRAMS 64
/* Enough for the longest IP packet in fragments of a link whose MTU is 100 or more. */
#define FW_REASSEMBLY_STORE 0x20000u
#define FW_REASSEMBLY_TIME 1000000000ull
/* The longest IPv6 packet, Ethernet header and tags. */
#define FW_REASSEMBLY_FRAME_MAX (65535u + 40 + 14 + 32)

/* What is known of a datagram that begins so. */
enum fw_reassembly_kind {
	FW_REASSEMBLY_UNKNOWN = 0,
	FW_REASSEMBLY_OURS = 1,
	FW_REASSEMBLY_OTHER = 2,
};

/**
 * struct fw_reassembly_flow - whose fragments
 * @saddr: source, zero behind an IPv4 address
 * @daddr: destination
 * @family: of both
 * @proto: ESP or UDP, as the fragments say
 */
struct fw_reassembly_flow {
	uint8_t saddr[16];
	uint8_t daddr[16];
	uint8_t family;
	uint8_t proto;
};

/**
 * struct fw_reassembly_ops - what the owner knows
 * @wants: may fragments of this flow be the card's; Return: true if they may
 * @judge: whose datagram is it, by its first @len bytes behind the IP header. Return: UNKNOWN asks
 *	for more bytes; OURS sets @handle
 * @drop: so many fragments of an SA go no further; @handle is NULL if none is known
 */
struct fw_reassembly_ops {
	bool (*wants)(void *owner, const struct fw_reassembly_flow *flow);
	enum fw_reassembly_kind (*judge)(void *owner, const struct fw_reassembly_flow *flow,
					 const uint8_t *head, uint32_t len, uint32_t *handle);
	void (*drop)(void *owner, const uint32_t *handle, uint32_t count);
};

struct fw_reassembly;

/**
 * fw_reassembly_alloc() - allocate all that will be needed
 * @ops: owner's
 * @owner: for @ops
 *
 * Memory that no datagram has used isn't touched.
 *
 * Return: NULL if out of memory.
 */
struct fw_reassembly *fw_reassembly_alloc(const struct fw_reassembly_ops *ops, void *owner);

/**
 * fw_reassembly_free() - free it
 * @r: reassembly, NULL is fine
 */
void fw_reassembly_free(struct fw_reassembly *r);

/**
 * fw_reassembly_add() - a fragment has come
 * @r: reassembly
 * @p: whole frame, parsed, @is_fragment
 * @now: monotonic nanoseconds
 *
 * What fw_reassembly_next() gives is to be taken before the next one is added, and goes before @p if
 * that wasn't taken.
 *
 * Return: true if it was taken: it was copied, or dropped and counted. Otherwise it isn't the card's.
 */
bool fw_reassembly_add(struct fw_reassembly *r, const struct fw_pkt *p, uint64_t now);

/**
 * fw_reassembly_next() - take what is to go on
 * @r: reassembly
 *
 * Return: a parsed frame, valid until the next call, or NULL. It's a fragment that is given back as
 * it came, or a whole packet, of which fw_reassembly_merged() is more than one.
 */
struct fw_pkt *fw_reassembly_next(struct fw_reassembly *r);

/** fw_reassembly_merged() - Return: frames that the packet of fw_reassembly_next() came in */
uint32_t fw_reassembly_merged(const struct fw_reassembly *r);

/**
 * fw_reassembly_expire() - end what has waited for too long
 * @r: reassembly
 * @now: monotonic nanoseconds
 *
 * Return: true if fw_reassembly_next() has something.
 */
bool fw_reassembly_expire(struct fw_reassembly *r, uint64_t now);

/** fw_reassembly_deadline() - Return: when to call fw_reassembly_expire(), UINT64_MAX = never */
uint64_t fw_reassembly_deadline(const struct fw_reassembly *r);

/**
 * fw_reassembly_forget() - an SA goes: drop what is held for it
 * @r: reassembly
 * @handle: SA
 */
void fw_reassembly_forget(struct fw_reassembly *r, uint32_t handle);

/**
 * fw_reassembly_reset() - drop everything, uncounted
 * @r: reassembly
 */
void fw_reassembly_reset(struct fw_reassembly *r);

#endif
