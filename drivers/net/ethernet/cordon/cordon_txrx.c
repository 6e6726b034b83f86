// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: the data path.
 *
 * The driver keeps what it needs of each slot in memory of its own: nothing that the card can write
 * is used as an address or a length before it was checked, and then only a copy is used.
 */

#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/netdev_queues.h>
#include <net/page_pool/helpers.h>
#include <net/tcp.h>
#include <net/udp.h>

#include "cordon_hw.h"
#include "cordon_ipsec.h"
#include "cordon_txrx.h"

#define CORDON_RX_FLAGS (CORDON_RX_MORE | CORDON_RX_VLAN | CORDON_RX_CSUM_GOOD | \
			 CORDON_RX_SA_CRYPTO | CORDON_RX_SA_PACKET)
#define CORDON_RX_SA (CORDON_RX_SA_CRYPTO | CORDON_RX_SA_PACKET)

static u32 tx_mask(const struct cordon_tx_ring *tx)
{
	return (1u << tx->log2) - 1;
}

static u32 rx_mask(const struct cordon_rx_ring *rx)
{
	return (1u << rx->log2) - 1;
}

static u32 tx_room(const struct cordon_tx_ring *tx)
{
	return (1u << tx->log2) - (tx->prod - READ_ONCE(tx->cons));
}

static void unmap_slots(struct cordon_queue_pair *qp, struct cordon_tx_ring *tx, u32 slot,
			unsigned int slots)
{
	struct cordon_tx_buf *head = &tx->bufs[slot & tx_mask(tx)];
	struct device *dev = qp->cdev->dev;
	unsigned int i, j;

	dma_unmap_single(dev, head->dma[0], head->len[0], DMA_TO_DEVICE);
	for (i = 1; i < slots; i++) {
		struct cordon_tx_buf *buf = &tx->bufs[(slot + i) & tx_mask(tx)];

		for (j = 0; j < 2; j++)
			if (buf->len[j])
				dma_unmap_page(dev, buf->dma[j], buf->len[j], DMA_TO_DEVICE);
	}
}

/* Map the packet's memory and write it into the slots, beginning with @slot. */
static int map_packet(struct cordon_queue_pair *qp, struct sk_buff *skb, u32 slot,
		      unsigned int slots, bool ext)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	struct cordon_tx_ring *tx = qp->tx;
	struct cordon_tx_buf *buf = &tx->bufs[slot & tx_mask(tx)];
	struct device *dev = qp->cdev->dev;
	unsigned int i, j, frag = 0;

	buf->len[0] = skb_headlen(skb);
	buf->len[1] = 0;
	buf->dma[0] = dma_map_single(dev, skb->data, buf->len[0], DMA_TO_DEVICE);
	if (dma_mapping_error(dev, buf->dma[0]))
		return -ENOMEM;

	for (i = 1; i < slots; i++) {
		struct cordon_tx_segs *segs = &tx->slots[(slot + i) & tx_mask(tx)].segs;

		buf = &tx->bufs[(slot + i) & tx_mask(tx)];
		buf->len[0] = 0;
		buf->len[1] = 0;
		if (ext && i == 1)
			continue;
		memset(segs, 0, sizeof(*segs));
		for (j = 0; j < 2 && frag < info->nr_frags; j++, frag++) {
			skb_frag_t *f = &info->frags[frag];

			buf->dma[j] = skb_frag_dma_map(dev, f, 0, skb_frag_size(f), DMA_TO_DEVICE);
			if (dma_mapping_error(dev, buf->dma[j]))
				goto err_unmap;
			buf->len[j] = skb_frag_size(f);
			segs->addr[j] = cpu_to_le64(buf->dma[j]);
			segs->len[j] = cpu_to_le32(buf->len[j]);
		}
	}
	return 0;

err_unmap:
	unmap_slots(qp, tx, slot, i + 1);
	return -ENOMEM;
}

