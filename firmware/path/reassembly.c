// SPDX-License-Identifier: BSD-3-Clause
/*
 * A datagram has a store into which its frames are copied one behind the other, and a map of the
 * units of 8 bytes that have come: fragments begin and, but for the last, end on such a border, so
 * an overlap is a bit that is set already. Nothing is sorted, and the payload is copied to its
 * place when the datagram is complete.
 *
 * A datagram that ended early is remembered until its time is over, so that its later fragments
 * find the same fate: PASSING and REFUSED have no frames.
 */
#include "path/reassembly.h"

#include <stdlib.h>

#include "cordon/ring.h"
#include "path/csum.h"
#include "path/iphdr.h"
#include "path/parse.h"

#define UNIT 8u
#define PAYLOAD_MAX 65535u
#define UNITS ((PAYLOAD_MAX + UNIT) / UNIT)
#define HEAD_MAX (2 * UNIT)
#define FRAME_SIZE \
	((FW_PKT_HEADROOM + FW_REASSEMBLY_FRAME_MAX + FW_PKT_TAILROOM + 63u) & ~63u)

/* RFC 3168 5.3: bits of what the fragments say of congestion. */
#define ECN_NOT_ECT 0x01
#define ECN_CE 0x08

enum state {
	FREE = 0,
	HOLDING,
	PASSING,
	REFUSED,
	RELEASING,
	COMPLETE,
};

/**
 * struct fragment - a frame in a store; the frame follows
 * @len: bytes of it
 * @l3: offset of the IP header from the frame's start
 * @at: of the payload
 * @offset: of the payload in the datagram's
 * @payload_len: bytes of the payload
 * @type_at: IPv6: offset of the byte that says that a fragment header follows
 * @flags: CORDON_RX_*
 * @vlan_tci: of the tag that was taken off
 */
struct fragment {
	uint32_t len;
	uint32_t l3;
	uint32_t at;
	uint32_t offset;
	uint32_t payload_len;
	uint32_t type_at;
	uint32_t flags;
	uint16_t vlan_tci;
};

/**
 * struct datagram - a datagram of which fragments have come
 * @state: what becomes of them
 * @flow: whose it is
 * @id: IPv4 ID, or that of the fragment header
 * @vlan: tag, its highest bit says that there is one
 * @is_evicted: its place is free once its frames have gone
 * @deadline: until when it is waited for
 * @serial: which is elder
 * @kind: whose it is by its head
 * @handle: SA, if it's ours
 * @head: first bytes of the payload
 * @head_len: of the first fragment
 * @head_more: of the second, if the first ends at UNIT
 * @total: bytes of the payload, 0 = the last fragment hasn't come
 * @got: bytes that have come
 * @top: end of what has come
 * @first: where the first fragment is in the store, if @head_len
 * @ecn: bits
 * @count: frames in the store
 * @used: bytes of the store
 * @released: bytes of the store that went on
 * @map: units that have come
 * @store: frames
 */
struct datagram {
	enum state state;
	struct fw_reassembly_flow flow;
	uint32_t id;
	uint32_t vlan;
	bool is_evicted;
	uint64_t deadline;
	uint64_t serial;
	enum fw_reassembly_kind kind;
	uint32_t handle;
	uint8_t head[HEAD_MAX];
	uint32_t head_len;
	uint32_t head_more;
	uint32_t total;
	uint32_t got;
	uint32_t top;
	uint32_t first;
	uint8_t ecn;
	uint32_t count;
	uint32_t used;
	uint32_t released;
	uint64_t map[UNITS / 64 + 1];
	uint8_t *store;
};

/**
 * struct fw_reassembly - reassembly of a port
 * @ops: owner's
 * @owner: for @ops
 * @serial: datagrams so far
 * @used: datagrams that aren't FREE
 * @pending: datagrams that are RELEASING or COMPLETE
 * @deadline: not later than the first of the datagrams'
 * @merged: frames that @out came in
 * @out: what fw_reassembly_next() gave
 * @memory: all stores, and the buffer of @out
 * @datagrams: datagrams
 */
struct fw_reassembly {
	const struct fw_reassembly_ops *ops;
	void *owner;
	uint64_t serial;
	uint32_t used;
	uint32_t pending;
	uint64_t deadline;
	uint32_t merged;
	struct fw_pkt out;
	uint8_t *memory;
	struct datagram datagrams[FW_REASSEMBLY_DATAGRAMS];
};

