// SPDX-License-Identifier: BSD-3-Clause
/*
 * From the wire to the RX rings.
 *
 * A burst lies in private memory until the end: the host sees a frame only when it is decrypted,
 * verified and judged. The wire is emptied whatever the state of the port is, so that a port which
 * is down doesn't hold up its peer.
 */
#include <endian.h>
#include <string.h>

#include "core/port.h"
#include "core/queue.h"
#include "core/rx.h"
#include "core/worker.h"
#include "path/csum.h"
#include "path/esp.h"
#include "path/iphdr.h"
#include "path/parse.h"

#define BURST FW_WIRE_BURST
#define BURSTS_IN_ROUND 4
/* Buffers of the least size that the greatest packet needs, which is one that came in fragments. */
#define BUFFERS_MAX ((FW_REASSEMBLY_FRAME_MAX + CORDON_RX_BUFFER_MIN - 1) / CORDON_RX_BUFFER_MIN)

#define PROTO_UDP 17
#define PROTO_ESP 50

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool is_mode(const struct fw_pkt *p, uint8_t offload)
{
	return p->sa && p->sa->cfg.offload == offload;
}

/* Where an ESP header may be; 0 = nowhere. */
static uint16_t esp_offset(const struct fw_pkt *p, bool *encap)
{
	const uint8_t *frame = fw_pkt_data(p);
	uint32_t at = p->l4;

	*encap = false;
	if (!at || (p->is_fragment && !p->is_first_fragment))
		return 0;
	if (p->l4_proto == PROTO_UDP && at + 8 <= p->len &&
	    get16(frame + at + 2) == FW_PORT_NAT_T) {
		static const uint8_t marker[4];

		*encap = true;
		at += 8;
		/* Four bytes of zero: IKE. A single byte: keepalive. */
		if (at + 8 > p->len || !memcmp(frame + at, marker, sizeof(marker)))
			return 0;
	} else if (p->l4_proto != PROTO_ESP || at + 8 > p->len) {
		return 0;
	}
	return (uint16_t)at;
}

static struct fw_sa *sa_find(struct fw_port *port, const struct fw_pkt *p, uint16_t at)
{
	const uint8_t *frame = fw_pkt_data(p);
	uint8_t daddr[16] = { 0 };
	uint32_t spi;

	if (p->family == CORDON_FAMILY_INET)
		memcpy(daddr, frame + p->l3 + 16, 4);
	else
		memcpy(daddr, frame + p->l3 + 24, 16);
	memcpy(&spi, frame + at, sizeof(spi));
	return fw_sad_find(port, p->family, daddr, spi);
}

/* Count what is decided beside fw_esp_in(); OK counts nothing. */
static enum cordon_result sa_judged(struct fw_sa *sa, enum cordon_result result)
{
	fw_sa_drop(sa, result);
	return result;
}

/*
 * Find the SA of an ESP packet. What has none, and what belongs to a crypto-mode SA but can't be
 * decrypted as it is, goes up untouched; for a packet-mode SA the host can't do it. Fragments that
 * can be put together don't come here, but from who isn't the SA's peer they do.
 */
static enum cordon_result esp_assign(struct fw_port *port, struct fw_pkt *p)
{
	bool encap, is_packet;
	uint16_t at = esp_offset(p, &encap);
	struct fw_sa *sa;

	if (!at)
		return CORDON_RESULT_OK;
	sa = sa_find(port, p, at);
	if (!sa) {
		fw_port_count_rx(port, CORDON_RESULT_SA_MISS);
		return CORDON_RESULT_OK;
	}
	is_packet = sa->cfg.offload == CORDON_OFFLOAD_PACKET;
	if (encap != !!(le32toh(sa->cfg.flags) & CORDON_SA_ENCAP))
		return is_packet ? sa_judged(sa, CORDON_RESULT_SA_MISMATCH) : CORDON_RESULT_OK;
	if (p->is_fragment)
		return is_packet ? sa_judged(sa, CORDON_RESULT_FRAGMENT) : CORDON_RESULT_OK;
	if (!is_packet && !(port->flags & CORDON_PORT_ESP))
		return CORDON_RESULT_OK;
	p->sa = sa;
	p->esp = at;
	return CORDON_RESULT_OK;
}

