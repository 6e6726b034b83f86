/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Cordon: commands.
 *
 * The driver puts commands into the command ring and moves the doorbell of line 0; the card takes
 * them in order, but may complete them in any order: the tag tells which. Any number may be under
 * way. Input and output lie in host memory that stays the card's until the completion. A command
 * that fails has changed nothing.
 */
#ifndef CORDON_CMD_H
#define CORDON_CMD_H

#include "abi.h"
#include "result.h"

/**
 * struct cordon_cmd - an entry of the command ring
 * @opcode: enum cordon_opcode
 * @tag: the driver's number for this command, comes back in the completion
 * @in_len: bytes at @in_addr, 0 if the command has no input structure
 * @out_len: bytes that the card may write at @out_addr
 * @reserved: zero
 * @in_addr: bus address of the input structure
 * @out_addr: bus address for the output structure
 * @arg: arguments of commands that need no structure, else zero
 */
struct cordon_cmd {
	__le16 opcode;
	__le16 tag;
	__le32 in_len;
	__le32 out_len;
	__le32 reserved;
	__le64 in_addr;
	__le64 out_addr;
	__le64 arg[4];
};
CORDON_ABI_SIZE(struct cordon_cmd, 64);

#define CORDON_CMD_IN_MAX 65536
#define CORDON_CMD_OUT_MAX 65536

/**
 * struct cordon_cmd_completion - an entry of the command completion ring
 * @tag: tag of the command
 * @opcode: opcode of the command
 * @status: enum cordon_cmd_status
 * @param: enum cordon_param: what was refused, CORDON_PARAM_NONE if nothing
 * @min: with @param, the least value that is allowed (for masks: the bits that are allowed)
 * @max: with @param, the greatest value that is allowed
 * @out_len: bytes written at @out_addr
 * @valid: CORDON_COMPLETION_VALID, the rest zero
 */
struct cordon_cmd_completion {
	__le16 tag;
	__le16 opcode;
	__le16 status;
	__le16 param;
	__le64 min;
	__le64 max;
	__le32 out_len;
	__le32 valid;
};
CORDON_ABI_SIZE(struct cordon_cmd_completion, 32);

/**
 * enum cordon_opcode - commands
 * @CORDON_CMD_NOP: does nothing
 * @CORDON_CMD_QUERY_CAPS: writes struct cordon_cap records
 * @CORDON_CMD_QUERY_STATS: writes struct cordon_port_stats
 * @CORDON_CMD_QUEUE_PAIR_CREATE: struct cordon_queue_pair_cfg
 * @CORDON_CMD_QUEUE_PAIR_DESTROY: arg[0] = index. When it completes, the card touches none of
 *	the pair's memory; packets not yet sent aren't completed
 * @CORDON_CMD_QUEUE_PAIR_MODERATE: arg[0] = index, arg[1] = RX microseconds, arg[2] = RX
 *	frames, arg[3] = TX microseconds in the low and TX frames in the high half. An interrupt
 *	waits until so much time went by since the first completion that it is for, or that many
 *	completions wait; 0 = not used, all 0 = at once
 * @CORDON_CMD_PORT_SET: struct cordon_port_cfg
 * @CORDON_CMD_FILTER_SET: struct cordon_filter_cfg
 * @CORDON_CMD_RSS_SET: struct cordon_rss_cfg
 * @CORDON_CMD_SELFTEST: runs the card's self-test (known answers of the crypto engine); status
 *	tells
 * @CORDON_CMD_SA_ADD: struct cordon_sa_cfg, see ipsec.h
 * @CORDON_CMD_SA_DEL: arg[0] = handle. When it completes, no packet uses the SA, and the card
 *	touches its state block no more
 * @CORDON_CMD_SA_UPDATE: struct cordon_sa_update
 * @CORDON_CMD_SA_FLUSH: deletes all SAs of the function
 * @CORDON_CMD_POLICY_ADD: struct cordon_policy_cfg
 * @CORDON_CMD_POLICY_DEL: arg[0] = handle
 * @CORDON_CMD_POLICY_FLUSH: deletes all policies of the function
 * @CORDON_CMD_MACSEC_FIRST: 0x0300 to 0x03ff are kept for MACsec
 * @CORDON_CMD_CRYPTO_FIRST: 0x0400 to 0x04ff are kept for a look-aside crypto engine
 * @CORDON_CMD_PSP_FIRST: 0x0500 to 0x05ff are kept for PSP
 */
