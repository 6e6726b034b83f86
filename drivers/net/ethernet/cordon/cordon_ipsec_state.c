// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: IPsec offload, what changes with each packet.
 *
 * The card keeps numbers, window and counters of an SA in a block of host memory. Here they go from
 * the stack's SA into a new block, and from the block back into the stack's SA whenever someone
 * looks at it, so that dumps are exact and a copy of the SA goes on where it was. Reading a block
 * costs a few cache lines and asks nothing of the card.
 *
 * Limits and UDP ports go the other way: the stack changes them in its SA and tells no one, so a
 * work compares them once a second.
 */

#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <net/xfrm.h>

#include "cordon_ipsec.h"
#include "cordon_nexthop.h"

#define CORDON_REFRESH_PERIOD HZ

/* What software would have counted for a drop of the card; 0 if it wouldn't. */
struct drop_mibs {
	u8 in;
	u8 out;
};

#define DROP(result, in_mib, out_mib) \
	[CORDON_RESULT_##result - CORDON_SA_DROP_FIRST] = { in_mib, out_mib }

static const struct drop_mibs drop_mibs[CORDON_SA_DROP_CNT] = {
	DROP(SA_GONE, LINUX_MIB_XFRMINSTATEINVALID, LINUX_MIB_XFRMOUTSTATEINVALID),
	DROP(SA_EXPIRED, LINUX_MIB_XFRMINSTATEEXPIRED, LINUX_MIB_XFRMOUTSTATEEXPIRED),
	DROP(SA_EXHAUSTED, LINUX_MIB_XFRMINSTATESEQERROR, LINUX_MIB_XFRMOUTSTATESEQERROR),
	DROP(SA_NO_NEIGHBOUR, LINUX_MIB_XFRMINERROR, LINUX_MIB_XFRMOUTERROR),
	DROP(SA_STATE, LINUX_MIB_XFRMINERROR, LINUX_MIB_XFRMOUTERROR),
	DROP(SA_MISMATCH, LINUX_MIB_XFRMINSTATEMISMATCH, LINUX_MIB_XFRMOUTSTATEMODEERROR),
	DROP(AUTH_FAILED, LINUX_MIB_XFRMINSTATEPROTOERROR, LINUX_MIB_XFRMOUTSTATEPROTOERROR),
	DROP(REPLAY, LINUX_MIB_XFRMINSTATESEQERROR, LINUX_MIB_XFRMOUTSTATESEQERROR),
	DROP(REPLAY_WINDOW, LINUX_MIB_XFRMINSTATESEQERROR, LINUX_MIB_XFRMOUTSTATESEQERROR),
	DROP(BAD_TRAILER, LINUX_MIB_XFRMINSTATEPROTOERROR, LINUX_MIB_XFRMOUTSTATEPROTOERROR),
	DROP(BAD_MODE, LINUX_MIB_XFRMINSTATEMODEERROR, LINUX_MIB_XFRMOUTSTATEMODEERROR),
	DROP(SELECTOR, LINUX_MIB_XFRMINSTATEMISMATCH, LINUX_MIB_XFRMOUTERROR),
	DROP(POLICY_NONE, LINUX_MIB_XFRMINNOPOLS, LINUX_MIB_XFRMOUTPOLERROR),
	DROP(POLICY_TEMPLATE, LINUX_MIB_XFRMINTMPLMISMATCH, LINUX_MIB_XFRMOUTPOLERROR),
	DROP(POLICY_BLOCK, LINUX_MIB_XFRMINPOLBLOCK, LINUX_MIB_XFRMOUTPOLBLOCK),
	DROP(FRAGMENT, LINUX_MIB_XFRMINHDRERROR, LINUX_MIB_XFRMOUTERROR),
	DROP(CRYPTO, LINUX_MIB_XFRMINSTATEPROTOERROR, LINUX_MIB_XFRMOUTSTATEPROTOERROR),
};

static u64 state_number(const struct xfrm_state *x, bool out)
{
	const struct xfrm_replay_state_esn *esn = x->replay_esn;
	u64 high = 0;

	if (!esn)
		return out ? x->replay.oseq : x->replay.seq;
	if (x->props.flags & XFRM_STATE_ESN)
		high = out ? esn->oseq_hi : esn->seq_hi;

	return high << 32 | (out ? esn->oseq : esn->seq);
}

/*
 * The stack's bitmaps: without replay_esn bit n stands for the number that lies n below the
 * greatest; with it the window is a ring in which the greatest number lies at
 * (number - 1) % window.
 */
static bool state_has_number(const struct xfrm_state *x, u32 distance)
{
	const struct xfrm_replay_state_esn *esn = x->replay_esn;
	u32 bit;

	if (!esn)
		return x->replay.bitmap & BIT(distance);

	bit = (esn->seq - 1) % esn->replay_window;
	bit = bit >= distance ? bit - distance : bit + esn->replay_window - distance;

	return esn->bmp[bit / 32] & BIT(bit % 32);
}

static void load_bitmap(struct cordon_sa_block *block, const struct xfrm_state *x, u64 number)
{
	u32 window = x->replay_esn ? x->replay_esn->replay_window : x->props.replay_window;
	u32 distance;

	for (distance = 0; distance < window && distance < number; distance++)
		if (state_has_number(x, distance))
			cordon_sa_block_mark(block, number - distance);
}

/*
 * A limit of the stack counts from where the SA's counters began, one of the card from where the
 * block's did.
 */
static __le64 block_limit(u64 limit, u64 current_count, u64 accounted)
{
	s64 base = current_count - accounted;

	if (limit == XFRM_INF)
		return cpu_to_le64(~0ULL);
	if (base > 0 && limit <= base)
		return 0;

	return cpu_to_le64(limit - base);
}

static void load_limits(struct cordon_sa_block *block, const struct xfrm_state *x)
{
	const struct xfrm_lifetime_cfg *lft = &x->lft;
	const struct xfrm_lifetime_cur *cur = &x->curlft;
	struct cordon_sa_state *state = block->state;

	WRITE_ONCE(state->soft_packets,
		   block_limit(lft->soft_packet_limit, cur->packets, block->packets));
	WRITE_ONCE(state->hard_packets,
		   block_limit(lft->hard_packet_limit, cur->packets, block->packets));
	WRITE_ONCE(state->soft_bytes, block_limit(lft->soft_byte_limit, cur->bytes, block->bytes));
	WRITE_ONCE(state->hard_bytes, block_limit(lft->hard_byte_limit, cur->bytes, block->bytes));

	if (x->encap) {
		WRITE_ONCE(state->encap_sport, x->encap->encap_sport);
		WRITE_ONCE(state->encap_dport, x->encap->encap_dport);
	}
}

/**
 * cordon_ipsec_state_load() - fill a new block from the stack's SA
 * @sa: SA, the only one that uses the block; the card doesn't know it yet
 * @x: the stack's
 *
 * Context: process.
 */
void cordon_ipsec_state_load(struct cordon_sa *sa, const struct xfrm_state *x)
{
	struct cordon_sa_block *block = sa->block;
	u64 number = state_number(x, cordon_sa_is_out(sa));

	block->state->seq = cpu_to_le64(number);
	sa->stack_seq = number;
	sa->stored_seq = number;
	load_limits(block, x);
	if (!cordon_sa_is_packet(sa)) {
		/* The stack looks after the limits. */
		block->state->soft_packets = cpu_to_le64(~0ULL);
		block->state->hard_packets = cpu_to_le64(~0ULL);
		block->state->soft_bytes = cpu_to_le64(~0ULL);
		block->state->hard_bytes = cpu_to_le64(~0ULL);
	} else if (!cordon_sa_is_out(sa)) {
		load_bitmap(block, x, number);
	}
}

static u32 low_mask(u32 bits)
{
	return bits < 32 ? BIT(bits) - 1 : ~0U;
}

/* One word of the stack's ring: a part up to the greatest number, and a part from the other end. */
static u32 ring_word(const struct cordon_sa_block *block, u64 number, u32 window, u32 word)
{
	u32 last = ((u32)number - 1) % window;
	u32 first = word * 32;
	u32 end = min(first + 32, window);
	u32 bits = 0;
	u32 from;

	if (first <= last)
		bits = cordon_sa_block_bits(block, number - (last - first)) &
		       low_mask(last - first + 1);

	from = max(first, last + 1);
	if (from < end)
		bits |= (cordon_sa_block_bits(block, number - (last + window - from)) &
			 low_mask(end - from)) << (from - first);

	return bits;
}

static void store_window(const struct cordon_sa_block *block, struct xfrm_state *x, u64 number)
{
	struct xfrm_replay_state_esn *esn = x->replay_esn;
	u32 bits, bit, word;

	if (!esn) {
		/* Bit 31 of these stands for the greatest number, as bit 0 does of the stack's. */
		bits = cordon_sa_block_bits(block, number - 31);
		x->replay.bitmap = 0;
		for (bit = 0; bit < 32; bit++)
			if (bits & BIT(31 - bit))
				x->replay.bitmap |= BIT(bit);
		x->replay.seq = number;
		return;
	}

	if (esn->replay_window)
		for (word = 0; word < DIV_ROUND_UP(esn->replay_window, 32); word++)
			esn->bmp[word] = ring_word(block, number, esn->replay_window, word);
	esn->seq = number;
	if (x->props.flags & XFRM_STATE_ESN)
		esn->seq_hi = number >> 32;
}

static void store_oseq(struct xfrm_state *x, u64 number)
{
	struct xfrm_replay_state_esn *esn = x->replay_esn;

	if (!esn) {
		x->replay.oseq = number;
		return;
	}

	esn->oseq = number;
	if (x->props.flags & XFRM_STATE_ESN)
		esn->oseq_hi = number >> 32;
}

/*
 * Packet mode: bring the stack's numbers up to date. If they aren't those that were stored last,
 * the stack was given others (XFRM_MSG_NEWAE, or a copy of the SA those of the original). The card
 * takes only greater ones, for a number must not come twice, and not here, see adopt_number().
 */
static void __state_store(struct cordon_sa *sa, struct xfrm_state *x)
{
	struct cordon_sa_block *block = sa->block;
	u64 packets = cordon_sa_read(&block->state->packets);
	u64 number = cordon_sa_read(&block->state->seq);
	u64 known = state_number(x, cordon_sa_is_out(sa));

	lockdep_assert_held(&block->lock);

	if (known != sa->stack_seq && known > number)
		return;
	if (known == sa->stack_seq && number == sa->stored_seq && packets == sa->stored_packets)
		return;

	if (cordon_sa_is_out(sa))
		store_oseq(x, number);
	else
		store_window(block, x, number);
	sa->stored_seq = number;
	sa->stored_packets = packets;
	sa->stack_seq = state_number(x, cordon_sa_is_out(sa));
}

/* Where the card's ring belongs to numbers beyond the greatest, it says what the stack says. */
static void move_window(struct cordon_sa_block *block, const struct xfrm_state *x, u64 from, u64 to)
{
	u64 words = min_t(u64, to / 64 - from / 64, block->words);
	u64 i;

	for (i = 0; i < words; i++)
		WRITE_ONCE(block->state->bitmap[(to / 64 - i) % block->words], 0);
	load_bitmap(block, x, to);
}

/*
 * The stack was given a greater number: the card goes on from there. The card may be storing one of
 * its own just now, so this is repeated until the stack's is seen to be in place. The greatest
 * number rises before the window moves: what is received meanwhile may be refused for being late,
 * but nothing is accepted twice.
 */
static void adopt_number(struct cordon_sa *sa, struct xfrm_state *x)
{
	struct cordon_sa_block *block = sa->block;
	u64 number = cordon_sa_read(&block->state->seq);
	u64 known = state_number(x, cordon_sa_is_out(sa));

	lockdep_assert_held(&block->lock);

	if (!cordon_sa_is_packet(sa) || known == sa->stack_seq || known <= number)
		return;

	WRITE_ONCE(block->state->seq, cpu_to_le64(known));
	if (!cordon_sa_is_out(sa))
		move_window(block, x, number, known);
}

/**
 * cordon_ipsec_state_store() - write the numbers back into the stack's SA
 * @sa: SA
 * @x: the stack's
 *
 * Context: any but hard interrupts.
 */
void cordon_ipsec_state_store(struct cordon_sa *sa, struct xfrm_state *x)
{
	if (!cordon_sa_is_packet(sa))
		return;

	spin_lock_bh(&sa->block->lock);
	__state_store(sa, x);
	spin_unlock_bh(&sa->block->lock);
}

/* Crypto mode: would the stack's window let the number through? */
static bool is_new(const struct xfrm_state *x, u32 number)
{
	u32 window = x->replay_esn ? x->replay_esn->replay_window : x->props.replay_window;
	u32 top = x->replay_esn ? x->replay_esn->seq : x->replay.seq;
	u32 bottom = top - window + 1;

	if (!window)
		return true;

	if (!(x->props.flags & XFRM_STATE_ESN)) {
		if (number > top)
			return true;
	} else if (top >= window - 1) {
		if (number > top || number < bottom)
			return true;
	} else if (number > top && number < bottom) {
		return true;
	}

	return number && top - number < window && !state_has_number(x, top - number);
}

/**
 * cordon_ipsec_state_confirm() - crypto mode: is a packet refused for its ICV, as the stack sees it
 * @sa: inbound SA
 * @x: the stack's
 * @number: sequence number, as the packet says
 *
 * The stack looks at the number first, and counts what it finds first. And it may know of a greater
 * number than the card (XFRM_MSG_NEWAE): with ESN the card guesses another upper half then, and
 * can't verify a thing.
 *
 * Context: any but hard interrupts.
 * Return: false if the stack has to find out. The card knows its number then.
 */
bool cordon_ipsec_state_confirm(struct cordon_sa *sa, struct xfrm_state *x, u32 number)
{
	bool confirmed;
	u64 known;

	/* XFRM_MSG_NEWAE changes window and numbers under it. */
	spin_lock_bh(&x->lock);
	known = state_number(x, false);
	if (x->props.flags & XFRM_STATE_ESN && known > cordon_sa_read(&sa->block->state->seq)) {
		WRITE_ONCE(sa->block->state->seq, cpu_to_le64(known));
		confirmed = false;
	} else {
		confirmed = is_new(x, number);
	}
	spin_unlock_bh(&x->lock);

	return confirmed;
}

static void count_drops(struct cordon_sa *sa, struct xfrm_state *x)
{
	struct cordon_sa_block *block = sa->block;
	struct net *net = xs_net(x);
	bool out = cordon_sa_is_out(sa);
	unsigned int i;
	u64 now, drops;
	u8 mib;

	for (i = 0; i < CORDON_SA_DROP_CNT; i++) {
		now = cordon_sa_read(&block->state->drops[i]);
		drops = now - block->drops[i];
		if (!drops)
			continue;
		block->drops[i] = now;

		mib = out ? drop_mibs[i].out : drop_mibs[i].in;
		if (mib)
			XFRM_ADD_STATS(net, mib, drops);
		if (!out && i == CORDON_RESULT_POLICY_TEMPLATE - CORDON_SA_DROP_FIRST)
			atomic64_add(drops, &sa->ipsec->template_drops);
		else if (!out && i == CORDON_RESULT_POLICY_BLOCK - CORDON_SA_DROP_FIRST)
			atomic64_add(drops, &sa->ipsec->block_drops);
		if (i == CORDON_RESULT_AUTH_FAILED - CORDON_SA_DROP_FIRST)
			x->stats.integrity_failed += drops;
		else if (i == CORDON_RESULT_REPLAY - CORDON_SA_DROP_FIRST)
			x->stats.replay += drops;
		else if (i == CORDON_RESULT_REPLAY_WINDOW - CORDON_SA_DROP_FIRST)
			x->stats.replay_window += drops;
	}
}

static void __update_stats(struct cordon_sa *sa, struct xfrm_state *x)
{
	struct cordon_sa_block *block = sa->block;
	u64 packets, bytes;

	lockdep_assert_held(&block->lock);

	if (!cordon_sa_is_packet(sa)) {
		/*
		 * What the card couldn't decrypt it hands up, and the stack counts it. Some kernels
		 * ask for each packet: once per tick is enough.
		 */
		if (!cordon_sa_is_out(sa) || time_before_eq(jiffies, sa->stored_time))
			return;
		sa->stored_time = jiffies;
		count_drops(sa, x);
		return;
	}

	count_drops(sa, x);
	packets = cordon_sa_read(&block->state->packets);
	bytes = cordon_sa_read(&block->state->bytes);
	if (packets != block->packets)
		x->lastused = ktime_get_real_seconds();
	x->curlft.packets += packets - block->packets;
	x->curlft.bytes += bytes - block->bytes;
	block->packets = packets;
	block->bytes = bytes;
	__state_store(sa, x);
}

/**
 * cordon_ipsec_state_update_stats() - bring the stack's counters and numbers up to date
 * @sa: SA
 * @x: the stack's
 *
 * The stack calls this under one of three different locks; the block's lock keeps two callers from
 * counting the same packets.
 *
 * Context: any but hard interrupts.
 */
void cordon_ipsec_state_update_stats(struct cordon_sa *sa, struct xfrm_state *x)
{
	spin_lock_bh(&sa->block->lock);
	__update_stats(sa, x);
	spin_unlock_bh(&sa->block->lock);
}

/* Let the stack and the card tell each other what is new. */
static void refresh(struct cordon_sa *sa, struct xfrm_state *x, bool used)
{
	struct cordon_sa_block *block = sa->block;
	u32 flags;

	spin_lock_bh(&x->lock);
	if (x->km.state != XFRM_STATE_VALID)
		goto unlock;

	spin_lock(&block->lock);
	__update_stats(sa, x);
	adopt_number(sa, x);
	load_limits(block, x);
	flags = le32_to_cpu(READ_ONCE(block->state->flags));
	spin_unlock(&block->lock);

	if (!used && !(flags & CORDON_SA_STATE_USED))
		goto unlock;

	/* The time since first use may have become a limit: the timer finds out. */
	if (!READ_ONCE(x->curlft.use_time))
		hrtimer_start(&x->mtimer, ktime_set(1, 0), HRTIMER_MODE_REL_SOFT);
	if (xfrm_state_check_expire(x))
		goto unlock;

	/* No numbers are left. The key exchange can still bring a successor. */
	if ((flags & CORDON_SA_STATE_EXHAUSTED) && !x->km.dying) {
		x->km.dying = 1;
		km_state_expired(x, 0, 0);
	}

unlock:
	spin_unlock_bh(&x->lock);
}

/*
 * RCU read side. An SA that isn't dead has an owner whose memory stays until the reader is done:
 * the stack waits for readers between xdo_dev_state_delete() and freeing it.
 */
static void refresh_rcu(struct cordon_sa *sa, bool used)
{
	struct xfrm_state *x = sa->owner;

	if (READ_ONCE(sa->dead) || !cordon_sa_is_packet(sa) || cordon_sa_current(sa) != sa)
		return;
	if (!refcount_inc_not_zero(&x->refcnt))
		return;

	refresh(sa, x, used);
	xfrm_state_put(x);
}

/*
 * What came in clear and met a policy has no SA to count it. The port counts all such drops, the
 * rest of them belongs to SAs. These were asked after the port was: no packet is counted twice.
 */
static void count_clear_drops(struct cordon_ipsec *ipsec, u64 port, atomic64_t *counted, u8 mib)
{
	s64 drops = port - atomic64_read(counted);

	if (drops <= 0)
		return;

	atomic64_add(drops, counted);
	/* The device may move to another namespace, and this one end. */
	rcu_read_lock();
	XFRM_ADD_STATS(dev_net(ipsec->cdev->netdev), mib, drops);
	rcu_read_unlock();
}

/**
 * cordon_ipsec_state_refresh_work() - refresh all SAs in packet mode, and counters of policies
 * @work: refresh_work of struct cordon_ipsec
 *
 * Context: workqueue.
 */
void cordon_ipsec_state_refresh_work(struct work_struct *work)
{
	struct cordon_ipsec *ipsec = container_of(to_delayed_work(work), struct cordon_ipsec,
						  refresh_work);
	struct cordon_priv *priv = netdev_priv(ipsec->cdev->netdev);
	const u64 *drops = &priv->stats[CORDON_PORT_STAT(rx_drops)];
	u64 template_drops, block_drops;
	struct cordon_sa *sa;
	unsigned long index;

	if (atomic_read(&ipsec->policy_cnt))
		cordon_netdev_refresh_stats(priv);
	template_drops = READ_ONCE(drops[CORDON_RESULT_POLICY_TEMPLATE]);
	block_drops = READ_ONCE(drops[CORDON_RESULT_POLICY_BLOCK]);

	rcu_read_lock();
	xa_for_each(&ipsec->sas.xa, index, sa) {
		refresh_rcu(sa, false);
		if (need_resched()) {
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();

	count_clear_drops(ipsec, template_drops, &ipsec->template_drops,
			  LINUX_MIB_XFRMINTMPLMISMATCH);
	count_clear_drops(ipsec, block_drops, &ipsec->block_drops, LINUX_MIB_XFRMINPOLBLOCK);

	if (atomic_read(&ipsec->packet_cnt) || atomic_read(&ipsec->policy_cnt))
		queue_delayed_work(ipsec->wq, &ipsec->refresh_work, CORDON_REFRESH_PERIOD);
}

/**
 * cordon_ipsec_event() - act upon an event of the card
 * @cdev: device
 * @type: enum cordon_event_type
 * @handle: SA
 * @value: not used
 *
 * Context: process.
 */
void cordon_ipsec_event(struct cordon_dev *cdev, u16 type, u32 handle, u64 value)
{
	struct cordon_ipsec *ipsec = cdev->ipsec;
	struct cordon_sa *sa;

	if (!ipsec)
		return;

	if (type == CORDON_EVENT_SA_NEIGHBOUR) {
		cordon_nexthop_kick(ipsec);
		return;
	}

	/* Whatever it is, the block tells; the event says that it's worth looking now. */
	rcu_read_lock();
	sa = cordon_handles_find(&ipsec->sas, handle);
	if (sa && sa->handle == handle)
		sa = cordon_sa_current(sa);
	else
		sa = NULL;
	if (sa)
		refresh_rcu(sa, type == CORDON_EVENT_SA_FIRST_USE);
	rcu_read_unlock();
}

/**
 * cordon_ipsec_events_lost() - look at everything that events tell
 * @cdev: device
 *
 * Context: process.
 */
void cordon_ipsec_events_lost(struct cordon_dev *cdev)
{
	struct cordon_ipsec *ipsec = cdev->ipsec;

	if (!ipsec)
		return;

	mod_delayed_work(ipsec->wq, &ipsec->refresh_work, 0);
	cordon_nexthop_kick(ipsec);
}