/* Everything of the first slot that segmentation needs, and what becomes of the packet. */
static void fill_segmentation(struct cordon_tx_desc *desc, struct cordon_tx_buf *head,
			      const struct sk_buff *skb, u16 *flags)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 header_len;

	if (info->gso_type & SKB_GSO_UDP_L4)
		header_len = skb_transport_offset(skb) + sizeof(struct udphdr);
	else
		header_len = skb_tcp_all_headers(skb);
	desc->mss = cpu_to_le16(info->gso_size);
	desc->header_len = cpu_to_le16(header_len);
	*flags |= CORDON_TX_SEGMENT;
	if (info->gso_type & SKB_GSO_TCP_FIXEDID)
		*flags |= CORDON_TX_FIXED_ID;
	head->packets = DIV_ROUND_UP(skb->len - header_len, info->gso_size);
	head->wire_bytes = skb->len + (head->packets - 1) * header_len;
}

/* Write the first slot, and the second one if it is an extension. */
static void fill_desc(struct cordon_queue_pair *qp, struct sk_buff *skb, u32 slot, u8 slots,
		      const struct cordon_tx_accel *accel)
{
	struct cordon_tx_ring *tx = qp->tx;
	struct cordon_tx_buf *head = &tx->bufs[slot & tx_mask(tx)];
	struct cordon_tx_desc *desc = &tx->slots[slot & tx_mask(tx)].desc;
	struct cordon_xmit_stats *stats = &qp->xmit_stats;
	u16 flags = accel->flags;

	memset(desc, 0, sizeof(*desc));
	head->skb = skb;
	head->bytes = skb->len;
	head->wire_bytes = skb->len;
	head->packets = 1;
	head->slots = slots;

	if (skb_is_gso(skb))
		fill_segmentation(desc, head, skb, &flags);
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		desc->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
		desc->csum_offset = cpu_to_le16(skb->csum_offset);
		flags |= CORDON_TX_CSUM;
		u64_stats_inc(&stats->csum);
	} else {
		u64_stats_inc(&stats->csum_none);
	}
	if (skb_vlan_tag_present(skb)) {
		desc->vlan_tci = cpu_to_le16(skb_vlan_tag_get(skb));
		flags |= CORDON_TX_VLAN;
	}
	if (flags & CORDON_TX_EXT) {
		struct cordon_tx_ext *ext = &tx->slots[(slot + 1) & tx_mask(tx)].ext;

		memset(ext, 0, sizeof(*ext));
		ext->seq = cpu_to_le64(accel->seq);
		ext->esp_offset = cpu_to_le16(accel->esp_offset);
	}

	desc->addr = cpu_to_le64(head->dma[0]);
	desc->len = cpu_to_le32(head->len[0]);
	desc->sa = cpu_to_le32(accel->sa);
	desc->l3_offset = cpu_to_le16(accel->l3_offset);
	desc->flags = cpu_to_le16(flags);
	desc->slots = slots;
	desc->segments = 1 + skb_shinfo(skb)->nr_frags;
}

static void ring_doorbell(struct cordon_queue_pair *qp)
{
	struct cordon_tx_ring *tx = qp->tx;

	if (tx->rung == tx->prod)
		return;
	cordon_hw_ring(qp->cdev, qp->line, tx->rung, tx->prod);
	tx->rung = tx->prod;
	u64_stats_inc(&qp->xmit_stats.kicks);
}

static bool has_few_segments(struct sk_buff *skb)
{
	return skb_shinfo(skb)->nr_frags < CORDON_TX_SEGMENTS_MAX || !skb_linearize(skb);
}

/* Stop the stack's queue if there is too little room. 0 if it is stopped now. */
static int maybe_stop(struct cordon_queue_pair *qp)
{
	struct cordon_tx_ring *tx = qp->tx;
	int going;

	going = netif_txq_maybe_stop(tx->txq, tx_room(tx), CORDON_TX_SLOTS_MAX, CORDON_TX_WAKE);
	if (!going)
		u64_stats_inc(&qp->xmit_stats.stop);
	return going;
}

