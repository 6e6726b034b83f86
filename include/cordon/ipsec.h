/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Cordon: SAs and policies.
 *
 * An SA has a handle that the driver chooses: an index into the card's table in the low bits, a
 * count in the high ones that differs each time the index is used, so that descriptors and
 * completions which are still under way never meet another SA.
 *
 * What changes with each packet is kept in a state block in the memory of the host: it survives the
 * firmware, and reading statistics is reading memory.
 */
#ifndef CORDON_IPSEC_H
#define CORDON_IPSEC_H

#include "abi.h"
#include "cmd.h"
#include "event.h"
#include "result.h"

#define CORDON_HANDLE_INDEX 0x00ffffff
#define CORDON_HANDLE_COUNT 0xff000000

/**
 * enum cordon_direction - direction of an SA or policy
 * @CORDON_DIRECTION_OUT: to the wire
 * @CORDON_DIRECTION_IN: from the wire, to this host
 * @CORDON_DIRECTION_FORWARD: from the wire, to be forwarded (policies only)
 */
enum cordon_direction {
	CORDON_DIRECTION_OUT = 1,
	CORDON_DIRECTION_IN = 2,
	CORDON_DIRECTION_FORWARD = 3,
};

/**
 * enum cordon_offload - what the card does for an SA
 * @CORDON_OFFLOAD_CRYPTO: encrypts and decrypts; the host does headers, numbers and replay
 * @CORDON_OFFLOAD_PACKET: everything
 */
enum cordon_offload {
	CORDON_OFFLOAD_CRYPTO = 1,
	CORDON_OFFLOAD_PACKET = 2,
};

/**
 * enum cordon_mode - mode of an SA or template
 * @CORDON_MODE_TRANSPORT: RFC 4303 3.1.1
 * @CORDON_MODE_TUNNEL: RFC 4303 3.1.2
 * @CORDON_MODE_BEET: bound end-to-end tunnel, draft-nikander-esp-beet-mode: the inner header isn't
 *	sent, its addresses are those of the SA's selector
 */
enum cordon_mode {
	CORDON_MODE_TRANSPORT = 1,
	CORDON_MODE_TUNNEL = 2,
	CORDON_MODE_BEET = 3,
};

/**
 * enum cordon_cipher - how an SA encrypts
 * @CORDON_CIPHER_NULL: RFC 2410: nothing, no key, no IV
 * @CORDON_CIPHER_AES_CBC: RFC 3602: IV of 16 that can't be foreseen
 * @CORDON_CIPHER_AES_CTR: RFC 3686: salt of 4 (the nonce), IV of 8
 * @CORDON_CIPHER_AES_GCM: RFC 4106: salt of 4, IV of 8; authenticates too
 * @CORDON_CIPHER_AES_GMAC: RFC 4543: the same, but only authenticates
 * @CORDON_CIPHER_AES_CCM: RFC 4309: salt of 3, IV of 8; authenticates too
 * @CORDON_CIPHER_CHACHA20_POLY1305: RFC 7634: salt of 4, IV of 8; authenticates too
 * @CORDON_CIPHER_CNT: length of tables by cipher, not a cipher
 */
enum cordon_cipher {
	CORDON_CIPHER_NULL = 1,
	CORDON_CIPHER_AES_CBC = 2,
	CORDON_CIPHER_AES_CTR = 3,
	CORDON_CIPHER_AES_GCM = 4,
	CORDON_CIPHER_AES_GMAC = 5,
	CORDON_CIPHER_AES_CCM = 6,
	CORDON_CIPHER_CHACHA20_POLY1305 = 7,
	CORDON_CIPHER_CNT = 16,
};

/**
 * enum cordon_auth - how an SA authenticates, where the cipher doesn't
 * @CORDON_AUTH_NONE: the cipher does
 * @CORDON_AUTH_HMAC_SHA1: RFC 2404
 * @CORDON_AUTH_HMAC_SHA256: RFC 4868; ICV of 16, or of 12 as older kernels had it
 * @CORDON_AUTH_HMAC_SHA384: RFC 4868
 * @CORDON_AUTH_HMAC_SHA512: RFC 4868
 * @CORDON_AUTH_AES_XCBC: RFC 3566
 * @CORDON_AUTH_AES_CMAC: RFC 4494
 * @CORDON_AUTH_CNT: length of tables by authentication, not one
 */
