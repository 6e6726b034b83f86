// SPDX-License-Identifier: GPL-2.0-only
/* Cordon: SAs, their handles and their state blocks. */

#include <crypto/utils.h>
#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "cordon_sa.h"

/**
 * cordon_handles_init() - make an empty table
 * @handles: table
 * @max: number of indices that the card offers
 *
 * Context: process.
 */
void cordon_handles_init(struct cordon_handles *handles, u32 max)
{
	xa_init_flags(&handles->xa, XA_FLAGS_ALLOC);
	mutex_init(&handles->lock);
	handles->next = 0;
	handles->count = 1;
	handles->max = min_t(u32, max, CORDON_HANDLE_INDEX + 1);
}

/**
 * cordon_handles_exit() - free the table; nothing may be in it
 * @handles: table
 *
 * Context: process.
 */
void cordon_handles_exit(struct cordon_handles *handles)
{
	WARN_ON_ONCE(!xa_empty(&handles->xa));
	xa_destroy(&handles->xa);
	mutex_destroy(&handles->lock);
}

/**
 * cordon_handles_reserve() - take a free index, that finds nothing yet
 * @handles: table
 * @handle: the handle
 *
 * Context: process, may sleep.
 * Return: 0, -ENOSPC if all are taken, -ENOMEM.
 */
int cordon_handles_reserve(struct cordon_handles *handles, u32 *handle)
{
	u32 index;
	int err;

	if (!handles->max)
		return -ENOSPC;

	mutex_lock(&handles->lock);
	err = xa_alloc_cyclic(&handles->xa, &index, NULL, XA_LIMIT(0, handles->max - 1),
			      &handles->next, GFP_KERNEL);
	if (err < 0) {
		mutex_unlock(&handles->lock);
		return err == -EBUSY ? -ENOSPC : err;
	}

	if (err == 1 && !++handles->count)
		handles->count = 1;
	*handle = FIELD_PREP(CORDON_HANDLE_COUNT, handles->count) | index;
	mutex_unlock(&handles->lock);

	return 0;
}

/**
 * cordon_handles_publish() - let an object be found, or no longer
 * @handles: table
 * @handle: a handle that is reserved
 * @object: object, NULL for none
 *
 * Context: process. Those who look it up do so under RCU.
 */
void cordon_handles_publish(struct cordon_handles *handles, u32 handle, void *object)
{
	/* The slot exists since the index was reserved: nothing is allocated that could fail. */
	xa_store(&handles->xa, cordon_handle_index(handle), object, GFP_KERNEL);
}

/**
 * cordon_handles_release() - give the index back
 * @handles: table
 * @handle: handle; the card doesn't know it any more
 *
 * Context: process.
 */
void cordon_handles_release(struct cordon_handles *handles, u32 handle)
{
	xa_erase(&handles->xa, cordon_handle_index(handle));
}

/**
 * cordon_sa_blocks_init() - make the pools
 * @blocks: blocks
 * @dev: device that accesses them
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM.
 */
int cordon_sa_blocks_init(struct cordon_sa_blocks *blocks, struct device *dev)
{
	hash_init(blocks->table);

	blocks->small = dma_pool_create("cordon-sa-small", dev, CORDON_SA_BLOCK_SMALL, 64, 0);
	if (!blocks->small)
		return -ENOMEM;

	blocks->large = dma_pool_create("cordon-sa-large", dev,
					cordon_sa_state_len(CORDON_REPLAY_WINDOW_MAX), 64, 0);
	if (!blocks->large) {
		dma_pool_destroy(blocks->small);
		return -ENOMEM;
	}

	return 0;
}

/**
 * cordon_sa_blocks_exit() - free the pools; all blocks are put
 * @blocks: blocks
 *
 * Context: process, sleeps.
 */
void cordon_sa_blocks_exit(struct cordon_sa_blocks *blocks)
{
	/* Blocks go back to their pool only when their last reader is done. */
	rcu_barrier();
	dma_pool_destroy(blocks->large);
	dma_pool_destroy(blocks->small);
}

static u32 bitmap_words(u32 window)
{
	/* See struct cordon_sa_state: 64 numbers more than the window, two words at least. */
	return max_t(u32, 2, roundup_pow_of_two(DIV_ROUND_UP(window + 64, 64)));
}

/**
 * cordon_sa_state_len() - bytes of a state block
 * @window: replay window in packets
 *
 * Context: any.
 * Return: bytes, bitmap included.
 */
u32 cordon_sa_state_len(u32 window)
{
	return sizeof(struct cordon_sa_state) + bitmap_words(window) * sizeof(__le64);
}

static bool has_same_daddr(const struct cordon_sa_cfg *a, const struct cordon_sa_cfg *b)
{
	return a->family == b->family && !memcmp(a->daddr, b->daddr, sizeof(a->daddr));
}

