// SPDX-License-Identifier: BSD-3-Clause
/*
 * From the TX rings to the wire.
 *
 * Packets are taken from the queue pairs in turn, and a burst of frames is built of them: gather,
 * parse, segment, checksum, ESP, VLAN tag. Then the burst goes to the wire, in order, and each
 * packet is completed when its last frame has left or was dropped. A packet that needs more frames
 * than a burst has room for goes on in the next one.
 *
 * If the wire is full, the frames that it didn't take stay here, built, with the sequence numbers
 * that they have, and nothing more is taken from the port's rings until they have left: the driver
 * sees a full ring, as before a wire that is busy. Other ports go on. A wire that takes nothing for
 * HOLD_MAX loses the frames (WIRE_FULL), so that a dead peer doesn't stop the stack.
 *
 * Fail closed: a frame of a packet with an SA flag goes to ready[] only with result OK from
 * fw_esp_out_*(), which start at CORDON_RESULT_CRYPTO.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/desc.h"
#include "core/port.h"
#include "core/queue.h"
#include "core/tx.h"
#include "core/worker.h"
#include "path/csum.h"
#include "path/esp.h"
#include "path/parse.h"
#include "path/segment.h"

#define BURST FW_WIRE_BURST
#define BURSTS_IN_ROUND 4
#define JOBS (2 * BURST)
#define QUEUE_TURN 8
#define HOLD_MAX 100000000ull

/* A headerless packet for a tunnel gets room for an Ethernet header. */
#define L2_MIN 14u
#define BIG_ROOM (CORDON_TX_LENGTH_MAX + L2_MIN)
#define BIG_SIZE (FW_PKT_HEADROOM + BIG_ROOM + FW_PKT_TAILROOM)
#define FRAME_SIZE (((uint32_t)FW_PKT_BUFFER + 63) & ~63u)

#define PROTO_TCP 6

/**
 * struct tx_job - a packet that was taken from a ring
 * @q: queue pair, NULL if it was destroyed meanwhile
 * @slot: first slot
 * @left: frames that neither left nor were dropped
 * @sent: frames that left
 * @result: the first failure
 * @open: there are segments still to be made
 */
struct tx_job {
	struct fw_queue *q;
	uint32_t slot;
	uint32_t left;
	uint32_t sent;
	enum cordon_result result;
	bool open;
};

/**
 * struct tx_frame - a frame of the burst
 * @pkt: the frame; first member, so that a pointer to it leads here
 * @job: packet that it belongs to, index into fw_tx.jobs
 * @flags: CORDON_TX_* of the descriptor
 * @vlan_tci: of the descriptor
 * @seq: of the descriptor, crypto mode
 */
struct tx_frame {
	struct fw_pkt pkt;
	uint32_t job;
	uint16_t flags;
	uint16_t vlan_tci;
	uint64_t seq;
};

/**
 * struct fw_tx - the burst of a port
 * @frames: frames
 * @frame_count: number of them
 * @ready: frames that may leave
 * @ready_count: number of them
 * @ready_pos: first one that the wire hasn't taken
 * @jobs: packets, in the order in which they were taken
 * @job_count: number of them
 * @big: packet that is being segmented
 * @walk: how far
 * @walk_desc: its descriptor
 * @walk_left: segments still to be made, 0 = no packet is being segmented
 * @held_since: when the wire last refused all, 0 = it took some
 */
struct fw_tx {
	struct tx_frame frames[BURST];
	uint32_t frame_count;
	struct tx_frame *ready[BURST];
	uint32_t ready_count;
	uint32_t ready_pos;
	struct tx_job jobs[JOBS];
	uint32_t job_count;
	struct fw_pkt big;
	struct fw_segment walk;
	struct fw_desc walk_desc;
	uint32_t walk_left;
	uint64_t held_since;
};

static int buffers_alloc(struct fw_tx *tx)
{
	tx->big.size = BIG_SIZE;
	tx->big.buf = aligned_alloc(64, (BIG_SIZE + 63) & ~63u);
	if (!tx->big.buf)
		return -ENOMEM;
	for (uint32_t i = 0; i < BURST; i++) {
		struct fw_pkt *p = &tx->frames[i].pkt;

		p->size = FW_PKT_BUFFER;
		p->buf = aligned_alloc(64, FRAME_SIZE);
		if (!p->buf)
			return -ENOMEM;
	}
	return 0;
}