enum cordon_auth {
	CORDON_AUTH_NONE = 0,
	CORDON_AUTH_HMAC_SHA1 = 1,
	CORDON_AUTH_HMAC_SHA256 = 2,
	CORDON_AUTH_HMAC_SHA384 = 3,
	CORDON_AUTH_HMAC_SHA512 = 4,
	CORDON_AUTH_AES_XCBC = 5,
	CORDON_AUTH_AES_CMAC = 6,
	CORDON_AUTH_CNT = 16,
};

/**
 * struct cordon_algorithm - what the card takes for a cipher or an authentication
 * @key_bytes: bit n - 1: a key of n bytes, without salt; 0 for CORDON_CIPHER_NULL
 * @icv_bytes: bit n - 1: an ICV of n bytes; 0 for ciphers that don't authenticate
 * @present: 1 = the card has it, 0 = the rest is zero
 * @salt_len: bytes of the salt that follow the key
 * @reserved: zero
 */
struct cordon_algorithm {
	__le64 key_bytes;
	__le32 icv_bytes;
	__u8 present;
	__u8 salt_len;
	__u8 reserved[2];
};
CORDON_ABI_SIZE(struct cordon_algorithm, 16);

#define CORDON_FAMILY_ANY 0
#define CORDON_FAMILY_INET 4
#define CORDON_FAMILY_INET6 6

#define CORDON_KEY_MAX 64
#define CORDON_SALT_MAX 4
#define CORDON_REPLAY_WINDOW_MAX 4096

/**
 * struct cordon_cap_ipsec - CORDON_CAP_IPSEC
 * @cap: header
 * @sa_max: SAs of both directions together; the index in a handle is below it
 * @policy_max: policies
 * @modes: mask of enum cordon_mode
 * @offloads: mask of enum cordon_offload
 * @sa_flags: CORDON_SA_* that are allowed
 * @replay_window_max: greatest window in packets
 * @families: bit CORDON_FAMILY_INET, bit CORDON_FAMILY_INET6
 * @reserved: zero
 * @ciphers: by enum cordon_cipher
 * @auths: by enum cordon_auth
 */
struct cordon_cap_ipsec {
	struct cordon_cap cap;
	__le32 sa_max;
	__le32 policy_max;
	__le32 modes;
	__le32 offloads;
	__le32 sa_flags;
	__le32 replay_window_max;
	__le32 families;
	__le32 reserved;
	struct cordon_algorithm ciphers[CORDON_CIPHER_CNT];
	struct cordon_algorithm auths[CORDON_AUTH_CNT];
};
CORDON_ABI_SIZE(struct cordon_cap_ipsec, 552);

/**
 * struct cordon_selector - which packets, as struct xfrm_selector says it
 * @saddr: source, IPv4 in the first four bytes
 * @daddr: destination
 * @sport: source port, network order; for ICMP the type
 * @sport_mask: bits of @sport that count
 * @dport: destination port, network order; for ICMP the code
 * @dport_mask: bits of @dport that count
 * @family: CORDON_FAMILY_*
 * @saddr_prefix: leading bits of @saddr that count
 * @daddr_prefix: leading bits of @daddr that count
 * @protocol: IP protocol, 0 = any
 * @reserved: zero
 */
struct cordon_selector {
	__u8 saddr[16];
	__u8 daddr[16];
	__be16 sport;
	__be16 sport_mask;
	__be16 dport;
	__be16 dport_mask;
	__u8 family;
	__u8 saddr_prefix;
	__u8 daddr_prefix;
	__u8 protocol;
	__le32 reserved;
};
CORDON_ABI_SIZE(struct cordon_selector, 48);

/**
 * struct cordon_next_hop - Ethernet addresses before the outer IP header
 * @daddr: the neighbour's
 * @saddr: the port's
 * @valid: 1 = @daddr and @saddr can be used, 0 = not resolved: packets are dropped
 * @hop_limit: TTL or hop limit of a tunnel's outer header, 1 or more
 * @reserved: zero
 */
struct cordon_next_hop {
	__u8 daddr[6];
	__u8 saddr[6];
	__u8 valid;
	__u8 hop_limit;
	__le16 reserved;
};
CORDON_ABI_SIZE(struct cordon_next_hop, 16);