enum cordon_opcode {
	CORDON_CMD_NOP = 0x0001,
	CORDON_CMD_QUERY_CAPS = 0x0002,
	CORDON_CMD_QUERY_STATS = 0x0003,
	CORDON_CMD_SELFTEST = 0x0004,
	CORDON_CMD_QUEUE_PAIR_CREATE = 0x0101,
	CORDON_CMD_QUEUE_PAIR_DESTROY = 0x0102,
	CORDON_CMD_QUEUE_PAIR_MODERATE = 0x0103,
	CORDON_CMD_PORT_SET = 0x0110,
	CORDON_CMD_FILTER_SET = 0x0111,
	CORDON_CMD_RSS_SET = 0x0112,
	CORDON_CMD_SA_ADD = 0x0201,
	CORDON_CMD_SA_DEL = 0x0202,
	CORDON_CMD_SA_UPDATE = 0x0203,
	CORDON_CMD_SA_FLUSH = 0x0204,
	CORDON_CMD_POLICY_ADD = 0x0211,
	CORDON_CMD_POLICY_DEL = 0x0212,
	CORDON_CMD_POLICY_FLUSH = 0x0213,
	CORDON_CMD_MACSEC_FIRST = 0x0300,
	CORDON_CMD_CRYPTO_FIRST = 0x0400,
	CORDON_CMD_PSP_FIRST = 0x0500,
};

/**
 * enum cordon_cmd_status - result of a command
 * @CORDON_CMD_STATUS_OK: done
 * @CORDON_CMD_STATUS_UNKNOWN_OPCODE: no such command (errno: EOPNOTSUPP)
 * @CORDON_CMD_STATUS_INVALID: a length, reserved field or value breaks the contract (EINVAL)
 * @CORDON_CMD_STATUS_UNSUPPORTED: well-formed, but the card can't do it (EOPNOTSUPP)
 * @CORDON_CMD_STATUS_FULL: the table is full (ENOSPC)
 * @CORDON_CMD_STATUS_EXISTS: the handle is in use (EEXIST)
 * @CORDON_CMD_STATUS_NOT_FOUND: there is no such object (ENOENT)
 * @CORDON_CMD_STATUS_BUSY: the object is in a state that forbids it (EBUSY)
 * @CORDON_CMD_STATUS_DMA: memory named by the command can't be reached (EFAULT)
 * @CORDON_CMD_STATUS_NO_MEMORY: the card is out of memory (ENOMEM)
 * @CORDON_CMD_STATUS_FAULT: the card failed (EIO)
 */
enum cordon_cmd_status {
	CORDON_CMD_STATUS_OK = 0,
	CORDON_CMD_STATUS_UNKNOWN_OPCODE = 1,
	CORDON_CMD_STATUS_INVALID = 2,
	CORDON_CMD_STATUS_UNSUPPORTED = 3,
	CORDON_CMD_STATUS_FULL = 4,
	CORDON_CMD_STATUS_EXISTS = 5,
	CORDON_CMD_STATUS_NOT_FOUND = 6,
	CORDON_CMD_STATUS_BUSY = 7,
	CORDON_CMD_STATUS_DMA = 8,
	CORDON_CMD_STATUS_NO_MEMORY = 9,
	CORDON_CMD_STATUS_FAULT = 10,
};

/**
 * enum cordon_param - which part of a command was refused
 * @CORDON_PARAM_NONE: none in particular
 * @CORDON_PARAM_LENGTH: length of the input or output
 * @CORDON_PARAM_RESERVED: a reserved field isn't zero
 * @CORDON_PARAM_HANDLE: handle or index
 * @CORDON_PARAM_VECTOR: interrupt vector
 * @CORDON_PARAM_RING: address or size of a ring
 * @CORDON_PARAM_MTU: MTU
 * @CORDON_PARAM_FLAGS: flags; min holds the bits that are allowed
 * @CORDON_PARAM_ADDRESS: number or kind of filter addresses
 * @CORDON_PARAM_DIRECTION: direction
 * @CORDON_PARAM_OFFLOAD: crypto or packet
 * @CORDON_PARAM_MODE: mode of the SA or template
 * @CORDON_PARAM_FAMILY: address family
 * @CORDON_PARAM_PROTOCOL: IPsec protocol
 * @CORDON_PARAM_CIPHER: cipher
 * @CORDON_PARAM_KEY_LENGTH: key length in bits
 * @CORDON_PARAM_ICV_LENGTH: ICV length in bits
 * @CORDON_PARAM_SPI: SPI
 * @CORDON_PARAM_REPLAY_WINDOW: replay window in packets
 * @CORDON_PARAM_STATE: address or size of the state block
 * @CORDON_PARAM_ENCAP: UDP encapsulation
 * @CORDON_PARAM_SELECTOR: selector
 * @CORDON_PARAM_ACTION: action of the policy
 * @CORDON_PARAM_RSS: RSS key or table
 * @CORDON_PARAM_AUTH: authentication
 */