/**
 * fw_tx_alloc() - memory for a port's burst
 *
 * Return: NULL if out of memory.
 */
struct fw_tx *fw_tx_alloc(void)
{
	struct fw_tx *tx = calloc(1, sizeof(*tx));

	if (tx && buffers_alloc(tx)) {
		fw_tx_free(tx);
		return NULL;
	}
	return tx;
}

/**
 * fw_tx_free() - free it
 * @tx: burst, NULL is fine
 */
void fw_tx_free(struct fw_tx *tx)
{
	if (!tx)
		return;
	for (uint32_t i = 0; i < BURST; i++)
		free(tx->frames[i].pkt.buf);
	free(tx->big.buf);
	free(tx);
}

static void pkt_reset(struct fw_pkt *p)
{
	*p = (struct fw_pkt){ .buf = p->buf, .size = p->size, .off = FW_PKT_HEADROOM };
}

static void job_fail(struct fw_port *port, struct tx_job *job, enum cordon_result why,
		     uint32_t count)
{
	if (job->result == CORDON_RESULT_OK)
		job->result = why;
	fw_port_count_tx(port, why, count);
}

/* The SA that the stack chose, if it may be used so. */
static enum cordon_result sa_get(struct fw_port *port, const struct fw_desc *d, struct fw_sa **sa)
{
	uint8_t offload = d->flags & CORDON_TX_SA_PACKET ? CORDON_OFFLOAD_PACKET :
							   CORDON_OFFLOAD_CRYPTO;

	*sa = NULL;
	if (!(d->flags & FW_DESC_SA))
		return CORDON_RESULT_OK;
	*sa = fw_sad_get(port, d->sa);
	if (!*sa)
		return CORDON_RESULT_SA_GONE;
	if ((*sa)->cfg.direction == CORDON_DIRECTION_OUT && (*sa)->cfg.offload == offload)
		return CORDON_RESULT_OK;
	fw_sa_drop(*sa, CORDON_RESULT_SA_MISMATCH);
	return CORDON_RESULT_SA_MISMATCH;
}

/* Forwarded packets for a tunnel may come without an Ethernet header: the card writes it anyhow. */
static enum cordon_result pad_l2(struct fw_desc *d, const struct fw_sa *sa, uint32_t *pad)
{
	*pad = 0;
	if (!(d->flags & FW_DESC_SA) || d->l3_offset >= L2_MIN)
		return CORDON_RESULT_OK;
	if (!fw_sa_writes_l2(sa))
		return CORDON_RESULT_BAD_DESC;
	*pad = L2_MIN - d->l3_offset;
	d->l3_offset += *pad;
	if (d->flags & CORDON_TX_CSUM)
		d->csum_start += *pad;
	if (d->flags & CORDON_TX_SEGMENT)
		d->header_len += *pad;
	return CORDON_RESULT_OK;
}

/* Copy the packet and find its headers. */
static enum cordon_result load(struct fw_queue *q, struct fw_desc *d, struct fw_sa *sa,
			       struct fw_pkt *p, uint32_t room)
{
	enum cordon_result result;
	uint32_t pad;

	result = pad_l2(d, sa, &pad);
	if (result)
		return result;
	if (d->total > room - pad)
		return CORDON_RESULT_TOO_LONG;
	pkt_reset(p);
	p->len = pad + d->total;
	p->sa = sa;
	if (p->len < L2_MIN || p->len <= d->l3_offset)
		return CORDON_RESULT_TOO_SHORT;
	memset(fw_pkt_data(p), 0, pad);
	if (fw_desc_gather(q, d, fw_pkt_data(p) + pad))
		return CORDON_RESULT_DMA;
	if (!(d->flags & CORDON_TX_SA_PACKET)) {
		fw_parse_frame(p);
		return CORDON_RESULT_OK;
	}
	return fw_parse_l3(p, (uint16_t)d->l3_offset) ? CORDON_RESULT_OK :
							CORDON_RESULT_TOO_SHORT;
}

