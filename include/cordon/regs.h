/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Cordon: PCI identity, BARs, registers, doorbells.
 *
 * BAR0 holds the control registers. Each access is trapped by the hypervisor (tens of
 * microseconds), so they serve set-up, health and the waking of a sleeping firmware, nothing else.
 * The board answers each access by itself and at once; nothing that the firmware does can delay a
 * reply.
 *
 * BAR2 holds two pages of ordinary memory that driver and firmware share without a trap: the
 * doorbell page, which the driver writes, and the wake page, which the firmware writes.
 *
 * BAR4 holds the MSI-X table and its pending bits.
 */
#ifndef CORDON_REGS_H
#define CORDON_REGS_H

#include "abi.h"

/* The vendor number is not assigned by the PCI-SIG. */
#define CORDON_PCI_VENDOR_ID 0xc0d0
#define CORDON_PCI_DEVICE_ID 0x0001
#define CORDON_PCI_CLASS 0x020000

#define CORDON_BAR_REGS 0
#define CORDON_BAR_DOORBELL 2
#define CORDON_BAR_MSIX 4

#define CORDON_BAR_REGS_SIZE 0x1000
#define CORDON_BAR_DOORBELL_SIZE 0x2000
#define CORDON_BAR_MSIX_SIZE 0x1000
#define CORDON_MSIX_TABLE_OFFSET 0x0000
#define CORDON_MSIX_PBA_OFFSET 0x0800

/*
 * Vector 0: command completions and events. Vector 1 + n: queue pair n, if there are that many;
 * else vectors are shared.
 */
#define CORDON_VECTORS_MAX (1 + CORDON_QUEUE_PAIRS_MAX)

/**
 * struct cordon_regs - layout of BAR0
 * @magic: RO, CORDON_MAGIC
 * @abi: RO, CORDON_ABI_VERSION_MAJOR and _MINOR
 * @fw_version: RO, version of the firmware that runs, one byte each for major, minor, patch
 *	(high byte zero)
 * @status: RO, CORDON_STATUS_*
 * @control: RW, CORDON_CONTROL_*, 0 after reset
 * @error: RO, enum cordon_error: why STATUS_FAILED is set, 0 if it isn't
 * @vectors: RO, number of interrupt vectors of the function
 * @kick: WO, number of a doorbell line: wakes the firmware because the ring of this line has
 *	crossed the wake index
 * @cmd_sq: RW, bus address of the command ring, 64-byte aligned
 * @cmd_cq: RW, bus address of the command completion ring, 64-byte aligned
 * @event_ring: RW, bus address of the event ring, 64-byte aligned
 * @ring_sizes: RW, CORDON_RING_SIZES_*
 * @reserved0: zero
 * @mac_lo: RO, first four bytes of the permanent address, byte 0 lowest
 * @mac_hi: RO, last two bytes of it
 * @reserved: zero
 *
 * The registers from @cmd_sq to @ring_sizes are read by the card when CONTROL_ENABLE goes from 0 to
 * 1 and may be written only while the function isn't enabled; a write at another time is ignored.
 * 32-bit registers take 32-bit accesses, 64-bit registers also two 32-bit ones. Any other access
 * reads zero, and a write by it is ignored.
 */
struct cordon_regs {
	__le32 magic;
	__le32 abi;
	__le32 fw_version;
	__le32 status;
	__le32 control;
	__le32 error;
	__le32 vectors;
	__le32 kick;
	__le64 cmd_sq;
	__le64 cmd_cq;
	__le64 event_ring;
	__le32 ring_sizes;
	__le32 reserved0;
	__le32 mac_lo;
	__le32 mac_hi;
	__le32 reserved[14];
};
CORDON_ABI_SIZE(struct cordon_regs, 128);
CORDON_ABI_OFFSET(struct cordon_regs, magic, 0x00);
CORDON_ABI_OFFSET(struct cordon_regs, status, 0x0c);
CORDON_ABI_OFFSET(struct cordon_regs, kick, 0x1c);
CORDON_ABI_OFFSET(struct cordon_regs, cmd_sq, 0x20);
CORDON_ABI_OFFSET(struct cordon_regs, ring_sizes, 0x38);
CORDON_ABI_OFFSET(struct cordon_regs, mac_lo, 0x40);

#define CORDON_MAGIC 0x4e445243 /* "CRDN" */

#define CORDON_ABI_VERSION_MAJOR 0xffff0000
#define CORDON_ABI_VERSION_MINOR 0x0000ffff

/* A firmware runs and takes CONTROL_ENABLE. */
#define CORDON_STATUS_READY 0x00000001
/*
 * The rings of the function are in use: commands are taken. Set after CONTROL_ENABLE when the
 * firmware has taken the addresses.
 */