enum cordon_param {
	CORDON_PARAM_NONE = 0,
	CORDON_PARAM_LENGTH = 1,
	CORDON_PARAM_RESERVED = 2,
	CORDON_PARAM_HANDLE = 3,
	CORDON_PARAM_VECTOR = 4,
	CORDON_PARAM_RING = 5,
	CORDON_PARAM_MTU = 6,
	CORDON_PARAM_FLAGS = 7,
	CORDON_PARAM_ADDRESS = 8,
	CORDON_PARAM_DIRECTION = 9,
	CORDON_PARAM_OFFLOAD = 10,
	CORDON_PARAM_MODE = 11,
	CORDON_PARAM_FAMILY = 12,
	CORDON_PARAM_PROTOCOL = 13,
	CORDON_PARAM_CIPHER = 14,
	CORDON_PARAM_KEY_LENGTH = 15,
	CORDON_PARAM_ICV_LENGTH = 16,
	CORDON_PARAM_SPI = 17,
	CORDON_PARAM_REPLAY_WINDOW = 18,
	CORDON_PARAM_STATE = 19,
	CORDON_PARAM_ENCAP = 20,
	CORDON_PARAM_SELECTOR = 21,
	CORDON_PARAM_ACTION = 22,
	CORDON_PARAM_RSS = 23,
	CORDON_PARAM_AUTH = 24,
};

/**
 * struct cordon_cap - header of a capability record
 * @type: enum cordon_cap_type
 * @len: bytes of the record, this header included, a multiple of 8
 * @reserved: zero
 *
 * CORDON_CMD_QUERY_CAPS writes the records one behind the other. A reader skips types that it
 * doesn't know, takes as much as it knows of a longer record, and refuses a shorter one.
 */
struct cordon_cap {
	__le16 type;
	__le16 len;
	__le32 reserved;
};
CORDON_ABI_SIZE(struct cordon_cap, 8);

/**
 * enum cordon_cap_type - capability records
 * @CORDON_CAP_PORT: struct cordon_cap_port, always there
 * @CORDON_CAP_IPSEC: struct cordon_cap_ipsec, not there if the card does no IPsec
 */
enum cordon_cap_type {
	CORDON_CAP_PORT = 1,
	CORDON_CAP_IPSEC = 2,
};

/**
 * struct cordon_cap_port - what the port can do
 * @cap: header
 * @features: CORDON_PORT_* that may be set in struct cordon_port_cfg, and CORDON_FEATURE_*
 * @queue_pairs: queue pairs
 * @ring_log2: log2 of the greatest number of entries of a TX or RX ring
 * @mtu: greatest MTU
 * @addresses: entries of the address filter
 * @reserved: zero
 */
struct cordon_cap_port {
	struct cordon_cap cap;
	__le32 features;
	__le16 queue_pairs;
	__le16 ring_log2;
	__le32 mtu;
	__le16 addresses;
	__le16 reserved;
};
CORDON_ABI_SIZE(struct cordon_cap_port, 24);

/**
 * struct cordon_port_cfg - CORDON_CMD_PORT_SET: the port's whole configuration
 * @mtu: from CORDON_MTU_MIN to the capability's: frames with a longer payload are neither sent
 *	nor received
 * @flags: CORDON_PORT_*
 * @mac: unicast address of the port
 * @reserved: zero
 */
struct cordon_port_cfg {
	__le32 mtu;
	__le32 flags;
	__u8 mac[6];
	__le16 reserved;
};
CORDON_ABI_SIZE(struct cordon_port_cfg, 16);

/* Frames are taken from the wire. */
#define CORDON_PORT_RX_ENABLE 0x00000001
/* Frames to any address, of any VLAN. */
#define CORDON_PORT_PROMISCUOUS 0x00000002
/* Frames to any multicast address. */
#define CORDON_PORT_ALL_MULTICAST 0x00000004
/* Take off the outermost 802.1Q tag. */
#define CORDON_PORT_VLAN_STRIP 0x00000008
/* Frames with an 802.1Q tag only of the VLANs in the filter; VLAN 0 and untagged frames always. */
#define CORDON_PORT_VLAN_FILTER 0x00000010
/* Verify TCP and UDP checksums. */
#define CORDON_PORT_RX_CSUM 0x00000020
/* Compute the RSS hash and spread by it. */
#define CORDON_PORT_RSS 0x00000040
/* Decrypt for crypto-mode SAs. Packet-mode SAs don't depend on it. */
#define CORDON_PORT_ESP 0x00000080

/* Capabilities without a switch: checksum on TX, segmentation of TCP and of UDP, VLAN insertion. */
#define CORDON_FEATURE_TX_CSUM 0x00010000
#define CORDON_FEATURE_TSO 0x00020000
#define CORDON_FEATURE_USO 0x00040000
#define CORDON_FEATURE_TX_VLAN 0x00080000