struct fw_reassembly *fw_reassembly_alloc(const struct fw_reassembly_ops *ops, void *owner)
{
	struct fw_reassembly *r = calloc(1, sizeof(*r));
	size_t stores = FW_REASSEMBLY_DATAGRAMS * (size_t)FW_REASSEMBLY_STORE;

	if (!r)
		return NULL;
	r->memory = aligned_alloc(64, FRAME_SIZE + stores);
	if (!r->memory) {
		free(r);
		return NULL;
	}
	r->ops = ops;
	r->owner = owner;
	r->deadline = UINT64_MAX;
	r->out.buf = r->memory;
	r->out.size = FRAME_SIZE;
	for (uint32_t i = 0; i < FW_REASSEMBLY_DATAGRAMS; i++)
		r->datagrams[i].store = r->memory + FRAME_SIZE + i * (size_t)FW_REASSEMBLY_STORE;
	return r;
}

void fw_reassembly_free(struct fw_reassembly *r)
{
	if (!r)
		return;
	free(r->memory);
	free(r);
}

static void datagram_free(struct fw_reassembly *r, struct datagram *d)
{
	if (d->state == RELEASING || d->state == COMPLETE)
		r->pending--;
	if (d->state != FREE)
		r->used--;
	d->state = FREE;
	d->count = 0;
}

/* From now on it has no frames, but what comes later meets the same fate. */
static void datagram_end(struct fw_reassembly *r, struct datagram *d, enum state state)
{
	if (d->state == RELEASING || d->state == COMPLETE)
		r->pending--;
	d->state = state;
	d->count = 0;
	d->used = 0;
	r->deadline = FW_MIN(r->deadline, d->deadline);
}

static void datagram_release(struct fw_reassembly *r, struct datagram *d)
{
	if (!d->count) {
		datagram_end(r, d, PASSING);
		return;
	}
	d->state = RELEASING;
	d->released = 0;
	r->pending++;
}

static void drop(struct fw_reassembly *r, const struct datagram *d, uint32_t count)
{
	r->ops->drop(r->owner, d->kind == FW_REASSEMBLY_OURS ? &d->handle : NULL, count);
}

static void datagram_drop(struct fw_reassembly *r, struct datagram *d)
{
	if (d->count)
		drop(r, d, d->count);
	datagram_end(r, d, REFUSED);
}

/* It can't be completed: what is known to be the card's is dropped, the rest goes on as it came. */
static void datagram_give_up(struct fw_reassembly *r, struct datagram *d)
{
	if (d->kind == FW_REASSEMBLY_OURS)
		datagram_drop(r, d);
	else
		datagram_release(r, d);
}

static void fragment_at(const struct datagram *d, uint32_t at, struct fragment *f)
{
	memcpy(f, d->store + at, sizeof(*f));
}

static uint32_t stored_size(const struct fragment *f)
{
	return ((uint32_t)sizeof(*f) + f->len + 7u) & ~7u;
}

static const uint8_t *stored_payload(const struct datagram *d, uint32_t at, const struct fragment *f)
{
	return d->store + at + sizeof(*f) + f->at;
}

/**
 * struct piece - a fragment that has come
 * @f: of the frame
 * @flow: whose it is
 * @id: datagram
 * @vlan: tag, see struct datagram
 * @more: it isn't the last one
 * @ecn: bit
 * @payload: in the frame
 */
struct piece {
	struct fragment f;
	struct fw_reassembly_flow flow;
	uint32_t id;
	uint32_t vlan;
	bool more;
	uint8_t ecn;
	const uint8_t *payload;
};

static bool read_ipv4(const struct fw_pkt *p, struct piece *piece)
{
	const uint8_t *ip = fw_pkt_data(p) + p->l3;
	uint32_t header_len = (ip[0] & 15) * 4u;
	uint16_t fragment = fw_get_be16(ip + 6);

	/* A header of which the sum is wrong mustn't become part of one of which it is right. */
	if (fw_csum_fold(fw_csum_add(ip, header_len, 0)))
		return false;
	memcpy(piece->flow.saddr, ip + 12, 4);
	memcpy(piece->flow.daddr, ip + 16, 4);
	piece->flow.proto = ip[9];
	piece->id = fw_get_be16(ip + 4);
	piece->more = fragment & FW_IPV4_MF;
	piece->f.offset = (fragment & FW_IPV4_OFFSET) * UNIT;
	piece->f.at = p->l3 + header_len;
	return true;
}