/**
 * cordon_txrx_xmit() - send a packet
 * @skb: packet
 * @netdev: network device
 *
 * Context: the stack's TX lock is held.
 * Return: NETDEV_TX_OK, or NETDEV_TX_BUSY if there is no room, which only a race can bring about.
 */
netdev_tx_t cordon_txrx_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct cordon_priv *priv = netdev_priv(netdev);
	struct cordon_queue_pair *qp = &priv->qps[skb_get_queue_mapping(skb)];
	struct cordon_tx_ring *tx = qp->tx;
	struct cordon_tx_accel accel = {};
	unsigned int slots, len;
	bool ext, ring;

	u64_stats_update_begin(&qp->xmit_stats.syncp);
	if (unlikely(tx_room(tx) < CORDON_TX_SLOTS_MAX)) {
		ring_doorbell(qp);
		/* It looks for room again after it has stopped the queue. */
		if (!maybe_stop(qp)) {
			u64_stats_update_end(&qp->xmit_stats.syncp);
			return NETDEV_TX_BUSY;
		}
	}

	if (unlikely(skb->len > CORDON_TX_LENGTH_MAX || !has_few_segments(skb)))
		goto drop;
	if (!cordon_ipsec_tx(qp->cdev, skb, &accel))
		goto drop;

	ext = accel.flags & CORDON_TX_EXT;
	slots = 1 + ext + DIV_ROUND_UP(skb_shinfo(skb)->nr_frags, 2);
	if (unlikely(map_packet(qp, skb, tx->prod, slots, ext)))
		goto drop;
	fill_desc(qp, skb, tx->prod, slots, &accel);
	len = skb->len;
	skb_tx_timestamp(skb);

	/*
	 * BQL must know of the packet before NAPI takes a completion of it, which the card could
	 * write at any time.
	 */
	ring = __netdev_tx_sent_queue(tx->txq, len, netdev_xmit_more());
	/*
	 * From here on NAPI may free the packet; pairs with the acquire in
	 * is_tx_completion_sane().
	 */
	smp_store_release(&tx->prod, tx->prod + slots);
	if (!maybe_stop(qp) || ring)
		ring_doorbell(qp);
	u64_stats_update_end(&qp->xmit_stats.syncp);
	return NETDEV_TX_OK;

drop:
	u64_stats_inc(&qp->xmit_stats.dropped);
	if (!netdev_xmit_more())
		ring_doorbell(qp);
	u64_stats_update_end(&qp->xmit_stats.syncp);
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static void count_sent(struct cordon_tx_stats *stats, const struct cordon_tx_buf *head)
{
	u64_stats_add(&stats->packets, head->packets);
	u64_stats_add(&stats->bytes, head->wire_bytes);
	if (head->packets > 1) {
		u64_stats_inc(&stats->gso_packets);
		u64_stats_add(&stats->gso_bytes, head->bytes);
		u64_stats_add(&stats->gso_wire_packets, head->packets);
		u64_stats_add(&stats->gso_wire_bytes, head->wire_bytes);
	}
}

/* Does the completion tell of the oldest packet under way? */
static bool is_tx_completion_sane(const struct cordon_tx_ring *tx,
				  const struct cordon_tx_completion *cqe)
{
	/* Pairs with the release in cordon_txrx_xmit(). */
	return tx->cons != smp_load_acquire(&tx->prod) && le32_to_cpu(cqe->slot) == tx->cons &&
	       le16_to_cpu(cqe->result) < CORDON_RESULT_CNT && !cqe->reserved &&
	       !(le32_to_cpu(cqe->valid) & ~CORDON_COMPLETION_VALID);
}

