/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire between two ports: memory that the firmware processes of both ends share, with one ring
 * of frames for each direction.
 *
 * Both ends can write all of it at any time, and each end may belong to another tenant: so each end
 * keeps its own index privately, reads the other's once, checks it, and copies frames in and out.
 * What a hostile peer can do is to lose, garble or invent frames, as on any cable.
 */
#ifndef WIRE_SHM_H
#define WIRE_SHM_H

#include <stdint.h>

#include "cordon/abi.h"

#define FW_WIRE_SHM_RING_SIZE (512u * 1024)

/**
 * struct fw_wire_shm_ring - control words of one direction, each on a cache line of its own
 * @prod: bytes written, free running; written by the producer
 * @reserved0: zero, as the others
 * @cons: bytes read, free running; written by the consumer
 * @reserved1: zero
 * @consumer_sleeps: set to 1 by a consumer that wants to be woken by the next frame
 * @reserved2: zero
 * @producer_waits: set to 1 by a producer that wants to be woken when there is room
 * @reserved3: zero
 *
 * Whoever sets one of the last two executes a full barrier and looks at the index once more;
 * whoever moves the index executes a full barrier, takes the word back to 0 and wakes the other end
 * if it was 1.
 */
struct fw_wire_shm_ring {
	uint32_t prod;
	uint32_t reserved0[15];
	uint32_t cons;
	uint32_t reserved1[15];
	uint32_t consumer_sleeps;
	uint32_t reserved2[15];
	uint32_t producer_waits;
	uint32_t reserved3[15];
};
CORDON_ABI_SIZE(struct fw_wire_shm_ring, 256);

/**
 * struct fw_wire_shm - the shared memory, FW_IPC_SHM_SIZE bytes, zeroed when it is made
 * @present: 1 if a firmware serves this end. Written by the firmware of the end, and taken back by
 *	the board when that process dies (the board then wakes the other end)
 * @reserved: zero
 * @ring: control words; ring e carries frames from end e
 * @reserved1: zero
 * @data: frames: records of a 32-bit length and the frame, padded to FW_WIRE_SHM_ALIGN, wrapped at
 *	the end
 */
struct fw_wire_shm {
	uint32_t present[2];
	uint32_t reserved[14];
	struct fw_wire_shm_ring ring[2];
	uint8_t reserved1[4096 - 64 - 2 * 256];
	uint8_t data[2][FW_WIRE_SHM_RING_SIZE];
};
CORDON_ABI_OFFSET(struct fw_wire_shm, data, 4096);

#define FW_WIRE_SHM_HEADER 8u
#define FW_WIRE_SHM_ALIGN 16u

/**
 * fw_wire_shm_leave() - mark an end as gone
 * @shm: memory
 * @end: 0 or 1
 *
 * Context: the firmware on exit, or the board for a firmware that died. The caller wakes the other
 * end.
 */
static inline void fw_wire_shm_leave(struct fw_wire_shm *shm, uint32_t end)
{
	__atomic_store_n(&shm->present[end], 0, __ATOMIC_SEQ_CST);
}

#endif