/**
 * struct cordon_sa_cfg - CORDON_CMD_SA_ADD
 * @handle: handle, its index must be free
 * @flags: CORDON_SA_*
 * @spi: SPI, network order
 * @reqid: request id of the SA, compared with templates of policies on RX
 * @direction: enum cordon_direction, OUT or IN
 * @offload: enum cordon_offload
 * @mode: enum cordon_mode
 * @family: of @saddr and @daddr
 * @cipher: enum cordon_cipher
 * @icv_len: ICV in bytes
 * @key_len: cipher key in bytes, without salt
 * @auth_key_len: authentication key in bytes, 0 with CORDON_AUTH_NONE
 * @replay_window: IN: window in packets; packet mode: 0 = no check; crypto mode: with ESN the
 *	host's window, 1 or more, else not used
 * @encap_sport: with CORDON_SA_ENCAP: UDP source port, network order
 * @encap_dport: with CORDON_SA_ENCAP: UDP destination port, network order
 * @state_addr: bus address of struct cordon_sa_state, 64-byte aligned
 * @state_len: bytes of it, its bitmap included
 * @if_id: interface id, compared with policies
 * @saddr: outer source
 * @daddr: outer destination
 * @next_hop: OUT, packet mode, tunnel
 * @selector: traffic that may come through; family CORDON_FAMILY_ANY = everything
 *	In BEET and packet mode it has to be two addresses, of hosts
 * @key: cipher key
 * @auth_key: authentication key
 * @salt: salt
 * @auth: enum cordon_auth; CORDON_AUTH_NONE if and only if the cipher authenticates
 * @reserved: zero
 *
 * IN SAs are found by (@daddr, @spi, ESP). Two IN SAs may have the same triple for a moment (the
 * stack updates an SA by adding its successor first): packets take the one that was added last,
 * until it is deleted.
 */
struct cordon_sa_cfg {
	__le32 handle;
	__le32 flags;
	__be32 spi;
	__le32 reqid;
	__u8 direction;
	__u8 offload;
	__u8 mode;
	__u8 family;
	__u8 cipher;
	__u8 icv_len;
	__u8 key_len;
	__u8 auth_key_len;
	__le32 replay_window;
	__be16 encap_sport;
	__be16 encap_dport;
	__le64 state_addr;
	__le32 state_len;
	__le32 if_id;
	__u8 saddr[16];
	__u8 daddr[16];
	struct cordon_next_hop next_hop;
	struct cordon_selector selector;
	__u8 key[CORDON_KEY_MAX];
	__u8 auth_key[CORDON_KEY_MAX];
	__u8 salt[CORDON_SALT_MAX];
	__u8 auth;
	__u8 reserved[3];
};
CORDON_ABI_SIZE(struct cordon_sa_cfg, 280);

/* Sequence numbers have 64 bits, RFC 4303 2.2.1. */
#define CORDON_SA_ESN 0x00000001
/* UDP encapsulation, RFC 3948; the ports in force are those of the state block. */
#define CORDON_SA_ENCAP 0x00000002
/* Tunnel, OUT: don't copy ECN to the outer header; IN: don't copy it back. */
#define CORDON_SA_NO_ECN 0x00000004
/* Tunnel, IN: copy the outer DSCP to the inner header. */
#define CORDON_SA_DECAP_DSCP 0x00000008
/* Tunnel, OUT: outer DSCP is zero. */
#define CORDON_SA_NO_DSCP 0x00000010
/* Tunnel, OUT, IPv4: don't set DF, whatever the inner header says. */
#define CORDON_SA_NO_PMTU_DISC 0x00000020
/* OUT: the 32-bit sequence number may wrap. */
#define CORDON_SA_SEQ_MAY_WRAP 0x00000040

/**
 * struct cordon_sa_update - CORDON_CMD_SA_UPDATE
 * @handle: SA
 * @reserved: zero
 * @next_hop: takes the old one's place
 */
struct cordon_sa_update {
	__le32 handle;
	__le32 reserved;
	struct cordon_next_hop next_hop;
};
CORDON_ABI_SIZE(struct cordon_sa_update, 24);

/* First result that is counted in a state block, and how many are. */
#define CORDON_SA_DROP_FIRST CORDON_RESULT_SA_GONE
#define CORDON_SA_DROP_CNT (CORDON_RESULT_CNT - CORDON_RESULT_SA_GONE)