/* Take TX completions. False if one is nonsense. */
static bool clean_tx(struct cordon_queue_pair *qp, int budget)
{
	struct cordon_tx_stats *stats = &qp->tx_stats;
	struct cordon_tx_ring *tx = qp->tx;
	unsigned int packets = 0, bytes = 0;
	struct cordon_tx_completion cqe;
	struct cordon_tx_buf *head;
	bool sane = true;

	u64_stats_update_begin(&stats->syncp);
	while (cordon_ring_copy(&cqe, tx->cq, sizeof(cqe), tx->log2, tx->cq_cons)) {
		if (unlikely(!is_tx_completion_sane(tx, &cqe))) {
			sane = false;
			break;
		}
		tx->cq_cons++;
		head = &tx->bufs[tx->cons & tx_mask(tx)];
		if (likely(le16_to_cpu(cqe.result) == CORDON_RESULT_OK))
			count_sent(stats, head);
		else
			u64_stats_inc(&stats->drops[le16_to_cpu(cqe.result)]);
		packets++;
		bytes += head->bytes;
		unmap_slots(qp, tx, tx->cons, head->slots);
		napi_consume_skb(head->skb, budget);
		head->skb = NULL;
		WRITE_ONCE(tx->cons, tx->cons + head->slots);
	}
	if (!netif_txq_completed_wake(tx->txq, packets, bytes, tx_room(tx), CORDON_TX_WAKE))
		u64_stats_inc(&stats->wake);
	u64_stats_update_end(&stats->syncp);
	return sane;
}

/* Post buffers. False if there was no memory for one. */
static bool refill(struct cordon_queue_pair *qp, struct cordon_rx_ring *rx)
{
	u32 room = (1u << rx->log2) - (rx->prod - rx->cons);
	struct cordon_rx_desc *desc;
	struct page *page;

	for (; room; room--) {
		page = page_pool_dev_alloc_pages(rx->pool);
		if (unlikely(!page)) {
			u64_stats_update_begin(&qp->rx_stats.syncp);
			u64_stats_inc(&qp->rx_stats.alloc_fail);
			u64_stats_update_end(&qp->rx_stats.syncp);
			break;
		}
		rx->pages[rx->prod & rx_mask(rx)] = page;
		desc = &rx->desc[rx->prod & rx_mask(rx)];
		desc->addr = cpu_to_le64(page_pool_get_dma_addr(page) + CORDON_RX_HEADROOM);
		desc->len = cpu_to_le32(CORDON_RX_BUFFER_LEN);
		desc->reserved = 0;
		rx->prod++;
	}
	return !room;
}

static bool is_rx_completion_sane(const struct cordon_rx_ring *rx,
				  const struct cordon_rx_completion *cqe)
{
	u32 len = le32_to_cpu(cqe->len);
	u32 flags = le32_to_cpu(cqe->flags);

	if (rx->cons == rx->prod || le32_to_cpu(cqe->buffer) != rx->cons || !len ||
	    len > CORDON_RX_BUFFER_LEN || cqe->reserved || flags & ~CORDON_RX_FLAGS ||
	    le32_to_cpu(cqe->valid) & ~CORDON_COMPLETION_VALID)
		return false;
	/* Buffers are filled, or a packet could take any number of them. */
	if (flags & CORDON_RX_MORE && len != CORDON_RX_BUFFER_LEN)
		return false;
	/* The Ethernet header is in the first buffer, and a packet isn't longer than IP allows. */
	if (!rx->skb)
		return rx->dropping || len >= ETH_HLEN;
	return len <= CORDON_RX_PACKET_MAX - rx->skb->len;
}

/* Begin an skb with the page of a packet's first buffer. */
static struct sk_buff *begin_skb(struct cordon_rx_ring *rx, struct page *page, u32 len)
{
	struct sk_buff *skb;

