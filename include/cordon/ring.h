/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Cordon: descriptors and completions of the data path.
 *
 * A queue pair has four rings in the memory of the host: TX slots and TX completions, RX buffers
 * and RX completions. A completion ring has as many entries as its submission ring, and the driver
 * reuses a submission slot only after it has consumed its completion, so a completion ring can't
 * overflow.
 *
 * The card writes the last 32-bit word of a completion last. Its CORDON_COMPLETION_VALID bit is 1
 * on the first pass over the ring, 0 on the second, and so on; the driver clears the ring when it
 * makes it.
 */
#ifndef CORDON_RING_H
#define CORDON_RING_H

#include "abi.h"
#include "result.h"

/**
 * enum cordon_queue_type - what a queue carries
 * @CORDON_QUEUE_COMMAND: commands and their completions
 * @CORDON_QUEUE_EVENT: events
 * @CORDON_QUEUE_NET: a pair of TX and RX rings
 * @CORDON_QUEUE_CRYPTO: kept for a look-aside crypto engine
 * @CORDON_QUEUE_PSP: kept for PSP key rotation and its events
 */
enum cordon_queue_type {
	CORDON_QUEUE_COMMAND = 0,
	CORDON_QUEUE_EVENT = 1,
	CORDON_QUEUE_NET = 2,
	CORDON_QUEUE_CRYPTO = 3,
	CORDON_QUEUE_PSP = 4,
};

#define CORDON_COMPLETION_VALID 0x80000000

/* Most segments and bytes of one TX packet (before segmentation). */
#define CORDON_TX_SEGMENTS_MAX 20
#define CORDON_TX_LENGTH_MAX 65550
#define CORDON_TX_SLOTS_MAX 12

/**
 * struct cordon_tx_desc - first slot of a TX packet
 * @addr: bus address of the first segment
 * @len: length of the first segment, 1 or more
 * @sa: handle of the SA that the stack chose, if a CORDON_TX_SA_* flag is set, else 0
 * @flags: CORDON_TX_*
 * @slots: slots of this packet, this one included
 * @segments: segments of this packet, the first one included, at most CORDON_TX_SEGMENTS_MAX
 * @mss: with CORDON_TX_SEGMENT, payload bytes of each segment but the last, else 0
 * @header_len: with CORDON_TX_SEGMENT, bytes from the frame's start to the end of the TCP or
 *	UDP header, else 0
 * @csum_start: with CORDON_TX_CSUM, offset from the frame's start where the sum begins, else 0
 * @csum_offset: with CORDON_TX_CSUM, offset from @csum_start to the 16-bit field, else 0
 * @vlan_tci: with CORDON_TX_VLAN, the tag to insert behind the addresses, else 0
 * @l3_offset: with CORDON_TX_SA_*, offset of the outermost IP header that exists in the frame,
 *	else 0
 *
 * Slots that follow: struct cordon_tx_ext if CORDON_TX_EXT is set, then as many struct
 * cordon_tx_segs as @segments - 1 need. The card reads each slot once, and each byte of a segment
 * once.
 *
 * A packet with an SA flag whose SA can't be used is dropped, never sent in clear. In packet mode
 * the Ethernet header before
 * @l3_offset may hold anything: the card writes it anew for a tunnel (from the SA's next hop)
 *	and its type for any mode.
 */
struct cordon_tx_desc {
	__le64 addr;
	__le32 len;
	__le32 sa;
	__le16 flags;
	__u8 slots;
	__u8 segments;
	__le16 mss;
	__le16 header_len;
	__le16 csum_start;
	__le16 csum_offset;
	__le16 vlan_tci;
	__le16 l3_offset;
};
CORDON_ABI_SIZE(struct cordon_tx_desc, 32);

/* Fill in the checksum at @csum_start + @csum_offset; with CORDON_TX_SEGMENT in each segment. */
#define CORDON_TX_CSUM 0x0001
/* Segment: TCP or UDP, told by the IP header. */
#define CORDON_TX_SEGMENT 0x0002
/* Insert @vlan_tci. */
#define CORDON_TX_VLAN 0x0004
/*
 * Crypto mode: the frame holds a whole ESP packet, encrypt and authenticate it. Needs
 * CORDON_TX_EXT.
 */
#define CORDON_TX_SA_CRYPTO 0x0010
/* Packet mode: the frame is a plain IP packet, make an ESP packet of it. */
#define CORDON_TX_SA_PACKET 0x0020
/* The second slot is a struct cordon_tx_ext. */
#define CORDON_TX_EXT 0x0040
/* With CORDON_TX_SEGMENT: the IPv4 ID stays the same in all segments. */
#define CORDON_TX_FIXED_ID 0x0080
#define CORDON_TX_FLAGS 0x00f7