static bool read_ipv6(const struct fw_pkt *p, struct piece *piece)
{
	const uint8_t *ip = fw_pkt_data(p) + p->l3;
	struct fw_ipv6_walk walk;
	const uint8_t *header;

	fw_ipv6_walk_init(&walk, p);
	while (walk.proto != FW_PROTO_FRAGMENT) {
		if (!fw_ipv6_walk_next(&walk, p))
			return false;
	}
	/* The parser passed it, so it's whole. */
	header = fw_pkt_data(p) + walk.off;
	memcpy(piece->flow.saddr, ip + 8, 16);
	memcpy(piece->flow.daddr, ip + 24, 16);
	piece->flow.proto = header[0];
	piece->id = fw_get_be32(header + 4);
	piece->more = header[3] & 1;
	piece->f.offset = fw_get_be16(header + 2) & 0xfff8;
	piece->f.type_at = walk.type_off;
	piece->f.at = walk.off + FW_IPV6_FRAGMENT_LEN;
	return true;
}

/* Read a fragment; Return: false if it isn't a right one by itself: the stack judges it. */
static bool read_piece(const struct fw_pkt *p, struct piece *piece)
{
	uint32_t end = p->l3 + p->l3_len;
	bool ok;

	memset(piece, 0, sizeof(*piece));
	if (!fw_pkt_is_whole(p))
		return false;
	ok = p->family == CORDON_FAMILY_INET ? read_ipv4(p, piece) : read_ipv6(p, piece);
	if (!ok || (piece->flow.proto != FW_PROTO_ESP && piece->flow.proto != FW_PROTO_UDP) ||
	    piece->f.at >= end)
		return false;
	piece->flow.family = p->family;
	piece->f.payload_len = end - piece->f.at;
	/* RFC 791, RFC 8200 4.5. */
	if (piece->more && piece->f.payload_len % UNIT)
		return false;
	if (piece->f.offset + piece->f.payload_len > PAYLOAD_MAX)
		return false;
	piece->f.len = p->len;
	piece->f.l3 = p->l3;
	piece->f.flags = p->flags;
	piece->f.vlan_tci = p->vlan_tci;
	if (p->vlan_cnt || p->flags & CORDON_RX_VLAN)
		piece->vlan = 1u << 31 | (p->vlan_tci & 0xfff);
	piece->ecn = (uint8_t)(1u << (fw_iphdr_dsfield(fw_pkt_data(p) + p->l3, p->family) & 3));
	piece->payload = fw_pkt_data(p) + piece->f.at;
	return true;
}

static struct datagram *datagram_find(struct fw_reassembly *r, const struct piece *piece)
{
	for (uint32_t i = 0, seen = 0; i < FW_REASSEMBLY_DATAGRAMS && seen < r->used; i++) {
		struct datagram *d = &r->datagrams[i];

		if (d->state == FREE)
			continue;
		seen++;
		if (d->state != RELEASING && d->state != COMPLETE && d->id == piece->id &&
		    d->vlan == piece->vlan && !memcmp(&d->flow, &piece->flow, sizeof(d->flow)))
			return d;
	}
	return NULL;
}

/* Which of two goes first when there is no room: what holds nothing, then the elder. */
static bool goes_before(const struct datagram *d, const struct datagram *other)
{
	if (!other)
		return true;
	if ((d->state == HOLDING) != (other->state == HOLDING))
		return d->state != HOLDING;
	return d->serial < other->serial;
}

static void evict(struct fw_reassembly *r)
{
	struct datagram *victim = NULL;

	for (uint32_t i = 0; i < FW_REASSEMBLY_DATAGRAMS; i++) {
		struct datagram *d = &r->datagrams[i];

		if (d->state != FREE && d->state != RELEASING && d->state != COMPLETE &&
		    goes_before(d, victim))
			victim = d;
	}
	if (!victim)
		return;
	if (victim->state == HOLDING)
		datagram_give_up(r, victim);
	if (victim->state == RELEASING)
		victim->is_evicted = true;
	else
		datagram_free(r, victim);
}