/* Before ESP, so that the tag is known even if the Ethernet header is made anew. */
static void vlan_strip(const struct fw_port *port, struct fw_pkt *p)
{
	if (!(port->flags & CORDON_PORT_VLAN_STRIP) || !fw_port_is_tagged(p))
		return;
	memmove(fw_pkt_data(p) + 4, fw_pkt_data(p), 12);
	p->off += 4;
	p->len -= 4;
	if (p->l3)
		p->l3 = (uint16_t)(p->l3 - 4u);
	if (p->l4)
		p->l4 = (uint16_t)(p->l4 - 4u);
	if (p->esp)
		p->esp = (uint16_t)(p->esp - 4u);
	p->vlan_cnt--;
	p->flags |= CORDON_RX_VLAN;
}

/* Judge a frame as it came. */
static enum cordon_result accept_frame(struct fw_port *port, struct fw_pkt *p)
{
	enum cordon_result result = p->result;

	p->flags = 0;
	p->sa = NULL;
	p->esp = 0;
	p->hash = 0;
	p->hash_type = CORDON_HASH_NONE;
	p->vlan_tci = 0;
	if (!(port->flags & CORDON_PORT_RX_ENABLE))
		return CORDON_RESULT_RX_DISABLED;
	if (result || p->len < 14)
		return CORDON_RESULT_BAD_L2;
	fw_parse_frame(p);
	if (p->len - fw_port_l2_len(p) > port->mtu)
		return CORDON_RESULT_BAD_L2;
	if (!fw_port_wants(port, p))
		return CORDON_RESULT_FILTERED;
	vlan_strip(port, p);
	return CORDON_RESULT_OK;
}

/* Judge a frame behind decryption. */
static enum cordon_result judge(struct fw_port *port, const struct fw_pkt *p)
{
	if (is_mode(p, CORDON_OFFLOAD_CRYPTO))
		return CORDON_RESULT_OK;
	if (p->sa) {
		if (p->result)
			return p->result;
		if (!(p->flags & CORDON_RX_SA_PACKET))
			return CORDON_RESULT_CRYPTO;
		return sa_judged(p->sa, fw_spd_check_decrypted(port->spd, p));
	}
	/* ESP isn't clear text: what the card doesn't decrypt is the stack's to judge. */
	if (p->family && p->l4_proto == PROTO_ESP)
		return CORDON_RESULT_OK;
	return fw_spd_check_clear(port->spd, p);
}

/*
 * Buffers for the frame, without taking them; Return: number, 0 = too few, negative = the queue
 * pair stopped.
 */
static int buffers_read(struct fw_queue *q, uint32_t len, struct cordon_rx_desc *bufs)
{
	uint32_t avail = fw_queue_rx_avail(q);
	uint32_t n = 0;

	for (; len && n < avail && n < BUFFERS_MAX; n++) {
		uint32_t size;

		if (fw_mem_ring_read(&q->rx_ring, q->rx_cons + n, &bufs[n])) {
			fw_queue_stop(q, CORDON_RESULT_DMA);
			return -1;
		}
		size = le32toh(bufs[n].len);
		if (bufs[n].reserved || size < CORDON_RX_BUFFER_MIN ||
		    size > CORDON_RX_BUFFER_MAX) {
			fw_queue_stop(q, CORDON_RESULT_BAD_DESC);
			return -1;
		}
		len -= len < size ? len : size;
	}
	return len ? 0 : (int)n;
}

static void complete_first(const struct fw_pkt *p, struct cordon_rx_completion *done)
{
	done->flags |= htole32(p->flags);
	done->hash = htole32(p->hash);
	done->hash_type = p->hash_type;
	if (p->flags & CORDON_RX_VLAN)
		done->vlan_tci = htole16(p->vlan_tci);
	if (p->sa) {
		done->sa = p->sa->cfg.handle;
		done->result = (uint8_t)p->result;
	}
}

/* Copy the frame into buffers of the host. */
static enum cordon_result scatter(struct fw_queue *q, const struct fw_pkt *p)
{
	struct cordon_rx_completion done[BUFFERS_MAX];
	struct cordon_rx_desc bufs[BUFFERS_MAX];
	const uint8_t *src = fw_pkt_data(p);
	uint32_t left = p->len;
	int count;

