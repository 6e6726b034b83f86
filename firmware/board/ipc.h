/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What board and firmware say to each other, over one SOCK_SEQPACKET pair for each firmware process. The firmware finds its end as
 * file descriptor FW_IPC_FD. One struct fw_ipc_msg for each packet, file descriptors beside it as SCM_RIGHTS.
 *
 * The board asks, the firmware answers each request that carries a sequence number with FW_IPC_ACK, in order. The board never waits
 * for an answer while it owes the hypervisor one for something else; a firmware that doesn't answer FW_IPC_DMA_UNMAP, FW_IPC_DISABLE or
 * FW_IPC_DMA_CLEAR in time is killed.
 *
 * The firmware opens nothing by itself: the doorbell memory, wires, interrupt and kick eventfds are all handed to it.
 */
#ifndef BOARD_IPC_H
#define BOARD_IPC_H

#include <stdint.h>

#define FW_IPC_FD 3
#define FW_IPC_FDS_MAX 16
#define FW_IPC_PORTS_MAX 16
#define FW_IPC_NAME_MAX 32

/* Bytes of the memory of FW_IPC_WIRE_SHM; born zeroed, it outlives the firmware at either end. */
#define FW_IPC_SHM_SIZE (4l * 1024 * 1024)

/**
 * enum fw_ipc_type - messages
 * @FW_IPC_ACK: firmware to board: request @seq is done, @error is 0 or -errno
 * @FW_IPC_PORT_ADD: a function; fds: doorbell memory, kick eventfd, then those of the wire (see enum fw_ipc_wire)
 * @FW_IPC_START: all functions were added; the firmware begins to work. ACK = ready
 * @FW_IPC_DMA_MAP: guest memory; fds: the memory
 * @FW_IPC_DMA_UNMAP: exactly one earlier map; after the ACK the firmware doesn't touch it
 * @FW_IPC_DMA_CLEAR: all maps of the function are gone; after the ACK the firmware touches none
 * @FW_IPC_IRQ_SET: interrupt eventfds of vectors @irq.first ...; one fd for each of @irq.count vectors; @irq.count of 0 = all are gone
 * @FW_IPC_ENABLE: the function is enabled with these rings
 * @FW_IPC_DISABLE: the function is reset: queues, filters, SAs, policies are gone and keys wiped; maps and vectors stay
 * @FW_IPC_FAILED: firmware to board, without a request: the function can't go on; @error is enum cordon_error
 */
enum fw_ipc_type {
	FW_IPC_ACK = 1,
	FW_IPC_PORT_ADD,
	FW_IPC_START,
	FW_IPC_DMA_MAP,
	FW_IPC_DMA_UNMAP,
	FW_IPC_DMA_CLEAR,
	FW_IPC_IRQ_SET,
	FW_IPC_ENABLE,
	FW_IPC_DISABLE,
	FW_IPC_FAILED,
};

/**
 * enum fw_ipc_wire - what a port is plugged into
 * @FW_IPC_WIRE_NONE: nothing, the link is down
 * @FW_IPC_WIRE_SHM: another port, in whichever process; fds: shared memory of struct fw_wire_shm, eventfd that wakes this end, eventfd
 *	that wakes the other end; @end is 0 or 1
 * @FW_IPC_WIRE_UNIX: a UNIX datagram socket, bound; a frame for each datagram; fds: the socket; the peer's path is in @path
 * @FW_IPC_WIRE_TAP: a TAP interface; fds: the open queue
 */
enum fw_ipc_wire {
	FW_IPC_WIRE_NONE = 0,
	FW_IPC_WIRE_SHM,
	FW_IPC_WIRE_UNIX,
	FW_IPC_WIRE_TAP,
};

/**
 * struct fw_ipc_limits - what --limit takes away; all zero except where a limit is set
 * @sa_max: SAs, 0 = no limit
 * @policy_max: policies, 0 = no limit
 * @queue_pairs: queue pairs, 0 = no limit
 * @replay_window_max: packets, 0 = no limit
 * @no_features: CORDON_FEATURE_* and CORDON_PORT_* that the card doesn't have
 * @no_ciphers: mask of enum cordon_cipher
 * @no_auths: mask of enum cordon_auth
 * @no_modes: mask of modes
 * @no_offloads: mask of offloads
 * @no_key_bits: of AES ciphers: bit 0 = 128, bit 1 = 192, bit 2 = 256 bit keys
 * @no_icv_bytes: bit n - 1: ICVs of n bytes
 * @no_sa_flags: as in struct cordon_cap_ipsec
 * @no_families: the same
 */
struct fw_ipc_limits {
	uint32_t sa_max;
	uint32_t policy_max;
	uint32_t queue_pairs;
	uint32_t replay_window_max;
	uint32_t no_features;
	uint32_t no_ciphers;
	uint32_t no_auths;
	uint32_t no_modes;
	uint32_t no_offloads;
	uint32_t no_key_bits;
	uint32_t no_icv_bytes;
	uint32_t no_sa_flags;
	uint32_t no_families;
};

/**
 * struct fw_ipc_msg - a message
 * @type: enum fw_ipc_type
 * @port: number of the function within the firmware process
 * @seq: number of the request, 0 = no answer wanted
 * @error: for ACK and FAILED
 * @reserved: zero
 * @add: PORT_ADD
 * @add.vectors: PORT_ADD: interrupt vectors of the function
 * @add.wire: PORT_ADD: enum fw_ipc_wire
 * @add.end: PORT_ADD: end of the shared memory wire
 * @add.has_capture: PORT_ADD: the last fd is a file that pcapng is written to
 * @add.mac: PORT_ADD: permanent address
 * @add.name: PORT_ADD: name of the port
 * @add.path: PORT_ADD: peer of a UNIX wire
 * @add.limits: PORT_ADD
 * @dma: DMA_*
 * @dma.addr: DMA_*: guest bus address
 * @dma.size: DMA_*: bytes
 * @dma.offset: DMA_MAP: where in the fd
 * @dma.writable: DMA_MAP: the card may write
 * @irq: IRQ_SET
 * @irq.first: IRQ_SET
 * @irq.count: IRQ_SET
 * @enable: ENABLE
 * @enable.cmd_sq: ENABLE, as the registers
 * @enable.cmd_cq: ENABLE
 * @enable.event_ring: ENABLE
 * @enable.ring_sizes: ENABLE
 */
struct fw_ipc_msg {
	uint32_t type;
	uint32_t port;
	uint64_t seq;
	int32_t error;
	uint32_t reserved;
	union {
		struct {
			uint32_t vectors;
			uint32_t wire;
			uint32_t end;
			uint32_t has_capture;
			uint8_t mac[6];
			char name[FW_IPC_NAME_MAX];
			char path[108];
			struct fw_ipc_limits limits;
		} add;
		struct {
			uint64_t addr;
			uint64_t size;
			uint64_t offset;
			uint32_t writable;
		} dma;
		struct {
			uint32_t first;
			uint32_t count;
		} irq;
		struct {
			uint64_t cmd_sq;
			uint64_t cmd_cq;
			uint64_t event_ring;
			uint32_t ring_sizes;
		} enable;
	};
};

#endif
