/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cordon: SAs, their handles and their state blocks, as the card sees them. What the stack calls
 * an SA (struct xfrm_state) is an opaque owner here.
 */
#ifndef CORDON_SA_H
#define CORDON_SA_H

#include <linux/dmapool.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include <cordon/ipsec.h>

struct cordon_ipsec;
struct cordon_ipsec_restore;
struct device;
struct xfrm_state;

/**
 * struct cordon_handles - objects by handle
 * @xa: objects by index; an index that is reserved but not published holds no object
 * @lock: protects @next and @count; taken by those who sleep
 * @next: where the search for a free index begins
 * @count: upper bits of the handles of this pass over the indices, never 0
 * @max: number of indices
 *
 * Indices are given out in turn, and @count changes whenever the search begins anew: between two
 * uses of an index lies at least one change of @count, so that a handle differs from the previous
 * one of its index without a record of each. With @count never 0, no handle is 0.
 */
struct cordon_handles {
	struct xarray xa;
	struct mutex lock; /* next, count */
	u32 next;
	u8 count;
	u32 max;
};

void cordon_handles_init(struct cordon_handles *handles, u32 max);
void cordon_handles_exit(struct cordon_handles *handles);
int cordon_handles_reserve(struct cordon_handles *handles, u32 *handle);
void cordon_handles_publish(struct cordon_handles *handles, u32 handle, void *object);
void cordon_handles_release(struct cordon_handles *handles, u32 handle);

static inline u32 cordon_handle_index(u32 handle)
{
	return handle & CORDON_HANDLE_INDEX;
}

/* The object that has the handle's index; the caller compares the rest of the handle. */
static inline void *cordon_handles_find(struct cordon_handles *handles, u32 handle)
{
	return xa_load(&handles->xa, cordon_handle_index(handle));
}

/* Bytes in a block of the small pool: replay windows up to 448 packets. */
#define CORDON_SA_BLOCK_SMALL 448

/**
 * struct cordon_sa_blocks - state blocks of a function
 * @small: pool of blocks with small replay windows
 * @large: pool of the others
 * @table: blocks by SPI; protected by the lock of struct cordon_ipsec
 */
struct cordon_sa_blocks {
	struct dma_pool *small;
	struct dma_pool *large;
	DECLARE_HASHTABLE(table, 10);
};

/**
 * struct cordon_sa_block - a state block and what the driver knows about it
 * @node: in the table of blocks
 * @sas: SAs that share it, oldest first; RCU
 * @state: memory that the card writes
 * @dma: bus address of @state
 * @pool: where @state comes from
 * @len: bytes of @state, bitmap included
 * @words: words of the bitmap
 * @lock: protects @packets to @drops, and that each is accounted once. Innermost lock
 * @packets: packets that were handed to the stack's counters
 * @bytes: bytes of them
 * @drops: drops that were handed to the stack's counters
 * @rcu: for freeing
 *
 * A block belongs to a key and SPI rather than to an SA: the stack updates an SA by adding and
 * deleting a copy, and moves it to other addresses by adding a copy and deleting the original.
 * Both must go on with the same numbers.
 */
struct cordon_sa_block {
	struct hlist_node node;
	struct list_head sas;
	struct cordon_sa_state *state;
	dma_addr_t dma;
	struct dma_pool *pool;
	u32 len;
	u32 words;
	spinlock_t lock; /* packets, bytes, drops */
	u64 packets;
	u64 bytes;
	u64 drops[CORDON_SA_DROP_CNT];
	struct rcu_head rcu;
};

/**
 * struct cordon_sa - an SA of the card
 * @handle: handle
 * @dead: takes no more packets, and its owner must not be touched through it any more
 * @on_card: the card may know it; written under the lock of struct cordon_ipsec, also read under
 *	RCU
 * @ipsec: where it belongs
 * @owner: the stack's SA
 * @block: state block
 * @block_node: in the block's list
 * @del_node: in the list of SAs to be deleted from the card, of those that couldn't be, or of
 *	ghosts
 * @deleted_at: jiffies when it became a ghost
 * @restore: waits for the SA to be on the card again
 * @mark: mark for the lookup of the next hop's route
 * @nexthop_packets: counter of packets when the next hop was last looked at
 * @stack_seq: number that the owner had after that; under the block's lock
 * @stored_seq: number when the owner's numbers were last stored; under the block's lock
 * @stored_packets: counter of packets at that time; under the block's lock
 * @stored_time: jiffies at that time; under the block's lock
 * @cfg: what the card was told, with the key, for the time after a reset
 * @rcu: for freeing
 */
struct cordon_sa {
	u32 handle;
	bool dead;
	bool on_card;
	struct cordon_ipsec *ipsec;
	struct xfrm_state *owner;
	struct cordon_sa_block *block;
	struct list_head block_node;
	struct list_head del_node;
	unsigned long deleted_at;
	struct cordon_ipsec_restore *restore;
	u32 mark;
	u64 nexthop_packets;
	u64 stack_seq;
	u64 stored_seq;
	u64 stored_packets;
	unsigned long stored_time;
	struct cordon_sa_cfg cfg;
	struct rcu_head rcu;
};

int cordon_sa_blocks_init(struct cordon_sa_blocks *blocks, struct device *dev);
void cordon_sa_blocks_exit(struct cordon_sa_blocks *blocks);

u32 cordon_sa_state_len(u32 window);
void cordon_sa_follow(struct cordon_sa_blocks *blocks, struct cordon_sa *sa);
int cordon_sa_block_get(struct cordon_sa_blocks *blocks, struct cordon_sa *sa, bool moved);
bool cordon_sa_block_is_shared(const struct cordon_sa *sa);
void cordon_sa_block_mark(struct cordon_sa_block *block, u64 number);
u32 cordon_sa_block_bits(const struct cordon_sa_block *block, u64 number);

struct cordon_sa *cordon_sa_alloc(void);
void cordon_sa_wipe(struct cordon_sa *sa);
void cordon_sa_free(struct cordon_sa_blocks *blocks, struct cordon_sa *sa);
struct cordon_sa *cordon_sa_current(struct cordon_sa *sa);

static inline u64 cordon_sa_read(const __le64 *counter)
{
	return le64_to_cpu(READ_ONCE(*counter));
}

static inline bool cordon_sa_is_packet(const struct cordon_sa *sa)
{
	return sa->cfg.offload == CORDON_OFFLOAD_PACKET;
}

static inline bool cordon_sa_is_out(const struct cordon_sa *sa)
{
	return sa->cfg.direction == CORDON_DIRECTION_OUT;
}

/* Does the card write the Ethernet addresses of its packets? */
static inline bool cordon_sa_has_next_hop(const struct cordon_sa *sa)
{
	return cordon_sa_is_packet(sa) && cordon_sa_is_out(sa) &&
	       sa->cfg.mode != CORDON_MODE_TRANSPORT;
}

#endif