	net_prefetch(page_address(page) + CORDON_RX_HEADROOM);
	skb = napi_build_skb(page_address(page), PAGE_SIZE);
	if (unlikely(!skb)) {
		page_pool_put_full_page(rx->pool, page, true);
		return NULL;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, CORDON_RX_HEADROOM);
	skb_put(skb, len);
	return skb;
}

/*
 * Add a buffer to the packet under way. An skb has frags for a frame of any MTU, but not for the
 * longest packet that the card put together of fragments: the rest of it gets skbs of its own.
 */
static void add_buffer(struct cordon_rx_ring *rx, struct page *page, u32 len)
{
	struct skb_shared_info *info = skb_shinfo(rx->skb);
	struct sk_buff *rest;

	if (likely(info->nr_frags < MAX_SKB_FRAGS)) {
		skb_add_rx_frag(rx->skb, info->nr_frags, page, CORDON_RX_HEADROOM, len, PAGE_SIZE);
		return;
	}
	rest = begin_skb(rx, page, len);
	if (unlikely(!rest)) {
		dev_kfree_skb_any(rx->skb);
		rx->skb = NULL;
		return;
	}
	if (rx->last)
		rx->last->next = rest;
	else
		info->frag_list = rest;
	rx->last = rest;
	rx->skb->len += len;
	rx->skb->data_len += len;
	rx->skb->truesize += rest->truesize;
}

static void set_hash(struct sk_buff *skb, const struct cordon_rx_completion *first)
{
	switch (first->hash_type) {
	case CORDON_HASH_L3:
		skb_set_hash(skb, le32_to_cpu(first->hash), PKT_HASH_TYPE_L3);
		break;
	case CORDON_HASH_L4:
	case CORDON_HASH_SPI:
		skb_set_hash(skb, le32_to_cpu(first->hash), PKT_HASH_TYPE_L4);
		break;
	default:
		break;
	}
}

/* Give a whole packet to the stack. */
static void deliver(struct cordon_queue_pair *qp, struct sk_buff *skb,
		    const struct cordon_rx_completion *first)
{
	u32 flags = le32_to_cpu(first->flags);
	struct cordon_rx_stats *stats = &qp->rx_stats;

	u64_stats_inc(&stats->packets);
	u64_stats_add(&stats->bytes, skb->len);

	skb_record_rx_queue(skb, qp->index);
	if (qp->netdev->features & NETIF_F_RXHASH)
		set_hash(skb, first);
	if (flags & CORDON_RX_VLAN)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), le16_to_cpu(first->vlan_tci));
	if (flags & CORDON_RX_CSUM_GOOD && qp->netdev->features & NETIF_F_RXCSUM) {
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		u64_stats_inc(&stats->csum_good);
	} else {
		skb_checksum_none_assert(skb);
		u64_stats_inc(&stats->csum_none);
	}
	skb->protocol = eth_type_trans(skb, qp->netdev);
	if (flags & CORDON_RX_SA &&
	    !cordon_ipsec_rx(qp->cdev, skb, le32_to_cpu(first->sa), flags, first->result)) {
		u64_stats_inc(&stats->dropped);
		dev_kfree_skb_any(skb);
		return;
	}
	napi_gro_receive(&qp->napi, skb);
}

/* Take one buffer that the card has filled. True if a packet was complete with it. */
static bool take_buffer(struct cordon_queue_pair *qp, const struct cordon_rx_completion *cqe)
{
	struct cordon_rx_ring *rx = qp->rx;
	struct page *page = rx->pages[rx->cons & rx_mask(rx)];
	bool more = le32_to_cpu(cqe->flags) & CORDON_RX_MORE;
	u32 len = le32_to_cpu(cqe->len);

	rx->pages[rx->cons & rx_mask(rx)] = NULL;
	rx->cons++;
	dma_sync_single_range_for_cpu(qp->cdev->dev, page_pool_get_dma_addr(page),
				      CORDON_RX_HEADROOM, len, DMA_FROM_DEVICE);
	if (rx->dropping) {
		page_pool_put_full_page(rx->pool, page, true);
	} else {
		if (rx->skb) {
			add_buffer(rx, page, len);
		} else {
			rx->skb = begin_skb(rx, page, len);
			rx->last = NULL;
			rx->first = *cqe;
		}
		if (unlikely(!rx->skb)) {
			rx->dropping = true;
			u64_stats_inc(&qp->rx_stats.alloc_fail);
			u64_stats_inc(&qp->rx_stats.dropped);
		}
	}
	if (more)
		return false;
	if (rx->skb)
		deliver(qp, rx->skb, &rx->first);
	rx->skb = NULL;
	rx->dropping = false;
	return true;
}

