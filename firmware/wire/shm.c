// SPDX-License-Identifier: BSD-3-Clause
/*
 * One end of a shared-memory wire, see shm.h.
 *
 * After a restart the producer goes on at the index that the ring shows (if it is sane), and the
 * consumer skips what lies in the ring: those frames were lost with the process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/shm.h"
#include "wire/wire.h"

#define RING_MASK (FW_WIRE_SHM_RING_SIZE - 1)
#define RECORD_MAX ((FW_WIRE_SHM_HEADER + FW_PKT_FRAME_MAX + FW_WIRE_SHM_ALIGN - 1) & \
		    ~(FW_WIRE_SHM_ALIGN - 1))

struct shm_wire {
	struct fw_wire wire;
	struct fw_wire_shm *shm;
	struct fw_wire_shm_ring *tx;
	struct fw_wire_shm_ring *rx;
	uint8_t *tx_data;
	const uint8_t *rx_data;
	uint32_t tx_prod;
	uint32_t rx_cons;
	uint32_t end;
	int peer;
};

static struct shm_wire *shm_wire(struct fw_wire *wire)
{
	return (struct shm_wire *)wire;
}

static void wake_peer(const struct shm_wire *w)
{
	uint64_t one = 1;
	ssize_t n = write(w->peer, &one, sizeof(one));

	/* The counter is full only if the peer has been woken often already. */
	(void)n;
}

static void wake_if_asked(const struct shm_wire *w, uint32_t *word)
{
	/* Pairs with the barrier of the end that set the word, see struct fw_wire_shm_ring. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(word, __ATOMIC_RELAXED))
		return;
	if (__atomic_exchange_n(word, 0, __ATOMIC_RELAXED))
		wake_peer(w);
}

static uint32_t record_size(uint32_t len)
{
	return (FW_WIRE_SHM_HEADER + len + FW_WIRE_SHM_ALIGN - 1) & ~(FW_WIRE_SHM_ALIGN - 1);
}

static void ring_put(uint8_t *data, uint32_t pos, const void *src, uint32_t len)
{
	uint32_t at = pos & RING_MASK;
	uint32_t first = FW_WIRE_SHM_RING_SIZE - at;

	if (first > len)
		first = len;
	memcpy(data + at, src, first);
	memcpy(data, (const uint8_t *)src + first, len - first);
}

static void ring_get(const uint8_t *data, uint32_t pos, void *dst, uint32_t len)
{
	uint32_t at = pos & RING_MASK;
	uint32_t first = FW_WIRE_SHM_RING_SIZE - at;

	if (first > len)
		first = len;
	memcpy(dst, data + at, first);
	memcpy((uint8_t *)dst + first, data, len - first);
}

/* A consumer index that can't be is taken for a full ring: the peer hurts no one but itself. */
static uint32_t tx_room(const struct shm_wire *w)
{
	uint32_t used = w->tx_prod - __atomic_load_n(&w->tx->cons, __ATOMIC_ACQUIRE);

	return used <= FW_WIRE_SHM_RING_SIZE ? FW_WIRE_SHM_RING_SIZE - used : 0;
}

static uint32_t shm_tx(struct fw_wire *wire, struct fw_pkt **pkts, uint32_t count)
{
	struct shm_wire *w = shm_wire(wire);
	uint32_t room = tx_room(w);
	uint32_t prod = w->tx_prod;
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t len = pkts[i]->len;
		uint32_t size = record_size(len);

		if (room < size) {
			__atomic_store_n(&w->tx->producer_waits, 1, __ATOMIC_RELAXED);
			/* Pairs with wake_if_asked() of the consumer. */
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			room = tx_room(w);
			if (room < prod - w->tx_prod + size)
				break;
			room -= prod - w->tx_prod;
		}
		ring_put(w->tx_data, prod, &len, sizeof(len));
		ring_put(w->tx_data, prod + FW_WIRE_SHM_HEADER, fw_pkt_data(pkts[i]), len);
		prod += size;
		room -= size;
	}
	if (prod != w->tx_prod) {
		w->tx_prod = prod;
		__atomic_store_n(&w->tx->prod, prod, __ATOMIC_RELEASE);
		wake_if_asked(w, &w->tx->consumer_sleeps);
	}
	return i;
}

/* Bytes that wait; a ring whose indices or lengths contradict each other is emptied. */
static uint32_t rx_fill(struct shm_wire *w)
{
	uint32_t prod = __atomic_load_n(&w->rx->prod, __ATOMIC_ACQUIRE);
	uint32_t fill = prod - w->rx_cons;

	if (fill <= FW_WIRE_SHM_RING_SIZE && !(fill & (FW_WIRE_SHM_ALIGN - 1)))
		return fill;
	w->rx_cons = prod & ~(FW_WIRE_SHM_ALIGN - 1);
	__atomic_store_n(&w->rx->cons, w->rx_cons, __ATOMIC_RELEASE);
	return 0;
}