#define CORDON_STATUS_ENABLED 0x00000002
/*
 * A reset goes on. Until it ends the card may still write to the memory of the host; after it, it
 * doesn't.
 */
#define CORDON_STATUS_RESETTING 0x00000004
/*
 * The firmware is gone: the data path is frozen. The card keeps this until the function is reset.
 */
#define CORDON_STATUS_FAILED 0x00000008
/* Counts the starts of the firmware, so that the driver notices one that it didn't ask for. */
#define CORDON_STATUS_GENERATION 0xffff0000

/* 0 to 1: take the ring addresses and begin. 1 to 0: the same as a reset. */
#define CORDON_CONTROL_ENABLE 0x00000001
/* Writing 1 resets the function: queues, filters, SAs, policies and keys are gone. Reads as 0. */
#define CORDON_CONTROL_RESET 0x00000002

/*
 * Log2 of the entries: from CORDON_RING_LOG2_MIN to CORDON_RING_LOG2_MAX. Command and command
 * completion ring have equal numbers.
 */
#define CORDON_RING_SIZES_CMD 0x000000ff
#define CORDON_RING_SIZES_EVENT 0x0000ff00

/**
 * enum cordon_error - why the function failed
 * @CORDON_ERROR_NONE: it didn't
 * @CORDON_ERROR_FIRMWARE_DIED: the firmware process ended by itself or was killed
 * @CORDON_ERROR_FIRMWARE_HUNG: the firmware didn't let go of memory or finish a reset in time,
 *	and was killed
 * @CORDON_ERROR_BAD_RINGS: CONTROL_ENABLE with an address or size that can't be used
 * @CORDON_ERROR_DMA: a ring of the function can't be reached any more
 */
enum cordon_error {
	CORDON_ERROR_NONE = 0,
	CORDON_ERROR_FIRMWARE_DIED = 1,
	CORDON_ERROR_FIRMWARE_HUNG = 2,
	CORDON_ERROR_BAD_RINGS = 3,
	CORDON_ERROR_DMA = 4,
};

/*
 * Doorbells. A line belongs to one CPU's worth of queues, so that no two CPUs write to one cache
 * line. Line 0 belongs to the command and event rings, line 1 + n to queue pair n; later lines are
 * kept for queues of other types (look-aside crypto).
 */
#define CORDON_DOORBELL_LINES 64
#define CORDON_LINE_ADMIN 0
#define CORDON_LINE_QUEUE_PAIR(n) (1 + (n))

/**
 * struct cordon_doorbell - one line of the doorbell page, written by the driver, read by the
 * firmware
 * @sq_prod: producer index of the submission ring (TX ring; for line 0 the command ring)
 * @rx_prod: producer index of the RX buffer ring (line 0: unused, zero)
 * @sq_cons: consumer index of the completion ring that belongs to @sq_prod
 * @rx_cons: consumer index of the RX completion ring (line 0: of the event ring)
 * @arm: counted up by the driver to ask for one interrupt
 * @reserved: zero
 *
 * All indices run freely over 32 bits; the entry is the index modulo the ring's size.
 *
 * Interrupts: the card raises the vector of a line once for each new value of @arm, as soon as one
 * of the line's completion rings holds an entry at or after the consumer index given here (and
 * interrupt moderation allows it). The driver writes @sq_cons and
 * @rx_cons, then @arm, then looks at its rings again: an entry written before the card saw the
 *	new @arm raises no interrupt.
 *
 * An index that claims more than the ring holds is ignored, and the queue pair is stopped
 * (CORDON_EVENT_QUEUE_ERROR).
 */
struct cordon_doorbell {
	__le32 sq_prod;
	__le32 rx_prod;
	__le32 sq_cons;
	__le32 rx_cons;
	__le32 arm;
	__le32 reserved[11];
};
CORDON_ABI_SIZE(struct cordon_doorbell, 64);

/**
 * struct cordon_wake - one line of the wake page, written by the firmware, read by the driver
 * @sq_event: the index at which the firmware wants to be woken
 * @reserved: zero
 *
 * After it has moved @sq_prod from old to new, the driver executes a full barrier, reads @sq_event,
 * and writes the line's number to the kick register if (__u32)(new - event - 1) < (__u32)(new -
 * old). A firmware that is awake keeps @sq_event far from the producer index; one that is about to
 * sleep sets it to the producer index, executes a full barrier, and looks at the ring once more.
 */
struct cordon_wake {
	__le32 sq_event;
	__le32 reserved[15];
};
CORDON_ABI_SIZE(struct cordon_wake, 64);

#define CORDON_DOORBELL_PAGE_OFFSET 0x0000
#define CORDON_WAKE_PAGE_OFFSET 0x1000

#endif