/*
 * A place for a datagram. One is always kept free: the frames of who had to go are still to be
 * taken when the new one is there.
 */
static struct datagram *datagram_get(struct fw_reassembly *r)
{
	for (uint32_t i = 0; i < FW_REASSEMBLY_DATAGRAMS; i++) {
		if (r->datagrams[i].state != FREE)
			continue;
		if (r->used + 1 == FW_REASSEMBLY_DATAGRAMS)
			evict(r);
		return &r->datagrams[i];
	}
	return NULL;
}

static void datagram_begin(struct fw_reassembly *r, struct datagram *d, const struct piece *piece,
			   uint64_t now)
{
	uint8_t *store = d->store;

	if (d->state == FREE)
		r->used++;
	memset(d, 0, sizeof(*d));
	d->store = store;
	d->state = HOLDING;
	d->flow = piece->flow;
	d->id = piece->id;
	d->vlan = piece->vlan;
	d->serial = r->serial++;
	d->deadline = now + FW_REASSEMBLY_TIME;
	if (d->deadline < r->deadline)
		r->deadline = d->deadline;
}

/* Mark units; Return: how many of them were marked before. */
static uint32_t map_set(struct datagram *d, uint32_t offset, uint32_t len)
{
	uint32_t unit = offset / UNIT, end = (offset + len + UNIT - 1) / UNIT;
	uint32_t before = 0;

	while (unit < end) {
		uint32_t count = FW_MIN(64 - unit % 64, end - unit);
		uint64_t bits = (count == 64 ? ~0ull : (1ull << count) - 1) << unit % 64;

		before += (uint32_t)__builtin_popcountll(d->map[unit / 64] & bits);
		d->map[unit / 64] |= bits;
		unit += count;
	}
	return before;
}

/* Is it the very same fragment as one that has come before? */
static bool is_duplicate(const struct datagram *d, const struct piece *piece)
{
	uint32_t unit = piece->f.offset / UNIT;
	struct fragment f;

	if (!(d->map[unit / 64] >> unit % 64 & 1))
		return false;
	for (uint32_t at = 0; at < d->used; at += stored_size(&f)) {
		fragment_at(d, at, &f);
		if (f.offset == piece->f.offset && f.payload_len == piece->f.payload_len)
			return piece->more == (f.offset + f.payload_len != d->total) &&
			       !memcmp(stored_payload(d, at, &f), piece->payload, f.payload_len);
	}
	return false;
}

/* Does the piece contradict what is known of the datagram's length? */
static bool is_inconsistent(const struct datagram *d, const struct piece *piece)
{
	uint32_t end = piece->f.offset + piece->f.payload_len;

	if (!piece->more)
		return (d->total && d->total != end) || d->top > end;
	/* What isn't the last leaves something for the last. */
	return d->total && end >= d->total;
}

static void store(struct datagram *d, const struct fw_pkt *p, const struct piece *piece)
{
	uint32_t end = piece->f.offset + piece->f.payload_len;
	uint32_t len = FW_MIN(piece->f.payload_len, HEAD_MAX);

	if (!piece->f.offset) {
		d->first = d->used;
		d->head_len = len;
		memcpy(d->head, piece->payload, len);
	} else if (piece->f.offset == UNIT) {
		d->head_more = FW_MIN(len, UNIT);
		memcpy(d->head + UNIT, piece->payload, d->head_more);
	}
	memcpy(d->store + d->used, &piece->f, sizeof(piece->f));
	memcpy(d->store + d->used + sizeof(piece->f), fw_pkt_data(p), p->len);
	d->used += stored_size(&piece->f);
	d->count++;
	d->ecn |= piece->ecn;
	d->got += piece->f.payload_len;
	if (end > d->top)
		d->top = end;
	if (!piece->more)
		d->total = end;
}

static void judge(struct fw_reassembly *r, struct datagram *d)
{
	uint32_t len = d->head_len;

	if (d->kind != FW_REASSEMBLY_UNKNOWN || !len)
		return;
	if (len == UNIT)
		len += d->head_more;
	d->kind = r->ops->judge(r->owner, &d->flow, d->head, len, &d->handle);
}