/**
 * struct cordon_tx_ext - what crypto mode (and MACsec) need to know
 * @seq: the packet's 64-bit sequence number; also becomes the IV
 * @esp_offset: offset of the ESP header from the frame's start
 * @reserved0: zero
 * @secy: kept for MACsec: handle of the SecY, zero
 * @reserved: zero
 *
 * The ESP packet ends with the frame: trailer and room for the ICV are in it, the 8 bytes of the IV
 * are not yet filled in.
 */
struct cordon_tx_ext {
	__le64 seq;
	__le16 esp_offset;
	__le16 reserved0;
	__le32 secy;
	__le64 reserved[2];
};
CORDON_ABI_SIZE(struct cordon_tx_ext, 32);

/**
 * struct cordon_tx_segs - two more segments of a TX packet
 * @addr: bus addresses
 * @len: lengths, 1 or more; 0 only for the second one of the last slot
 * @reserved: zero
 */
struct cordon_tx_segs {
	__le64 addr[2];
	__le32 len[2];
	__le64 reserved;
};
CORDON_ABI_SIZE(struct cordon_tx_segs, 32);

/**
 * struct cordon_tx_completion - a TX packet is done with, its memory is the driver's again
 * @slot: index (free running) of the packet's first slot
 * @result: enum cordon_result
 * @segments: frames that left for it
 * @reserved: zero
 * @valid: CORDON_COMPLETION_VALID, the rest zero
 *
 * One for each packet, in the order of the ring.
 */
struct cordon_tx_completion {
	__le32 slot;
	__le16 result;
	__le16 segments;
	__le32 reserved;
	__le32 valid;
};
CORDON_ABI_SIZE(struct cordon_tx_completion, 16);

/**
 * struct cordon_rx_desc - an empty buffer
 * @addr: bus address
 * @len: bytes that the card may write, from CORDON_RX_BUFFER_MIN to CORDON_RX_BUFFER_MAX
 * @reserved: zero
 */
struct cordon_rx_desc {
	__le64 addr;
	__le32 len;
	__le32 reserved;
};
CORDON_ABI_SIZE(struct cordon_rx_desc, 16);

#define CORDON_RX_BUFFER_MIN 512
#define CORDON_RX_BUFFER_MAX 65536

/**
 * struct cordon_rx_completion - a buffer is filled
 * @hash: Toeplitz hash if @hash_type isn't CORDON_HASH_NONE
 * @sa: with CORDON_RX_SA_*, handle of the SA that the packet came through
 * @len: bytes in this buffer
 * @flags: CORDON_RX_*
 * @vlan_tci: with CORDON_RX_VLAN, the tag that was taken off
 * @result: enum cordon_result; other than OK only with CORDON_RX_SA_CRYPTO (the stack counts
 *	the failure)
 * @hash_type: enum cordon_hash
 * @buffer: index (free running) of the RX buffer
 * @reserved: zero
 * @valid: CORDON_COMPLETION_VALID, the rest zero
 *
 * Buffers are filled in ring order, and to the brim before the next is begun. A packet that needs
 * several has CORDON_RX_MORE in all but the last of its completions; the fields other than @len,
 * @flags & CORDON_RX_MORE and @buffer are valid in the first.
 */
struct cordon_rx_completion {
	__le32 hash;
	__le32 sa;
	__le32 len;
	__le32 flags;
	__le16 vlan_tci;
	__u8 result;
	__u8 hash_type;
	__le32 buffer;
	__le32 reserved;
	__le32 valid;
};
CORDON_ABI_SIZE(struct cordon_rx_completion, 32);

/* The packet goes on in the next buffer. */
#define CORDON_RX_MORE 0x00000001
/* The outermost VLAN tag was taken off. */
#define CORDON_RX_VLAN 0x00000002
/*
 * The TCP or UDP checksum (of the decrypted packet, if it was encrypted) was verified and is right.
 */
#define CORDON_RX_CSUM_GOOD 0x00000004
/*
 * Crypto mode: an ESP packet, @sa was found. With result OK payload decrypted and ICV verified,
 * else unchanged.
 */
#define CORDON_RX_SA_CRYPTO 0x00000010
/*
 * Packet mode: verified, decrypted, unwrapped, matched against selector and policies; a plain
 * packet.
 */
#define CORDON_RX_SA_PACKET 0x00000020

/**
 * enum cordon_hash - over what the RSS hash was computed
 * @CORDON_HASH_NONE: not computed
 * @CORDON_HASH_L3: addresses
 * @CORDON_HASH_L4: addresses and ports
 * @CORDON_HASH_SPI: addresses and SPI
 */
enum cordon_hash {
	CORDON_HASH_NONE = 0,
	CORDON_HASH_L3 = 1,
	CORDON_HASH_L4 = 2,
	CORDON_HASH_SPI = 3,
};

#endif