/* Bytes before the payload that the MTU is about. */
static uint32_t l2_len(const struct fw_desc *d, const struct fw_pkt *p)
{
	return d->flags & CORDON_TX_SA_PACKET ? d->l3_offset : fw_port_l2_len(p);
}

/*
 * In crypto mode the ESP trailer and the room for the ICV are behind what the checksum is over; how
 * long the trailer is, the trailer itself says.
 */
static enum cordon_result csum(const struct fw_desc *d, struct fw_pkt *p)
{
	uint32_t len = p->len;
	int ret;

	if (d->flags & CORDON_TX_SA_CRYPTO) {
		uint32_t tail = p->sa->cfg.icv_len + 2u;

		if (tail > len)
			return CORDON_RESULT_TOO_SHORT;
		tail += fw_pkt_data(p)[len - tail];
		if (tail > len)
			return CORDON_RESULT_TOO_SHORT;
		p->len = len - tail;
	}
	ret = fw_csum_fill(p, d->csum_start, d->csum_offset);
	p->len = len;
	return ret ? CORDON_RESULT_BAD_CSUM_REQUEST : CORDON_RESULT_OK;
}

/* What seal() will ask of the frame, known before it takes a sequence number. */
static uint32_t frame_max(const struct fw_port *port, const struct fw_desc *d,
			  const struct fw_pkt *p)
{
	uint32_t by_mtu = fw_port_l2_len(p) + port->mtu;
	uint32_t by_size = FW_PKT_FRAME_MAX - (d->flags & CORDON_TX_VLAN ? 4u : 0u);

	return by_mtu < by_size ? by_mtu : by_size;
}

static void frame_add(struct fw_port *port, struct tx_job *job, const struct fw_desc *d)
{
	struct fw_tx *tx = port->tx;
	struct tx_frame *f = &tx->frames[tx->frame_count++];

	f->pkt.frame_max = frame_max(port, d, &f->pkt);
	f->job = (uint32_t)(job - tx->jobs);
	f->flags = d->flags;
	f->vlan_tci = d->vlan_tci;
	f->seq = d->seq;
	job->left++;
}

static enum cordon_result begin_frame(struct fw_queue *q, struct tx_job *job, struct fw_desc *d,
				      struct fw_sa *sa)
{
	struct fw_tx *tx = q->port->tx;
	struct fw_pkt *p = &tx->frames[tx->frame_count].pkt;
	enum cordon_result result;

	result = load(q, d, sa, p, FW_PKT_FRAME_MAX);
	if (result)
		return result;
	if (p->len - l2_len(d, p) > q->port->mtu)
		return CORDON_RESULT_TOO_LONG;
	if (d->flags & CORDON_TX_SA_CRYPTO) {
		if (d->esp_offset <= d->l3_offset || d->esp_offset >= p->len)
			return CORDON_RESULT_BAD_DESC;
		p->esp = d->esp_offset;
	}
	if (d->flags & CORDON_TX_CSUM) {
		result = csum(d, p);
		if (result)
			return result;
	}
	frame_add(q->port, job, d);
	return CORDON_RESULT_OK;
}

static enum cordon_result begin_walk(struct fw_queue *q, struct tx_job *job, struct fw_desc *d,
				     struct fw_sa *sa)
{
	struct fw_tx *tx = q->port->tx;
	struct fw_pkt *p = &tx->big;
	enum cordon_result result;
	uint32_t feature;
	int count;

	/* The host numbers ESP packets in crypto mode: it can't have them cut. */
	if (d->flags & CORDON_TX_SA_CRYPTO)
		return CORDON_RESULT_BAD_TSO;
	result = load(q, d, sa, p, BIG_ROOM);
	if (result)
		return result;
	feature = p->l4_proto == PROTO_TCP ? CORDON_FEATURE_TSO : CORDON_FEATURE_USO;
	if (!d->mss || !fw_port_offers(q->port, feature))
		return CORDON_RESULT_BAD_TSO;
	count = fw_segment_init(&tx->walk, p, d->header_len, d->mss,
				d->flags & CORDON_TX_FIXED_ID);
	if (count <= 0)
		return CORDON_RESULT_BAD_TSO;
	if (d->header_len + (count > 1 ? d->mss : p->len - d->header_len) - l2_len(d, p) >
	    q->port->mtu)
		return CORDON_RESULT_TOO_LONG;
	tx->walk_desc = *d;
	tx->walk_left = (uint32_t)count;
	job->open = true;
	q->port->stats.tx_segmented++;
	return CORDON_RESULT_OK;
}