static bool has_same_key(const struct cordon_sa_cfg *a, const struct cordon_sa_cfg *b)
{
	return a->cipher == b->cipher && a->auth == b->auth && a->key_len == b->key_len &&
	       a->auth_key_len == b->auth_key_len &&
	       !crypto_memneq(a->key, b->key, sizeof(a->key)) &&
	       !crypto_memneq(a->auth_key, b->auth_key, sizeof(a->auth_key)) &&
	       !crypto_memneq(a->salt, b->salt, sizeof(a->salt));
}

static const struct cordon_sa *block_live_sa(const struct cordon_sa_block *block)
{
	const struct cordon_sa *sa;

	list_for_each_entry(sa, &block->sas, block_node)
		if (!READ_ONCE(sa->dead))
			return sa;

	return NULL;
}

/*
 * May an SA go on with the block of one with the same key and SPI, but another address? Outbound it
 * has to: a number that comes twice is an IV that comes twice (RFC 4106 3). Inbound a number must
 * not be taken twice, but an SA whose block is still new has none that could be.
 */
static bool may_move(const struct cordon_sa_block *block, const struct cordon_sa *sa, bool moved)
{
	return moved || cordon_sa_is_out(sa) || cordon_sa_read(&block->state->packets);
}

static struct cordon_sa_block *block_find(struct cordon_sa_blocks *blocks,
					  const struct cordon_sa *sa, bool moved)
{
	const struct cordon_sa_cfg *cfg = &sa->cfg;
	struct cordon_sa_block *block;
	const struct cordon_sa *other;

	hash_for_each_possible(blocks->table, block, node, (__force u32)cfg->spi) {
		other = block_live_sa(block);
		if (!other)
			continue;
		if (other->cfg.spi != cfg->spi || other->cfg.direction != cfg->direction ||
		    other->cfg.offload != cfg->offload ||
		    other->cfg.replay_window != cfg->replay_window)
			continue;
		if (!has_same_key(&other->cfg, cfg))
			continue;
		if (has_same_daddr(&other->cfg, cfg) || may_move(block, sa, moved))
			return block;
	}

	return NULL;
}

/**
 * cordon_sa_follow() - let a copy that the stack made to update an inbound SA be like the original
 * @blocks: blocks
 * @sa: SA, with @cfg filled in but for the block
 *
 * The stack keeps keys, window and numbers of the original, whatever the copy says. The card takes
 * packets through the SA that came last, so another window would let old packets through, and
 * another key none at all.
 *
 * Context: process, under the lock of struct cordon_ipsec.
 */
void cordon_sa_follow(struct cordon_sa_blocks *blocks, struct cordon_sa *sa)
{
	const struct cordon_sa_cfg *cfg = &sa->cfg;
	const struct cordon_sa_block *block;
	const struct cordon_sa *other;
	__le32 handle = cfg->handle;

	if (cordon_sa_is_out(sa))
		return;

	hash_for_each_possible(blocks->table, block, node, (__force u32)cfg->spi) {
		other = block_live_sa(block);
		if (!other || cordon_sa_is_out(other) || other->cfg.spi != cfg->spi ||
		    !has_same_daddr(&other->cfg, cfg))
			continue;
		if (other->cfg.replay_window == cfg->replay_window &&
		    other->cfg.flags == cfg->flags && has_same_key(&other->cfg, cfg))
			return;
		sa->cfg = other->cfg;
		sa->cfg.handle = handle;
		return;
	}
}

static struct cordon_sa_block *block_alloc(struct cordon_sa_blocks *blocks,
					   const struct cordon_sa *sa)
{
	u32 window = le32_to_cpu(sa->cfg.replay_window);
	struct cordon_sa_block *block;

	block = kzalloc_obj(*block);
	if (!block)
		return NULL;

	block->words = bitmap_words(window);
	block->len = cordon_sa_state_len(window);
	block->pool = block->len <= CORDON_SA_BLOCK_SMALL ? blocks->small : blocks->large;
	block->state = dma_pool_zalloc(block->pool, GFP_KERNEL, &block->dma);
	if (!block->state) {
		kfree(block);
		return NULL;
	}

	spin_lock_init(&block->lock);
	INIT_LIST_HEAD(&block->sas);
	hash_add(blocks->table, &block->node, (__force u32)sa->cfg.spi);

	return block;
}

/**
 * cordon_sa_block_get() - give an SA its state block
 * @blocks: blocks
 * @sa: SA, with @cfg filled in but for the block
 * @moved: the stack's SA was used already, so it may be a copy of one with other addresses
 *
 * The block of a live SA with the same key and SPI is shared and left as it is. A deleted SA is
 * never gone on with: who adds an SA anew wants new numbers.
 *
 * Context: process, under the lock of struct cordon_ipsec; may sleep.
 * Return: 0, -ENOMEM.
 */