/**
 * struct cordon_sa_state - state block of an SA
 * @seq: OUT: the last number that was used; IN: the greatest that was verified; both with the
 *	upper half, 0 = none yet
 * @packets: packets that the SA has sent or accepted, as the software counts them
 * @bytes: bytes of them, as the software counts them
 * @flags: CORDON_SA_STATE_*: events that were sent
 * @reserved0: zero
 * @reserved1: zero
 * @soft_packets: limits, ~0 = none. Written by the driver at any time, read by the card for
 *	each packet
 * @hard_packets: packet @hard_packets is the last one that is let through
 * @soft_bytes: the event is sent by the packet that reaches it
 * @hard_bytes: the packet that reaches it is the last one
 * @encap_sport: UDP ports in force, network order
 * @encap_dport: UDP ports in force, network order
 * @reserved2: zero
 * @reserved3: zero
 * @drops: packets dropped, by enum cordon_result - CORDON_SA_DROP_FIRST
 * @bitmap: IN: number n is bit n % 64 of word (n / 64) % words; the words are the least power
 *	of two, and at least two, that hold window + 64 bits
 *
 * The card writes the first 64 bytes, @drops and @bitmap, the driver the limits and ports, and
 * everything once before CORDON_CMD_SA_ADD. The card takes the numbers as they are; they can do
 * harm to no one but this SA.
 *
 * Order of the card's writes, so that it may be killed between any two of them. OUT: @seq is stored
 * before the packet is handed to the wire. IN: for a number n that was verified, @seq is stored if
 * n is greater, then words of @bitmap between the old and the new greatest are cleared, n's bit is
 * set, and only then is the packet handed to the host. So no number comes back, and nothing is
 * accepted twice; killed behind the first store, bits that weren't cleared refuse some numbers that
 * come late.
 *
 * Crypto mode: the numbers are the host's. IN with ESN, the card keeps @seq all the same, to guess
 * the upper half of a number (RFC 4303 A2.2); otherwise @seq isn't used, and @bitmap never is.
 */
struct cordon_sa_state {
	__le64 seq;
	__le64 packets;
	__le64 bytes;
	__le32 flags;
	__le32 reserved0;
	__le64 reserved1[4];
	__le64 soft_packets;
	__le64 hard_packets;
	__le64 soft_bytes;
	__le64 hard_bytes;
	__be16 encap_sport;
	__be16 encap_dport;
	__le32 reserved2;
	__le64 reserved3[3];
	__le64 drops[CORDON_SA_DROP_CNT];
	__le64 bitmap[];
};
CORDON_ABI_SIZE(struct cordon_sa_state, 128 + 8 * CORDON_SA_DROP_CNT);
CORDON_ABI_OFFSET(struct cordon_sa_state, soft_packets, 64);
CORDON_ABI_OFFSET(struct cordon_sa_state, drops, 128);

#define CORDON_SA_STATE_USED 0x00000001
#define CORDON_SA_STATE_SOFT 0x00000002
#define CORDON_SA_STATE_HARD 0x00000004
#define CORDON_SA_STATE_EXHAUSTED 0x00000008

/**
 * enum cordon_action - action of a policy
 * @CORDON_ACTION_ALLOW: with a template: only through an SA that fits it; without: in clear
 * @CORDON_ACTION_BLOCK: drop
 */
enum cordon_action {
	CORDON_ACTION_ALLOW = 1,
	CORDON_ACTION_BLOCK = 2,
};

/**
 * struct cordon_policy_cfg - CORDON_CMD_POLICY_ADD
 * @handle: handle, its index (below policy_max) must be free
 * @priority: the least matches first; of equal ones the one with the lesser @order
 * @order: age of the policy
 * @if_id: interface id
 * @direction: enum cordon_direction
 * @action: enum cordon_action
 * @flags: CORDON_POLICY_*
 * @template_mode: with CORDON_POLICY_TEMPLATE: enum cordon_mode
 * @template_reqid: with CORDON_POLICY_TEMPLATE: request id that the SA must have, 0 = any
 * @template_spi: with CORDON_POLICY_TEMPLATE: SPI that the SA must have, network order, 0 = any
 * @template_family: of the template's addresses
 * @reserved: zero
 * @template_saddr: with CORDON_POLICY_TEMPLATE and tunnel mode: the SA's addresses, zero = any
 * @template_daddr: the same for the destination
 * @selector: packets that it is about
 *
 * OUT policies are kept but not used: on TX the stack's verdict rules.
 */
struct cordon_policy_cfg {
	__le32 handle;
	__le32 priority;
	__le64 order;
	__le32 if_id;
	__u8 direction;
	__u8 action;
	__u8 flags;
	__u8 template_mode;
	__le32 template_reqid;
	__be32 template_spi;
	__u8 template_family;
	__u8 reserved[7];
	__u8 template_saddr[16];
	__u8 template_daddr[16];
	struct cordon_selector selector;
};
CORDON_ABI_SIZE(struct cordon_policy_cfg, 120);

#define CORDON_POLICY_TEMPLATE 0x01
#define CORDON_POLICY_OPTIONAL 0x02

#endif