static void walk_end(struct fw_tx *tx, struct tx_job *job)
{
	tx->walk_left = 0;
	job->open = false;
}

/* Make segments of the packet of the last job. */
static void walk_on(struct fw_port *port)
{
	struct fw_tx *tx = port->tx;
	struct tx_job *job = &tx->jobs[tx->job_count - 1];
	enum cordon_result result;
	struct fw_sa *sa;

	/* Commands may have run since the last burst: never keep the pointer. */
	result = sa_get(port, &tx->walk_desc, &sa);
	if (result) {
		job_fail(port, job, result, tx->walk_left);
		walk_end(tx, job);
		return;
	}
	while (tx->walk_left && tx->frame_count < BURST) {
		struct fw_pkt *p = &tx->frames[tx->frame_count].pkt;

		pkt_reset(p);
		if (!fw_segment_next(&tx->walk, p))
			break;
		p->sa = sa;
		frame_add(port, job, &tx->walk_desc);
		tx->walk_left--;
	}
	if (!tx->walk_left || tx->frame_count < BURST)
		walk_end(tx, job);
}

static enum cordon_result begin(struct fw_queue *q, struct tx_job *job, struct fw_desc *d)
{
	enum cordon_result result;
	struct fw_sa *sa;

	if (!q->port->link)
		return CORDON_RESULT_LINK_DOWN;
	result = sa_get(q->port, d, &sa);
	if (result)
		return result;
	if (d->flags & CORDON_TX_SEGMENT)
		return begin_walk(q, job, d, sa);
	return begin_frame(q, job, d, sa);
}

/* Take the packet at the consumer index; Return: slots, 0 if the queue pair stopped. */
static uint32_t take(struct fw_queue *q, uint32_t avail)
{
	struct fw_tx *tx = q->port->tx;
	struct tx_job *job = &tx->jobs[tx->job_count];
	enum cordon_result result;
	struct fw_desc d;
	int ret;

	ret = fw_desc_read(q, avail, &d);
	if (ret < 0) {
		fw_queue_stop(q, ret == -EFAULT ? CORDON_RESULT_DMA : CORDON_RESULT_BAD_DESC);
		return 0;
	}
	*job = (struct tx_job){ .q = q, .slot = q->tx_cons };
	tx->job_count++;
	q->tx_cons += d.slots;
	result = ret ? (enum cordon_result)ret : begin(q, job, &d);
	if (result)
		job_fail(q->port, job, result, 1);
	else if (job->open)
		walk_on(q->port);
	return d.slots;
}

static bool has_room(const struct fw_tx *tx)
{
	return tx->frame_count < BURST && tx->job_count < JOBS && !tx->walk_left;
}

/* Fill the burst; Return: true if there is anything in it. */
static bool fill(struct fw_port *port)
{
	struct fw_tx *tx = port->tx;

	if (tx->walk_left)
		walk_on(port);
	for (uint32_t i = 0; i < CORDON_QUEUE_PAIRS_MAX && has_room(tx); i++) {
		struct fw_queue *q = port->queues[port->queue_next];
		uint32_t avail = q ? fw_queue_tx_avail(q) : 0;

		port->queue_next = (port->queue_next + 1) % CORDON_QUEUE_PAIRS_MAX;
		if (q && !q->stopped)
			fw_notify_awake(&q->notify, q->tx_prod);
		for (uint32_t n = 0; n < QUEUE_TURN && avail && has_room(tx); n++) {
			uint32_t slots = take(q, avail);

			avail = slots ? avail - slots : 0;
		}
	}
	return tx->job_count;
}