/* Bytes of IP header and extension headers that the whole packet will have. */
static uint32_t headers_len(const struct datagram *d, const struct fragment *first)
{
	uint32_t fragment = d->flow.family == CORDON_FAMILY_INET ? 0 : FW_IPV6_FRAGMENT_LEN;

	return first->at - first->l3 - fragment;
}

/* Can what has come be a packet? */
static bool is_sound(const struct datagram *d)
{
	struct fragment first;
	uint32_t len;

	fragment_at(d, d->first, &first);
	len = headers_len(d, &first) + d->total;
	if (d->flow.family == CORDON_FAMILY_INET6)
		len -= FW_IPV6_LEN;
	if (len > 65535)
		return false;
	/* RFC 3168 5.3: who mixes ECN-capable fragments with others isn't to be trusted. */
	return !(d->ecn & ECN_NOT_ECT) || d->ecn == ECN_NOT_ECT;
}

/* A fragment that fits is stored; what its datagram now is decides. */
static void settle(struct fw_reassembly *r, struct datagram *d)
{
	bool is_complete = d->total && d->got == d->total;

	judge(r, d);
	if (d->kind == FW_REASSEMBLY_OTHER || (is_complete && d->kind != FW_REASSEMBLY_OURS)) {
		d->kind = FW_REASSEMBLY_OTHER;
		datagram_release(r, d);
	} else if (is_complete && !is_sound(d)) {
		datagram_drop(r, d);
	} else if (is_complete) {
		d->state = COMPLETE;
		r->pending++;
	}
}

/* A fragment that can't be stored ends its datagram; it may be the one that says whose that is. */
static bool add_last(struct fw_reassembly *r, struct datagram *d, const struct piece *piece)
{
	if (!piece->f.offset && !d->head_len) {
		d->head_len = FW_MIN(piece->f.payload_len, HEAD_MAX);
		memcpy(d->head, piece->payload, d->head_len);
		judge(r, d);
	}
	datagram_give_up(r, d);
	if (d->kind != FW_REASSEMBLY_OURS)
		return false;
	drop(r, d, 1);
	return true;
}

static bool add_to(struct fw_reassembly *r, struct datagram *d, const struct fw_pkt *p,
		   const struct piece *piece)
{
	if (is_duplicate(d, piece)) {
		drop(r, d, 1);
		return true;
	}
	/* RFC 5722 4: an overlap ends the whole datagram. */
	if (FW_REASSEMBLY_STORE - d->used < stored_size(&piece->f) || is_inconsistent(d, piece) ||
	    map_set(d, piece->f.offset, piece->f.payload_len))
		return add_last(r, d, piece);
	store(d, p, piece);
	settle(r, d);
	return true;
}

bool fw_reassembly_add(struct fw_reassembly *r, const struct fw_pkt *p, uint64_t now)
{
	struct datagram *d;
	struct piece piece;

	if (!read_piece(p, &piece) || !r->ops->wants(r->owner, &piece.flow))
		return false;
	d = datagram_find(r, &piece);
	if (d && d->deadline <= now && d->state != HOLDING) {
		datagram_free(r, d);
		d = NULL;
	}
	if (d && d->state == REFUSED) {
		drop(r, d, 1);
		return true;
	}
	/* An ID comes back, RFC 6864: a first fragment is judged anew. */
	if (d && d->state == PASSING && piece.f.offset)
		return false;
	if (!d)
		d = datagram_get(r);
	if (!d)
		return false;
	if (d->state != HOLDING)
		datagram_begin(r, d, &piece, now);
	return add_to(r, d, p, &piece);
}

static void out_frame(struct fw_reassembly *r, const struct datagram *d, const struct fragment *f,
		      uint32_t at, uint32_t len)
{
	r->out = (struct fw_pkt){
		.buf = r->out.buf,
		.size = r->out.size,
		.off = FW_PKT_HEADROOM,
		.len = len,
		.flags = f->flags,
		.vlan_tci = f->vlan_tci,
	};
	memcpy(fw_pkt_data(&r->out), d->store + at + sizeof(*f), len);
}

static void next_released(struct fw_reassembly *r, struct datagram *d)
{
	struct fragment f;

	fragment_at(d, d->released, &f);
	out_frame(r, d, &f, d->released, f.len);
	d->released += stored_size(&f);
	r->merged = 1;
	if (d->released < d->used)
		return;
	if (d->is_evicted)
		datagram_free(r, d);
	else
		datagram_end(r, d, PASSING);
}