static uint32_t shm_rx(struct fw_wire *wire, struct fw_pkt *pkts, uint32_t count)
{
	struct shm_wire *w = shm_wire(wire);
	uint32_t fill = rx_fill(w);
	uint32_t cons = w->rx_cons;
	uint32_t n = 0;

	while (n < count && fill) {
		uint32_t len;

		ring_get(w->rx_data, cons, &len, sizeof(len));
		/* The length was copied, so that the peer can't change it behind the check. */
		if (len > FW_PKT_FRAME_MAX || record_size(len) > fill) {
			cons += fill;
			break;
		}
		ring_get(w->rx_data, cons + FW_WIRE_SHM_HEADER, pkts[n].buf + FW_PKT_HEADROOM,
			 len);
		pkts[n].off = FW_PKT_HEADROOM;
		pkts[n].len = len;
		pkts[n].result = CORDON_RESULT_OK;
		cons += record_size(len);
		fill -= record_size(len);
		n++;
	}
	if (cons != w->rx_cons) {
		w->rx_cons = cons;
		__atomic_store_n(&w->rx->cons, cons, __ATOMIC_RELEASE);
		wake_if_asked(w, &w->rx->producer_waits);
	}
	return n;
}

static bool shm_poll_link(struct fw_wire *wire, uint64_t now)
{
	const struct shm_wire *w = shm_wire(wire);

	(void)now;
	return __atomic_load_n(&w->shm->present[1 - w->end], __ATOMIC_ACQUIRE) == 1;
}

static bool shm_sleep(struct fw_wire *wire)
{
	struct shm_wire *w = shm_wire(wire);

	__atomic_store_n(&w->rx->consumer_sleeps, 1, __ATOMIC_RELAXED);
	/* Pairs with wake_if_asked() of the producer. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return rx_fill(w) != 0;
}

static void shm_wake(struct fw_wire *wire)
{
	__atomic_store_n(&shm_wire(wire)->rx->consumer_sleeps, 0, __ATOMIC_RELAXED);
}

static void shm_destroy(struct fw_wire *wire)
{
	struct shm_wire *w = shm_wire(wire);

	fw_wire_shm_leave(w->shm, w->end);
	wake_peer(w);
	munmap(w->shm, FW_IPC_SHM_SIZE);
	close(w->wire.fd);
	close(w->peer);
	free(w);
}

static const struct fw_wire_ops shm_ops = {
	.name = "shm",
	.tx = shm_tx,
	.rx = shm_rx,
	.poll_link = shm_poll_link,
	.sleep = shm_sleep,
	.wake = shm_wake,
	.destroy = shm_destroy,
};

static void shm_enter(struct shm_wire *w)
{
	struct fw_wire_shm *shm = w->shm;

	w->tx = &shm->ring[w->end];
	w->rx = &shm->ring[1 - w->end];
	w->tx_data = shm->data[w->end];
	w->rx_data = shm->data[1 - w->end];
	w->tx_prod = __atomic_load_n(&w->tx->prod, __ATOMIC_ACQUIRE) & ~(FW_WIRE_SHM_ALIGN - 1);
	w->rx_cons = __atomic_load_n(&w->rx->prod, __ATOMIC_ACQUIRE) & ~(FW_WIRE_SHM_ALIGN - 1);
	__atomic_store_n(&w->rx->cons, w->rx_cons, __ATOMIC_RELEASE);
	__atomic_store_n(&shm->present[w->end], 1, __ATOMIC_SEQ_CST);
	wake_peer(w);
}

/**
 * fw_wire_shm_create() - one end of a shared-memory wire
 * @msg: FW_IPC_PORT_ADD
 * @fds: memory, eventfd of this end, eventfd of the other end
 * @out: the wire
 *
 * Return: 0 or -errno.
 */
int fw_wire_shm_create(const struct fw_ipc_msg *msg, const int *fds, struct fw_wire **out)
{
	struct shm_wire *w;
	struct stat st;

	static_assert(RECORD_MAX <= FW_WIRE_SHM_RING_SIZE / 8, "a ring holds several frames");
	static_assert(sizeof(struct fw_wire_shm) <= FW_IPC_SHM_SIZE, "memory is large enough");
	if (msg->add.end > 1 || fstat(fds[0], &st) || st.st_size < FW_IPC_SHM_SIZE)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->shm = mmap(NULL, FW_IPC_SHM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	if (w->shm == MAP_FAILED) {
		free(w);
		return -ENOMEM;
	}
	close(fds[0]);
	w->wire.ops = &shm_ops;
	w->wire.fd = fds[1];
	w->wire.edge = true;
	w->peer = fds[2];
	w->end = msg->add.end;
	shm_enter(w);
	*out = &w->wire;
	return 0;
}