/**
 * struct cordon_filter_cfg - CORDON_CMD_FILTER_SET: the whole address and VLAN filter
 * @count: addresses that follow
 * @reserved: zero
 * @vlans: a bit for each VLAN, VLAN n is bit n % 64 of word n / 64
 * @addresses: unicast and multicast addresses beside the port's own, two bytes of zero behind each
 */
struct cordon_filter_cfg {
	__le32 count;
	__le32 reserved;
	__le64 vlans[64];
	__u8 addresses[][8];
};
CORDON_ABI_SIZE(struct cordon_filter_cfg, 520);

/**
 * struct cordon_rss_cfg - CORDON_CMD_RSS_SET
 * @hash: CORDON_RSS_* that are hashed over addresses and ports (or SPI); other IP packets over
 *	addresses alone
 * @reserved: zero
 * @key: Toeplitz key
 * @table: queue pair for the low seven bits of the hash
 */
struct cordon_rss_cfg {
	__le32 hash;
	__le32 reserved;
	__u8 key[CORDON_RSS_KEY_SIZE];
	__u8 table[CORDON_RSS_TABLE_SIZE];
};
CORDON_ABI_SIZE(struct cordon_rss_cfg, 176);

#define CORDON_RSS_TCP4 0x00000001
#define CORDON_RSS_UDP4 0x00000002
#define CORDON_RSS_TCP6 0x00000004
#define CORDON_RSS_UDP6 0x00000008
#define CORDON_RSS_ESP4 0x00000010
#define CORDON_RSS_ESP6 0x00000020
#define CORDON_RSS_ALL 0x0000003f

/**
 * struct cordon_queue_pair_cfg - CORDON_CMD_QUEUE_PAIR_CREATE
 * @index: the pair, below the capability's queue_pairs; its doorbell line is
 *	CORDON_LINE_QUEUE_PAIR(index)
 * @vector: interrupt vector, below the vectors register
 * @tx_log2: log2 of the entries of @tx_ring and @tx_cq
 * @rx_log2: log2 of the entries of @rx_ring and @rx_cq
 * @reserved: zero
 * @tx_ring: struct cordon_tx_desc slots, 64-byte aligned as the others
 * @tx_cq: struct cordon_tx_completion, zeroed
 * @rx_ring: struct cordon_rx_desc
 * @rx_cq: struct cordon_rx_completion, zeroed
 *
 * All indices begin at 0; the driver writes zeros to the doorbell line before this command.
 */
struct cordon_queue_pair_cfg {
	__le16 index;
	__le16 vector;
	__u8 tx_log2;
	__u8 rx_log2;
	__le16 reserved;
	__le64 tx_ring;
	__le64 tx_cq;
	__le64 rx_ring;
	__le64 rx_cq;
};
CORDON_ABI_SIZE(struct cordon_queue_pair_cfg, 40);

/**
 * struct cordon_port_stats - CORDON_CMD_QUERY_STATS: counters since the function was enabled
 * @rx_packets: packets handed to the host
 * @rx_bytes: bytes of them
 * @rx_multicast: of these, with a multicast (not broadcast) address
 * @tx_packets: frames that left (each segment counts)
 * @tx_bytes: bytes of them
 * @tx_segmented: packets that were segmented
 * @rx_wire_packets: frames that came from the wire
 * @rx_wire_bytes: bytes of them
 * @rx_sa_packets: ESP packets that were decrypted and verified
 * @tx_sa_packets: ESP packets that were made or encrypted
 * @rx_reassembled: ESP packets that were put together of fragments
 * @rx_merged: of the frames from the wire that were such fragments, all but one of each packet
 * @reserved: zero
 * @rx_drops: frames from the wire that weren't handed to the host, by enum cordon_result
 * @tx_drops: packets (segments) of the host that didn't leave, by enum cordon_result
 *
 * rx_wire_packets = rx_packets + rx_merged + sum of rx_drops, the reason SA_MISS excluded, and the
 * fragments that wait for others, up to a second. What becomes of a reassembled packet is counted
 * once; of one that isn't completed, each fragment.
 */
struct cordon_port_stats {
	__le64 rx_packets;
	__le64 rx_bytes;
	__le64 rx_multicast;
	__le64 tx_packets;
	__le64 tx_bytes;
	__le64 tx_segmented;
	__le64 rx_wire_packets;
	__le64 rx_wire_bytes;
	__le64 rx_sa_packets;
	__le64 tx_sa_packets;
	__le64 rx_reassembled;
	__le64 rx_merged;
	__le64 reserved[4];
	__le64 rx_drops[CORDON_RESULT_CNT];
	__le64 tx_drops[CORDON_RESULT_CNT];
};
CORDON_ABI_SIZE(struct cordon_port_stats, 128 + 16 * CORDON_RESULT_CNT);

#endif
