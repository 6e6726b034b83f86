/* SPDX-License-Identifier: GPL-2.0-only */
/* Cordon: rings of a queue pair, and the data path. */
#ifndef CORDON_TXRX_H
#define CORDON_TXRX_H

#include <linux/netdevice.h>
#include <linux/u64_stats_sync.h>
#include <net/page_pool/types.h>

#include "cordon.h"

/* Before each received packet, for XDP and for headers that are pushed. */
#define CORDON_RX_HEADROOM 256
/* What is left of a page: the card writes so much into a buffer. */
#define CORDON_RX_BUFFER_LEN \
	(PAGE_SIZE - CORDON_RX_HEADROOM - SKB_DATA_ALIGN(sizeof(struct skb_shared_info)))
/* The longest IPv6 packet, Ethernet header, tags as many as the card looks behind. */
#define CORDON_RX_PACKET_MAX (65535 + 40 + 14 + 32)
/* Buffers are posted in such batches. */
#define CORDON_RX_BATCH 16

/* A stopped queue is woken when there is room for two packets of any kind. */
#define CORDON_TX_WAKE (2 * CORDON_TX_SLOTS_MAX)

/**
 * union cordon_tx_slot - an entry of the TX ring
 * @desc: first slot of a packet
 * @ext: second slot, if CORDON_TX_EXT is set
 * @segs: further slots
 */
union cordon_tx_slot {
	struct cordon_tx_desc desc;
	struct cordon_tx_ext ext;
	struct cordon_tx_segs segs;
};

/**
 * struct cordon_tx_buf - what the driver knows about a TX slot
 * @skb: of a packet's first slot: the packet
 * @bytes: of a packet's first slot: its length, for BQL
 * @wire_bytes: of a packet's first slot: bytes of all frames that it becomes
 * @packets: of a packet's first slot: frames that it becomes
 * @slots: of a packet's first slot: its slots
 * @dma: memory that was mapped for the slot
 * @len: length of it, 0 = none
 */
struct cordon_tx_buf {
	struct sk_buff *skb;
	u32 bytes;
	u32 wire_bytes;
	u16 packets;
	u8 slots;
	dma_addr_t dma[2];
	u32 len[2];
};

/**
 * struct cordon_tx_ring - TX slots and completions
 * @slots: slots, read by the card
 * @cq: completions, written by the card
 * @bufs: driver's side of @slots
 * @txq: the stack's queue
 * @slots_dma: bus address of @slots
 * @cq_dma: bus address of @cq
 * @log2: log2 of the entries of each
 * @prod: producer index of @slots; written under the TX lock
 * @rung: producer index that the card knows; under the TX lock
 * @cons: consumer index of @slots; written by NAPI
 * @cq_cons: consumer index of @cq; of NAPI
 */
struct cordon_tx_ring {
	union cordon_tx_slot *slots;
	struct cordon_tx_completion *cq;
	struct cordon_tx_buf *bufs;
	struct netdev_queue *txq;
	dma_addr_t slots_dma;
	dma_addr_t cq_dma;
	u8 log2;

	u32 prod ____cacheline_aligned_in_smp;
	u32 rung;

	u32 cons ____cacheline_aligned_in_smp;
	u32 cq_cons;
};

/**
 * struct cordon_rx_ring - RX buffers and completions; all of it is NAPI's
 * @desc: buffers, read by the card
 * @cq: completions, written by the card
 * @pages: pages behind @desc
 * @pool: where they come from
 * @skb: packet of which more buffers come
 * @last: last skb of those that hold the rest of @skb
 * @first: first completion of @skb
 * @prod: producer index of @desc
 * @cons: consumer index of @desc and @cq, which go together
 * @log2: log2 of the entries of each
 * @dropping: the rest of the packet under way is thrown away
 * @desc_dma: bus address of @desc
 * @cq_dma: bus address of @cq
 */
struct cordon_rx_ring {
	struct cordon_rx_desc *desc;
	struct cordon_rx_completion *cq;
	struct page **pages;
	struct page_pool *pool;
	struct sk_buff *skb;
	struct sk_buff *last;
	struct cordon_rx_completion first;
	u32 prod;
	u32 cons;
	u8 log2;
	bool dropping;
	dma_addr_t desc_dma;
	dma_addr_t cq_dma;
};