/* Take RX completions. False if one is nonsense. */
static bool clean_rx(struct cordon_queue_pair *qp, int budget, int *done)
{
	struct cordon_rx_ring *rx = qp->rx;
	struct cordon_rx_completion cqe;
	bool sane = true;

	u64_stats_update_begin(&qp->rx_stats.syncp);
	while (*done < budget &&
	       cordon_ring_copy(&cqe, rx->cq, sizeof(cqe), rx->log2, rx->cons)) {
		if (unlikely(!is_rx_completion_sane(rx, &cqe))) {
			sane = false;
			break;
		}
		*done += take_buffer(qp, &cqe);
	}
	u64_stats_update_end(&qp->rx_stats.syncp);
	return sane;
}

/* Are there completions at these consumer indices? */
static bool is_completion_waiting(const struct cordon_tx_ring *tx, u32 tx_cons,
				  const struct cordon_rx_ring *rx, u32 rx_cons)
{
	struct cordon_tx_completion tx_cqe;
	struct cordon_rx_completion rx_cqe;

	return cordon_ring_copy(&tx_cqe, tx->cq, sizeof(tx_cqe), tx->log2, tx_cons) ||
	       cordon_ring_copy(&rx_cqe, rx->cq, sizeof(rx_cqe), rx->log2, rx_cons);
}

/* Too few buffers for a frame of any length: the card may drop them all and never interrupt. */
static bool is_starved(const struct cordon_queue_pair *qp, const struct cordon_rx_ring *rx)
{
	u32 frame = READ_ONCE(qp->netdev->mtu) + VLAN_ETH_HLEN;

	return rx->prod - rx->cons < DIV_ROUND_UP(frame, CORDON_RX_BUFFER_LEN);
}

/**
 * cordon_txrx_poll() - NAPI's poll function
 * @napi: of a queue pair
 * @budget: most packets to receive
 *
 * After nonsense from the card the queue pair stays as it is until the reset.
 *
 * Context: softirq or NAPI thread.
 * Return: packets received, or @budget to be called again.
 */
int cordon_txrx_poll(struct napi_struct *napi, int budget)
{
	struct cordon_queue_pair *qp = container_of(napi, struct cordon_queue_pair, napi);
	struct cordon_tx_ring *tx = qp->tx;
	struct cordon_rx_ring *rx = qp->rx;
	u32 tx_cons, rx_cons, arm;
	bool sane, full = true;
	int done = 0;

	sane = clean_tx(qp, budget);
	/* netpoll, maybe with interrupts off: TX only. */
	if (!budget)
		return 0;
	sane = sane && clean_rx(qp, budget, &done);
	if (unlikely(!sane)) {
		cordon_nonsense(qp->cdev, "completion of a packet that isn't under way");
		napi_complete_done(napi, min(done, budget - 1));
		return min(done, budget - 1);
	}
	if ((1u << rx->log2) - (rx->prod - rx->cons) >= CORDON_RX_BATCH) {
		full = refill(qp, rx);
		cordon_hw_set_rx_prod(qp->cdev, qp->line, rx->prod);
	}
	if (done == budget || (unlikely(!full) && is_starved(qp, rx)))
		return budget;

	/* Once NAPI's turn has ended, another poll may move the indices. */
	tx_cons = tx->cq_cons;
	rx_cons = rx->cons;
	arm = ++qp->arm;
	if (napi_complete_done(napi, done)) {
		cordon_hw_arm(qp->cdev, qp->line, tx_cons, rx_cons, arm);
		if (is_completion_waiting(tx, tx_cons, rx, rx_cons))
			napi_schedule(napi);
	}
	return done;
}