	count = buffers_read(q, p->len, bufs);
	if (count <= 0)
		return q->stopped ? CORDON_RESULT_DMA : CORDON_RESULT_NO_BUFFER;
	for (int i = 0; i < count; i++) {
		uint32_t size = le32toh(bufs[i].len);
		uint32_t part = left < size ? left : size;

		if (fw_mem_write(&q->port->mem, le64toh(bufs[i].addr), src, part)) {
			fw_queue_stop(q, CORDON_RESULT_DMA);
			return CORDON_RESULT_DMA;
		}
		src += part;
		left -= part;
		done[i] = (struct cordon_rx_completion){
			.len = htole32(part),
			.flags = left ? htole32(CORDON_RX_MORE) : 0,
			.buffer = htole32(q->rx_cons + (uint32_t)i),
		};
	}
	complete_first(p, &done[0]);
	if (fw_queue_rx_complete(q, done, (uint32_t)count))
		return CORDON_RESULT_DMA;
	return CORDON_RESULT_OK;
}

static void count_delivered(struct fw_port *port, const struct fw_pkt *p)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const uint8_t *frame = fw_pkt_data(p);

	port->stats.rx_packets++;
	port->stats.rx_bytes += p->len;
	if (frame[0] & 1 && memcmp(frame, broadcast, sizeof(broadcast)) != 0)
		port->stats.rx_multicast++;
}

static enum cordon_result deliver(struct fw_port *port, struct fw_pkt *p)
{
	enum cordon_result result = judge(port, p);
	uint32_t index = 0;

	if (result)
		return result;
	if (port->flags & CORDON_PORT_RX_CSUM && !is_mode(p, CORDON_OFFLOAD_CRYPTO) &&
	    fw_csum_verify(p))
		p->flags |= CORDON_RX_CSUM_GOOD;
	if (port->flags & CORDON_PORT_RSS)
		index = fw_rss_hash(&port->rss, p);
	if (index >= CORDON_QUEUE_PAIRS_MAX || !port->queues[index])
		return CORDON_RESULT_NO_BUFFER;
	result = scatter(port->queues[index], p);
	if (!result)
		count_delivered(port, p);
	return result;
}

/*
 * Decrypt. What a crypto-mode SA can't take stays as it came, without a flag: then it's a packet
 * without an SA.
 */
static void decrypt(struct fw_port *port, struct fw_pkt **esp, uint32_t count)
{
	/* Nothing counts as verified that fw_esp_in() hasn't said so of. */
	for (uint32_t i = 0; i < count; i++)
		esp[i]->result = CORDON_RESULT_CRYPTO;
	fw_esp_in(esp, count);
	for (uint32_t i = 0; i < count; i++) {
		struct fw_pkt *p = esp[i];

		if (is_mode(p, CORDON_OFFLOAD_CRYPTO) && !(p->flags & CORDON_RX_SA_CRYPTO))
			p->sa = NULL;
		else if (p->result == CORDON_RESULT_OK)
			port->stats.rx_sa_packets++;
	}
}

/**
 * struct rx_batch - frames that are to be decrypted and delivered together, in order
 * @count: frames
 * @pkts: frames
 */
struct rx_batch {
	uint32_t count;
	struct fw_pkt *pkts[BURST];
};

static void batch_flush(struct fw_port *port, struct rx_batch *batch)
{
	struct fw_pkt *esp[BURST];
	uint32_t esps = 0;

	for (uint32_t i = 0; i < batch->count; i++) {
		if (batch->pkts[i]->sa)
			esp[esps++] = batch->pkts[i];
	}
	if (esps)
		decrypt(port, esp, esps);
	for (uint32_t i = 0; i < batch->count; i++) {
		enum cordon_result result = deliver(port, batch->pkts[i]);

		if (result)
			fw_port_count_rx(port, result);
	}
	batch->count = 0;
}

static void batch_add(struct fw_port *port, struct rx_batch *batch, struct fw_pkt *p)
{
	enum cordon_result result = esp_assign(port, p);

	p->result = CORDON_RESULT_OK;
	if (result)
		fw_port_count_rx(port, result);
	else
		batch->pkts[batch->count++] = p;
}

/* What comes out of reassembly: packets, and fragments that aren't the card's. */
static void batch_add_reassembled(struct fw_port *port, struct rx_batch *batch)
{
	struct fw_pkt *p;

	for (p = fw_reassembly_next(port->reassembly); p; p = fw_reassembly_next(port->reassembly)) {
		uint32_t merged = fw_reassembly_merged(port->reassembly);

		/* Frames that came before go before, and there is one buffer for all that come. */
		batch_flush(port, batch);
		if (merged > 1) {
			port->stats.rx_reassembled++;
			port->stats.rx_merged += merged - 1;
		}
		if (port->flags & CORDON_PORT_RX_ENABLE)
			batch_add(port, batch, p);
		else
			fw_port_count_rx(port, CORDON_RESULT_RX_DISABLED);
		/* A packet that no SA takes mustn't go up otherwise than it came. */
		if (merged > 1 && batch->count && !p->sa) {
			batch->count = 0;
			fw_port_count_rx(port, CORDON_RESULT_FRAGMENT);
		}
		batch_flush(port, batch);
	}
}