int cordon_sa_block_get(struct cordon_sa_blocks *blocks, struct cordon_sa *sa, bool moved)
{
	struct cordon_sa_block *block;

	block = block_find(blocks, sa, moved);
	if (!block)
		block = block_alloc(blocks, sa);
	if (!block)
		return -ENOMEM;

	sa->block = block;
	sa->cfg.state_addr = cpu_to_le64(block->dma);
	sa->cfg.state_len = cpu_to_le32(block->len);
	list_add_tail_rcu(&sa->block_node, &block->sas);

	return 0;
}

static void block_free_rcu(struct rcu_head *rcu)
{
	struct cordon_sa_block *block = container_of(rcu, struct cordon_sa_block, rcu);

	dma_pool_free(block->pool, block->state, block->dma);
	kfree(block);
}

static void block_put(struct cordon_sa *sa)
{
	struct cordon_sa_block *block = sa->block;

	list_del_rcu(&sa->block_node);
	if (!list_empty(&block->sas))
		return;

	hash_del(&block->node);
	call_rcu(&block->rcu, block_free_rcu);
}

/**
 * cordon_sa_block_is_shared() - does another live SA use the block too
 * @sa: SA
 *
 * Context: any.
 * Return: true if so.
 */
bool cordon_sa_block_is_shared(const struct cordon_sa *sa)
{
	const struct cordon_sa *other;
	bool shared = false;

	rcu_read_lock();
	list_for_each_entry_rcu(other, &sa->block->sas, block_node) {
		if (other != sa && !READ_ONCE(other->dead)) {
			shared = true;
			break;
		}
	}
	rcu_read_unlock();

	return shared;
}

/**
 * cordon_sa_block_mark() - note a number as received, in a block that the card doesn't have yet
 * @block: block
 * @number: sequence number
 *
 * Context: any.
 */
void cordon_sa_block_mark(struct cordon_sa_block *block, u64 number)
{
	__le64 *word = &block->state->bitmap[(number / 64) % block->words];

	*word |= cpu_to_le64(BIT_ULL(number % 64));
}

/**
 * cordon_sa_block_bits() - which of 32 numbers were received
 * @block: block
 * @number: the first of them; numbers below 1 are told as not received
 *
 * Context: any.
 * Return: bit n stands for @number + n.
 */
u32 cordon_sa_block_bits(const struct cordon_sa_block *block, u64 number)
{
	const __le64 *bitmap = block->state->bitmap;
	u64 word = number / 64;
	u32 shift = number % 64;
	u64 bits;

	bits = cordon_sa_read(&bitmap[word % block->words]) >> shift;
	if (shift > 32)
		bits |= cordon_sa_read(&bitmap[(word + 1) % block->words]) << (64 - shift);

	return lower_32_bits(bits);
}

/**
 * cordon_sa_alloc() - allocate an SA
 *
 * Context: process, may sleep.
 * Return: the SA, NULL if there is no memory.
 */
struct cordon_sa *cordon_sa_alloc(void)
{
	struct cordon_sa *sa;

	sa = kzalloc_obj(*sa);
	if (!sa)
		return NULL;

	INIT_LIST_HEAD(&sa->del_node);
	sa->stored_time = jiffies - 1;

	return sa;
}

/**
 * cordon_sa_wipe() - forget the key of an SA that is never sent to the card again
 * @sa: SA, dead or not to be found
 *
 * Readers under RCU look at flags and addresses only, and keys of live SAs only are compared.
 *
 * Context: process, under the lock of struct cordon_ipsec.
 */
void cordon_sa_wipe(struct cordon_sa *sa)
{
	memzero_explicit(sa->cfg.key, sizeof(sa->cfg.key));
	memzero_explicit(sa->cfg.auth_key, sizeof(sa->cfg.auth_key));
	memzero_explicit(sa->cfg.salt, sizeof(sa->cfg.salt));
}

/**
 * cordon_sa_free() - wipe and free an SA that the card doesn't know any more
 * @blocks: blocks
 * @sa: SA, not to be found by its handle any more
 *
 * Context: process, under the lock of struct cordon_ipsec.
 */
void cordon_sa_free(struct cordon_sa_blocks *blocks, struct cordon_sa *sa)
{
	if (sa->block)
		block_put(sa);

	cordon_sa_wipe(sa);
	kfree_rcu(sa, rcu);
}

/**
 * cordon_sa_current() - which SA stands for the packets of an SA
 * @sa: SA that the card names
 *
 * While the stack updates an SA, a copy of it is on the card for a moment and takes the packets.
 * They are the original's: its replay window counts in crypto mode, and it outlives the copy.
 *
 * Context: RCU read side.
 * Return: the oldest live SA with the same block, addresses and mode; NULL if none is left.
 */
struct cordon_sa *cordon_sa_current(struct cordon_sa *sa)
{
	struct cordon_sa *other;

	list_for_each_entry_rcu(other, &sa->block->sas, block_node) {
		if (READ_ONCE(other->dead))
			continue;
		if (other == sa)
			return sa;
		if (other->cfg.mode == sa->cfg.mode && has_same_daddr(&other->cfg, &sa->cfg))
			return other;
	}

	return NULL;
}