static void finish_ipv4(uint8_t *ip, uint32_t len, bool ce)
{
	if (ce)
		ip[1] |= 0x03;
	fw_put_be16(ip + 2, (uint16_t)len);
	fw_put_be16(ip + 6, 0);
	fw_put_be16(ip + 10, 0);
	fw_put_be16(ip + 10, fw_csum_fold(fw_csum_add(ip, (size_t)(ip[0] & 15) * 4, 0)));
}

static void finish_ipv6(uint8_t *ip, uint32_t len, bool ce)
{
	if (ce)
		ip[1] |= 0x30;
	fw_put_be16(ip + 4, (uint16_t)(len - FW_IPV6_LEN));
}

static void next_complete(struct fw_reassembly *r, struct datagram *d)
{
	bool is_ipv4 = d->flow.family == CORDON_FAMILY_INET;
	uint32_t keep, headers;
	struct fragment f;
	uint8_t *ip, *to;

	fragment_at(d, d->first, &f);
	headers = headers_len(d, &f);
	keep = is_ipv4 ? f.at : f.at - FW_IPV6_FRAGMENT_LEN;
	out_frame(r, d, &f, d->first, keep);
	to = fw_pkt_data(&r->out) + keep;
	ip = to - headers;
	if (!is_ipv4)
		fw_pkt_data(&r->out)[f.type_at] = d->flow.proto;
	for (uint32_t at = 0; at < d->used; at += stored_size(&f)) {
		fragment_at(d, at, &f);
		memcpy(to + f.offset, stored_payload(d, at, &f), f.payload_len);
	}
	r->out.len = keep + d->total;
	/* One fragment met congestion, so the packet did. */
	if (is_ipv4)
		finish_ipv4(ip, headers + d->total, d->ecn & ECN_CE);
	else
		finish_ipv6(ip, headers + d->total, d->ecn & ECN_CE);
	r->merged = d->count;
	datagram_free(r, d);
}

struct fw_pkt *fw_reassembly_next(struct fw_reassembly *r)
{
	for (uint32_t i = 0; i < FW_REASSEMBLY_DATAGRAMS && r->pending; i++) {
		struct datagram *d = &r->datagrams[i];

		if (d->state == RELEASING)
			next_released(r, d);
		else if (d->state == COMPLETE)
			next_complete(r, d);
		else
			continue;
		fw_parse_frame(&r->out);
		return &r->out;
	}
	return NULL;
}

uint32_t fw_reassembly_merged(const struct fw_reassembly *r)
{
	return r->merged;
}

bool fw_reassembly_expire(struct fw_reassembly *r, uint64_t now)
{
	if (now < r->deadline)
		return r->pending;
	r->deadline = UINT64_MAX;
	for (uint32_t i = 0; i < FW_REASSEMBLY_DATAGRAMS; i++) {
		struct datagram *d = &r->datagrams[i];

		if (d->state == FREE || d->state == RELEASING || d->state == COMPLETE)
			continue;
		if (d->deadline > now) {
			r->deadline = FW_MIN(r->deadline, d->deadline);
			continue;
		}
		if (d->state == HOLDING)
			datagram_give_up(r, d);
		if (d->state != RELEASING)
			datagram_free(r, d);
	}
	return r->pending;
}

uint64_t fw_reassembly_deadline(const struct fw_reassembly *r)
{
	return r->deadline;
}

void fw_reassembly_forget(struct fw_reassembly *r, uint32_t handle)
{
	for (uint32_t i = 0; i < FW_REASSEMBLY_DATAGRAMS && r->used; i++) {
		struct datagram *d = &r->datagrams[i];

		if ((d->state == HOLDING || d->state == COMPLETE) &&
		    d->kind == FW_REASSEMBLY_OURS && d->handle == handle)
			datagram_drop(r, d);
	}
}

void fw_reassembly_reset(struct fw_reassembly *r)
{
	for (uint32_t i = 0; i < FW_REASSEMBLY_DATAGRAMS; i++)
		datagram_free(r, &r->datagrams[i]);
	r->deadline = UINT64_MAX;
}