/* Encrypt what has an SA; each result says whether the frame may leave. */
static void secure(struct fw_port *port)
{
	struct fw_tx *tx = port->tx;
	struct fw_pkt *packet[BURST], *crypto[BURST];
	uint32_t packets = 0, cryptos = 0;
	uint64_t seqs[BURST];

	for (uint32_t i = 0; i < tx->frame_count; i++) {
		struct tx_frame *f = &tx->frames[i];

		if (f->flags & FW_DESC_SA)
			f->pkt.result = CORDON_RESULT_CRYPTO;
		if (f->flags & CORDON_TX_SA_PACKET) {
			packet[packets++] = &f->pkt;
		} else if (f->flags & CORDON_TX_SA_CRYPTO) {
			seqs[cryptos] = f->seq;
			crypto[cryptos++] = &f->pkt;
		}
	}
	if (packets)
		fw_esp_out_packet(packet, packets);
	if (cryptos)
		fw_esp_out_crypto(crypto, seqs, cryptos);
}

static void vlan_insert(struct fw_pkt *p, uint16_t tci)
{
	uint8_t *frame;

	p->off -= 4;
	p->len += 4;
	frame = fw_pkt_data(p);
	memmove(frame, frame + 4, 12);
	frame[12] = 0x81;
	frame[13] = 0x00;
	frame[14] = (uint8_t)(tci >> 8);
	frame[15] = (uint8_t)tci;
}

/* What is left to do behind encryption. */
static enum cordon_result seal(struct fw_port *port, struct tx_frame *f)
{
	struct fw_pkt *p = &f->pkt;

	if (p->result)
		return p->result;
	if (f->flags & FW_DESC_SA)
		port->stats.tx_sa_packets++;
	if (p->len - fw_port_l2_len(p) > port->mtu)
		return CORDON_RESULT_TOO_LONG;
	if (f->flags & CORDON_TX_VLAN)
		vlan_insert(p, f->vlan_tci);
	return p->len > FW_PKT_FRAME_MAX ? CORDON_RESULT_TOO_LONG : CORDON_RESULT_OK;
}

static void build(struct fw_port *port)
{
	struct fw_tx *tx = port->tx;

	secure(port);
	tx->ready_count = 0;
	tx->ready_pos = 0;
	for (uint32_t i = 0; i < tx->frame_count; i++) {
		struct tx_frame *f = &tx->frames[i];
		struct tx_job *job = &tx->jobs[f->job];
		enum cordon_result result = seal(port, f);

		if (result) {
			job_fail(port, job, result, 1);
			job->left--;
		} else {
			tx->ready[tx->ready_count++] = f;
		}
	}
}

/* The wire is done with the frame, in the one way or the other. */
static void frame_done(struct fw_port *port, struct tx_frame *f)
{
	struct tx_job *job = &port->tx->jobs[f->job];

	job->left--;
	if (f->pkt.result) {
		job_fail(port, job, f->pkt.result, 1);
		return;
	}
	job->sent++;
	port->stats.tx_packets++;
	port->stats.tx_bytes += f->pkt.len;
	if (port->capture)
		fw_capture_frame(port->capture, &f->pkt, true);
}

static void drop_rest(struct fw_port *port, enum cordon_result why)
{
	struct fw_tx *tx = port->tx;

	while (tx->ready_pos < tx->ready_count) {
		tx->ready[tx->ready_pos]->pkt.result = why;
		frame_done(port, tx->ready[tx->ready_pos++]);
	}
	tx->held_since = 0;
}

/* Complete packets; the one that is being segmented stays as the first job. */
static void finish(struct fw_tx *tx)
{
	for (uint32_t i = 0; i < tx->job_count; i++) {
		struct tx_job *job = &tx->jobs[i];

		if (job->open) {
			tx->jobs[0] = *job;
			tx->job_count = 1;
			tx->frame_count = 0;
			return;
		}
		if (job->q)
			fw_queue_tx_complete(job->q, job->slot, job->result, job->sent);
	}
	tx->job_count = 0;
	tx->frame_count = 0;
}