static void burst(struct fw_port *port, struct fw_pkt *pkts, uint32_t count)
{
	struct rx_batch batch;

	batch.count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct fw_pkt *p = &pkts[i];
		enum cordon_result result;

		port->stats.rx_wire_packets++;
		port->stats.rx_wire_bytes += p->len;
		result = accept_frame(port, p);
		if (result) {
			fw_port_count_rx(port, result);
		} else if (p->is_fragment) {
			bool taken = fw_reassembly_add(port->reassembly, p, port->worker->now);

			batch_add_reassembled(port, &batch);
			if (!taken)
				batch_add(port, &batch, p);
		} else {
			batch_add(port, &batch, p);
		}
	}
	batch_flush(port, &batch);
}

static bool reassembly_wants(void *owner, const struct fw_reassembly_flow *flow)
{
	const struct fw_port *port = owner;

	return fw_peer_is_known(&port->sad.peers, flow);
}

/* By the SPI, as esp_assign() will do it with the whole packet. */
static enum fw_reassembly_kind reassembly_judge(void *owner, const struct fw_reassembly_flow *flow,
						const uint8_t *head, uint32_t len, uint32_t *handle)
{
	struct fw_sa *sa;
	uint32_t spi;

	if (flow->proto == PROTO_UDP) {
		if (len < 4 || get16(head + 2) != FW_PORT_NAT_T)
			return FW_REASSEMBLY_OTHER;
		if (len < 8 + sizeof(spi))
			return FW_REASSEMBLY_UNKNOWN;
		head += 8;
	} else if (len < sizeof(spi)) {
		return FW_REASSEMBLY_OTHER;
	}
	memcpy(&spi, head, sizeof(spi));
	/* Zero, which is also what IKE has there, is no SA's. */
	sa = fw_sad_find(owner, flow->family, flow->daddr, spi);
	if (!sa || sa->cfg.offload != CORDON_OFFLOAD_PACKET)
		return FW_REASSEMBLY_OTHER;
	*handle = le32toh(sa->cfg.handle);
	return FW_REASSEMBLY_OURS;
}

static void reassembly_drop(void *owner, const uint32_t *handle, uint32_t count)
{
	struct fw_port *port = owner;
	struct fw_sa *sa = handle ? fw_sad_get(port, *handle) : NULL;

	for (uint32_t i = 0; i < count; i++) {
		fw_port_count_rx(port, CORDON_RESULT_FRAGMENT);
		fw_sa_drop(sa, CORDON_RESULT_FRAGMENT);
	}
}

/**
 * fw_rx_reassembly_alloc() - allocate the reassembly of a port
 * @port: port
 *
 * Return: NULL if out of memory.
 */
struct fw_reassembly *fw_rx_reassembly_alloc(struct fw_port *port)
{
	static const struct fw_reassembly_ops ops = {
		.wants = reassembly_wants,
		.judge = reassembly_judge,
		.drop = reassembly_drop,
	};

	return fw_reassembly_alloc(&ops, port);
}

/* End what has waited for too long; Return: true if there was anything. */
static bool expire(struct fw_port *port)
{
	struct rx_batch batch;

	if (!fw_reassembly_expire(port->reassembly, port->worker->now))
		return false;
	batch.count = 0;
	batch_add_reassembled(port, &batch);
	return true;
}

/**
 * fw_rx_poll() - take what has come
 * @port: port
 *
 * Return: true if there was anything.
 */
bool fw_rx_poll(struct fw_port *port)
{
	struct fw_pkt *pkts = port->worker->rx;
	bool work = fw_port_works(port) && expire(port);

	for (uint32_t i = 0; i < BURSTS_IN_ROUND; i++) {
		uint32_t count = port->wire->ops->rx(port->wire, pkts, BURST);

		if (!count)
			break;
		work = true;
		for (uint32_t n = 0; n < count && port->capture; n++) {
			if (pkts[n].result == CORDON_RESULT_OK)
				fw_capture_frame(port->capture, &pkts[n], false);
		}
		if (fw_port_works(port))
			burst(port, pkts, count);
		if (count < BURST)
			break;
	}
	return work;
}
