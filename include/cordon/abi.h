/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Cordon: rules that hold for all headers of the contract.
 *
 * These files are all that the driver and the card have in common. Everything in them is
 * little-endian (addresses, SPIs and ports that appear on the wire stay in network order and say
 * so), naturally packed, without bit-fields. Reserved fields must be zero when written; the reader
 * checks them. Values of enumerations are fixed for ever: new ones are added, old ones are never
 * used again.
 */
#ifndef CORDON_ABI_H
#define CORDON_ABI_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#include <linux/types.h>
#ifndef static_assert
#define static_assert _Static_assert
#endif
#endif

/* Size of a structure, checked by both compilers. */
#define CORDON_ABI_SIZE(type, size) \
	static_assert(sizeof(type) == (size), "size of " #type)

/* Offset of a member, checked by both compilers. */
#define CORDON_ABI_OFFSET(type, member, offset) \
	static_assert(offsetof(type, member) == (offset), "offset of " #member)

/* Read and make a field that is described by a contiguous mask. */
#define CORDON_LOW_BIT(mask) ((mask) & (~(mask) + 1))
#define CORDON_GET(mask, value) (((value) & (mask)) / CORDON_LOW_BIT(mask))
#define CORDON_PREP(mask, value) (((value) * CORDON_LOW_BIT(mask)) & (mask))

/*
 * Version of the contract. A driver works with every card of its own major version; a minor version
 * only adds. What a card can do is never derived from the version but asked for by
 * CORDON_CMD_QUERY_CAPS.
 */
#define CORDON_ABI_MAJOR 1
#define CORDON_ABI_MINOR 0

/* Most that a function has of each; a card says by its capabilities how many of them it offers. */
#define CORDON_QUEUE_PAIRS_MAX 16
#define CORDON_RING_LOG2_MIN 6
#define CORDON_RING_LOG2_MAX 14
#define CORDON_MTU_MIN 68
#define CORDON_MTU_MAX 9600
#define CORDON_RSS_KEY_SIZE 40
#define CORDON_RSS_TABLE_SIZE 128

#endif