static void free_tx_ring(struct cordon_queue_pair *qp, struct cordon_tx_ring *tx)
{
	struct device *dev = qp->cdev->dev;

	if (tx->cq)
		dma_free_coherent(dev, sizeof(*tx->cq) << tx->log2, tx->cq, tx->cq_dma);
	if (tx->slots)
		dma_free_coherent(dev, sizeof(*tx->slots) << tx->log2, tx->slots, tx->slots_dma);
	kvfree(tx->bufs);
	kfree(tx);
}

/**
 * cordon_txrx_alloc_tx() - allocate TX rings
 * @qp: queue pair that they are for
 * @log2: log2 of the entries
 *
 * Context: process context.
 * Return: the rings, NULL without memory.
 */
struct cordon_tx_ring *cordon_txrx_alloc_tx(struct cordon_queue_pair *qp, u8 log2)
{
	struct device *dev = qp->cdev->dev;
	struct cordon_tx_ring *tx;

	tx = kzalloc_obj(*tx, GFP_KERNEL);
	if (!tx)
		return NULL;
	tx->log2 = log2;
	tx->txq = netdev_get_tx_queue(qp->netdev, qp->index);
	tx->bufs = kvcalloc(1u << log2, sizeof(*tx->bufs), GFP_KERNEL);
	tx->slots = dma_alloc_coherent(dev, sizeof(*tx->slots) << log2, &tx->slots_dma, GFP_KERNEL);
	tx->cq = dma_alloc_coherent(dev, sizeof(*tx->cq) << log2, &tx->cq_dma, GFP_KERNEL);
	if (!tx->bufs || !tx->slots || !tx->cq) {
		free_tx_ring(qp, tx);
		return NULL;
	}
	return tx;
}

/**
 * cordon_txrx_rewind_tx() - bring TX rings into the state that the card expects of new ones
 * @qp: queue pair
 * @tx: rings that the card doesn't use; packets in them are dropped
 *
 * Context: process context, no NAPI and no TX.
 */
void cordon_txrx_rewind_tx(struct cordon_queue_pair *qp, struct cordon_tx_ring *tx)
{
	struct cordon_tx_buf *head;

	u64_stats_update_begin(&qp->tx_stats.syncp);
	while (tx->cons != tx->prod) {
		head = &tx->bufs[tx->cons & tx_mask(tx)];
		unmap_slots(qp, tx, tx->cons, head->slots);
		dev_kfree_skb(head->skb);
		head->skb = NULL;
		tx->cons += head->slots;
		u64_stats_inc(&qp->tx_stats.drops[CORDON_RESULT_STOPPED]);
	}
	u64_stats_update_end(&qp->tx_stats.syncp);
	tx->prod = 0;
	tx->rung = 0;
	tx->cons = 0;
	tx->cq_cons = 0;
	memset(tx->cq, 0, sizeof(*tx->cq) << tx->log2);
}

/**
 * cordon_txrx_free_tx() - free TX rings
 * @qp: queue pair
 * @tx: rings that the card doesn't use; may be NULL
 *
 * Context: process context, no NAPI and no TX.
 */
void cordon_txrx_free_tx(struct cordon_queue_pair *qp, struct cordon_tx_ring *tx)
{
	if (!tx)
		return;
	cordon_txrx_rewind_tx(qp, tx);
	free_tx_ring(qp, tx);
}