/**
 * struct cordon_tx_stats - counters of a TX queue; they survive the rings
 * @syncp: for readers on 32-bit machines; the writer is NAPI
 * @packets: frames that left
 * @bytes: bytes of them
 * @gso_packets: packets that the card segmented
 * @gso_bytes: bytes of them
 * @gso_wire_packets: frames that they became
 * @gso_wire_bytes: bytes of those
 * @wake: times that the queue was woken
 * @drops: packets that the card dropped, by enum cordon_result
 */
struct cordon_tx_stats {
	struct u64_stats_sync syncp;
	u64_stats_t packets;
	u64_stats_t bytes;
	u64_stats_t gso_packets;
	u64_stats_t gso_bytes;
	u64_stats_t gso_wire_packets;
	u64_stats_t gso_wire_bytes;
	u64_stats_t wake;
	u64_stats_t drops[CORDON_RESULT_CNT];
};

/**
 * struct cordon_xmit_stats - counters of the submission side
 * @syncp: for readers on 32-bit machines; the writer holds the TX lock
 * @csum: packets whose checksum the card was asked for
 * @csum_none: packets that needed none
 * @stop: times that the queue was stopped
 * @kicks: doorbells
 * @dropped: packets that the driver dropped
 */
struct cordon_xmit_stats {
	struct u64_stats_sync syncp;
	u64_stats_t csum;
	u64_stats_t csum_none;
	u64_stats_t stop;
	u64_stats_t kicks;
	u64_stats_t dropped;
};

/**
 * struct cordon_rx_stats - counters of an RX queue; they survive the rings
 * @syncp: for readers on 32-bit machines; the writer is NAPI
 * @packets: packets
 * @bytes: bytes of them
 * @csum_good: packets whose checksum the card found right
 * @csum_none: the others
 * @alloc_fail: times that there was no memory for a buffer or packet
 * @dropped: packets that the driver dropped
 */
struct cordon_rx_stats {
	struct u64_stats_sync syncp;
	u64_stats_t packets;
	u64_stats_t bytes;
	u64_stats_t csum_good;
	u64_stats_t csum_none;
	u64_stats_t alloc_fail;
	u64_stats_t dropped;
};

/**
 * struct cordon_queue_pair - a queue pair
 * @napi: polls both sides
 * @cdev: device
 * @netdev: network device
 * @tx: TX rings, NULL while there are none
 * @rx: RX rings, NULL while there are none
 * @arm: last value of the doorbell line's arm; of NAPI
 * @index: number
 * @line: doorbell line
 * @vector: interrupt vector
 * @live: interrupts may schedule @napi
 * @tx_stats: counters of completions
 * @xmit_stats: counters of submissions
 * @rx_stats: counters of RX
 */
struct cordon_queue_pair {
	struct napi_struct napi;
	struct cordon_dev *cdev;
	struct net_device *netdev;
	struct cordon_tx_ring *tx;
	struct cordon_rx_ring *rx;
	u32 arm;
	u16 index;
	u16 line;
	u16 vector;
	bool live;
	struct cordon_tx_stats tx_stats;
	struct cordon_xmit_stats xmit_stats ____cacheline_aligned_in_smp;
	struct cordon_rx_stats rx_stats ____cacheline_aligned_in_smp;
};

netdev_tx_t cordon_txrx_xmit(struct sk_buff *skb, struct net_device *netdev);
int cordon_txrx_poll(struct napi_struct *napi, int budget);

struct cordon_tx_ring *cordon_txrx_alloc_tx(struct cordon_queue_pair *qp, u8 log2);
void cordon_txrx_free_tx(struct cordon_queue_pair *qp, struct cordon_tx_ring *tx);
void cordon_txrx_rewind_tx(struct cordon_queue_pair *qp, struct cordon_tx_ring *tx);
struct cordon_rx_ring *cordon_txrx_alloc_rx(struct cordon_queue_pair *qp, u8 log2);
void cordon_txrx_free_rx(struct cordon_queue_pair *qp, struct cordon_rx_ring *rx);
void cordon_txrx_rewind_rx(struct cordon_queue_pair *qp, struct cordon_rx_ring *rx);

#endif