/* Hand the burst to the wire; Return: true if all of it is gone. */
static bool send_ready(struct fw_port *port)
{
	struct fw_tx *tx = port->tx;
	struct fw_pkt *pkts[BURST];

	while (tx->ready_pos < tx->ready_count) {
		uint32_t count = tx->ready_count - tx->ready_pos;
		uint32_t taken;

		for (uint32_t i = 0; i < count; i++)
			pkts[i] = &tx->ready[tx->ready_pos + i]->pkt;
		taken = port->wire->ops->tx(port->wire, pkts, count);
		for (uint32_t i = 0; i < taken; i++)
			frame_done(port, tx->ready[tx->ready_pos++]);
		if (taken) {
			tx->held_since = 0;
			continue;
		}
		if (!tx->held_since)
			tx->held_since = port->worker->now;
		if (!port->link)
			drop_rest(port, CORDON_RESULT_LINK_DOWN);
		else if (port->worker->now - tx->held_since >= HOLD_MAX)
			drop_rest(port, CORDON_RESULT_WIRE_FULL);
		else
			return false;
	}
	tx->ready_count = 0;
	tx->ready_pos = 0;
	finish(tx);
	return true;
}

/**
 * fw_tx_poll() - send what waits
 * @port: port, enabled
 *
 * Return: true if something was done.
 */
bool fw_tx_poll(struct fw_port *port)
{
	struct fw_tx *tx = port->tx;
	bool work = false;

	if (tx->ready_count) {
		uint32_t pos = tx->ready_pos;

		if (!send_ready(port))
			return tx->ready_pos != pos;
		work = true;
	}
	for (uint32_t i = 0; i < BURSTS_IN_ROUND && fill(port); i++) {
		work = true;
		build(port);
		if (!send_ready(port))
			break;
	}
	return work;
}

/**
 * fw_tx_is_held() - do frames wait for the wire
 * @port: port
 *
 * Return: true if they do.
 */
bool fw_tx_is_held(const struct fw_port *port)
{
	return port->tx->ready_count;
}

/**
 * fw_tx_waits() - is there anything that fw_tx_poll() could take
 * @port: port, enabled
 *
 * Return: true if there is.
 */
bool fw_tx_waits(struct fw_port *port)
{
	if (fw_tx_is_held(port))
		return false;
	for (uint32_t i = 0; i < CORDON_QUEUE_PAIRS_MAX; i++) {
		struct fw_queue *q = port->queues[i];

		if (q && fw_queue_tx_avail(q))
			return true;
	}
	return port->tx->walk_left;
}

/**
 * fw_tx_forget() - a queue pair goes: drop its packets
 * @port: port
 * @q: queue pair
 */
void fw_tx_forget(struct fw_port *port, const struct fw_queue *q)
{
	struct fw_tx *tx = port->tx;
	uint32_t keep = tx->ready_pos;

	for (uint32_t i = tx->ready_pos; i < tx->ready_count; i++) {
		struct tx_frame *f = tx->ready[i];

		if (tx->jobs[f->job].q == q) {
			f->pkt.result = CORDON_RESULT_STOPPED;
			frame_done(port, f);
		} else {
			tx->ready[keep++] = f;
		}
	}
	if (tx->ready_count)
		tx->ready_count = keep;
	for (uint32_t i = 0; i < tx->job_count; i++) {
		struct tx_job *job = &tx->jobs[i];

		if (job->q != q)
			continue;
		if (job->open) {
			job_fail(port, job, CORDON_RESULT_STOPPED, tx->walk_left);
			walk_end(tx, job);
		}
		job->q = NULL;
	}
	if (tx->ready_pos == tx->ready_count) {
		tx->held_since = 0;
		tx->ready_count = 0;
		tx->ready_pos = 0;
		finish(tx);
	}
}

/**
 * fw_tx_reset() - the function goes: drop everything
 * @port: port
 */
void fw_tx_reset(struct fw_port *port)
{
	struct fw_tx *tx = port->tx;

	tx->frame_count = 0;
	tx->ready_count = 0;
	tx->ready_pos = 0;
	tx->job_count = 0;
	tx->walk_left = 0;
	tx->held_since = 0;
}