static struct page_pool *create_pool(struct cordon_queue_pair *qp, u8 log2)
{
	struct page_pool_params params = {
		.order = 0,
		.pool_size = min(1u << log2, 8192u),
		.nid = NUMA_NO_NODE,
		.dev = qp->cdev->dev,
		.netdev = qp->netdev,
		.queue_idx = qp->index,
		.dma_dir = DMA_FROM_DEVICE,
		.offset = CORDON_RX_HEADROOM,
		.max_len = CORDON_RX_BUFFER_LEN,
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
	};

	return page_pool_create(&params);
}

static void free_rx_ring(struct cordon_queue_pair *qp, struct cordon_rx_ring *rx)
{
	struct device *dev = qp->cdev->dev;

	if (rx->pool)
		page_pool_destroy(rx->pool);
	if (rx->cq)
		dma_free_coherent(dev, sizeof(*rx->cq) << rx->log2, rx->cq, rx->cq_dma);
	if (rx->desc)
		dma_free_coherent(dev, sizeof(*rx->desc) << rx->log2, rx->desc, rx->desc_dma);
	kvfree(rx->pages);
	kfree(rx);
}

/**
 * cordon_txrx_alloc_rx() - allocate RX rings and fill them with buffers
 * @qp: queue pair that they are for
 * @log2: log2 of the entries
 *
 * Context: process context.
 * Return: the rings, NULL without memory.
 */
struct cordon_rx_ring *cordon_txrx_alloc_rx(struct cordon_queue_pair *qp, u8 log2)
{
	struct device *dev = qp->cdev->dev;
	struct cordon_rx_ring *rx;

	rx = kzalloc_obj(*rx, GFP_KERNEL);
	if (!rx)
		return NULL;
	rx->log2 = log2;
	rx->pages = kvcalloc(1u << log2, sizeof(*rx->pages), GFP_KERNEL);
	rx->desc = dma_alloc_coherent(dev, sizeof(*rx->desc) << log2, &rx->desc_dma, GFP_KERNEL);
	rx->cq = dma_alloc_coherent(dev, sizeof(*rx->cq) << log2, &rx->cq_dma, GFP_KERNEL);
	if (!rx->pages || !rx->desc || !rx->cq)
		goto err_free_ring;
	rx->pool = create_pool(qp, log2);
	if (IS_ERR(rx->pool)) {
		rx->pool = NULL;
		goto err_free_ring;
	}
	if (!refill(qp, rx)) {
		cordon_txrx_free_rx(qp, rx);
		return NULL;
	}
	return rx;

err_free_ring:
	free_rx_ring(qp, rx);
	return NULL;
}

static void drop_buffers(struct cordon_rx_ring *rx)
{
	if (rx->skb)
		dev_kfree_skb(rx->skb);
	rx->skb = NULL;
	rx->dropping = false;
	for (; rx->cons != rx->prod; rx->cons++)
		page_pool_put_full_page(rx->pool, rx->pages[rx->cons & rx_mask(rx)], false);
	rx->prod = 0;
	rx->cons = 0;
}

/**
 * cordon_txrx_rewind_rx() - bring RX rings into the state that the card expects of new ones
 * @qp: queue pair
 * @rx: rings that the card doesn't use; they come out as full as memory allows
 *
 * Context: process context, no NAPI.
 */
void cordon_txrx_rewind_rx(struct cordon_queue_pair *qp, struct cordon_rx_ring *rx)
{
	drop_buffers(rx);
	memset(rx->cq, 0, sizeof(*rx->cq) << rx->log2);
	refill(qp, rx);
}

/**
 * cordon_txrx_free_rx() - free RX rings
 * @qp: queue pair
 * @rx: rings that the card doesn't use; may be NULL
 *
 * Context: process context, no NAPI.
 */
void cordon_txrx_free_rx(struct cordon_queue_pair *qp, struct cordon_rx_ring *rx)
{
	if (!rx)
		return;
	drop_buffers(rx);
	free_rx_ring(qp, rx);
}
