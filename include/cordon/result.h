/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Cordon: what became of a packet. One list for TX completions, RX completions and all drop
 * counters, so that each packet that goes in comes out or is counted under exactly one reason.
 */
#ifndef CORDON_RESULT_H
#define CORDON_RESULT_H

#include "abi.h"

/**
 * enum cordon_result - result of a packet
 * @CORDON_RESULT_OK: sent or received as asked
 * @CORDON_RESULT_BAD_DESC: the descriptor breaks the contract (reserved bits, segments, offsets)
 * @CORDON_RESULT_DMA: memory of the host that the descriptor names can't be reached
 * @CORDON_RESULT_TOO_LONG: longer than the port's MTU allows, or than the card can take
 * @CORDON_RESULT_TOO_SHORT: shorter than its headers claim
 * @CORDON_RESULT_BAD_CSUM_REQUEST: checksum start or offset outside the packet
 * @CORDON_RESULT_BAD_TSO: segmentation asked for a packet that can't be segmented
 * @CORDON_RESULT_LINK_DOWN: the wire has no other end
 * @CORDON_RESULT_WIRE_FULL: the wire took no more frames
 * @CORDON_RESULT_NO_BUFFER: RX, the queue had no buffers
 * @CORDON_RESULT_FILTERED: RX, not for this port (address or VLAN)
 * @CORDON_RESULT_RX_DISABLED: RX, the port isn't up
 * @CORDON_RESULT_BAD_L2: RX, a frame shorter than an Ethernet header or longer than the port takes
 * @CORDON_RESULT_SA_GONE: TX, the descriptor's SA doesn't exist (any more)
 * @CORDON_RESULT_SA_EXPIRED: a hard limit of the SA is reached
 * @CORDON_RESULT_SA_EXHAUSTED: the SA has no sequence numbers left
 * @CORDON_RESULT_SA_NO_NEIGHBOUR: TX, the SA's next hop isn't resolved
 * @CORDON_RESULT_SA_STATE: the SA's state block can't be reached
 * @CORDON_RESULT_SA_MISMATCH: the packet doesn't fit the SA (family, direction, layout of the
 *	ESP packet)
 * @CORDON_RESULT_SA_MISS: RX, no SA for this SPI; such packets go up as they came, the count
 *	informs
 * @CORDON_RESULT_AUTH_FAILED: RX, the ICV is wrong
 * @CORDON_RESULT_REPLAY: RX, seen before
 * @CORDON_RESULT_BAD_TRAILER: RX, no room for payload and trailer, or padding longer than both
 * @CORDON_RESULT_BAD_INNER: RX, the decrypted packet isn't a whole IP packet
 * @CORDON_RESULT_DUMMY: RX, next header 59: a dummy packet, discarded as RFC 4303 2.6 asks
 * @CORDON_RESULT_SELECTOR: RX, the decrypted packet doesn't match its SA's selector
 * @CORDON_RESULT_POLICY_NONE: RX, no policy for a packet that came through a tunnel
 * @CORDON_RESULT_POLICY_TEMPLATE: RX, the packet matches a policy that wants another SA, or
 *	came in clear where the policy protects
 * @CORDON_RESULT_POLICY_BLOCK: RX, the packet matches a policy that blocks
 * @CORDON_RESULT_FRAGMENT: RX, a fragment of an ESP packet for a packet SA whose others didn't come
 *	in time, overlap, or contradict each other; or one that came twice
 * @CORDON_RESULT_CRYPTO: the crypto engine failed
 * @CORDON_RESULT_STOPPED: TX, the queue pair was destroyed before the packet was sent
 * @CORDON_RESULT_REPLAY_WINDOW: RX, behind the replay window, or number 0
 * @CORDON_RESULT_BAD_MODE: RX, tunnel: the next header isn't IP, or there is no room for its header
 * @CORDON_RESULT_CNT: number of results, not a result
 */
enum cordon_result {
	CORDON_RESULT_OK = 0,
	CORDON_RESULT_BAD_DESC = 1,
	CORDON_RESULT_DMA = 2,
	CORDON_RESULT_TOO_LONG = 3,
	CORDON_RESULT_TOO_SHORT = 4,
	CORDON_RESULT_BAD_CSUM_REQUEST = 5,
	CORDON_RESULT_BAD_TSO = 6,
	CORDON_RESULT_LINK_DOWN = 7,
	CORDON_RESULT_WIRE_FULL = 8,
	CORDON_RESULT_NO_BUFFER = 9,
	CORDON_RESULT_FILTERED = 10,
	CORDON_RESULT_RX_DISABLED = 11,
	CORDON_RESULT_BAD_L2 = 12,
	CORDON_RESULT_SA_GONE = 16,
	CORDON_RESULT_SA_EXPIRED = 17,
	CORDON_RESULT_SA_EXHAUSTED = 18,
	CORDON_RESULT_SA_NO_NEIGHBOUR = 19,
	CORDON_RESULT_SA_STATE = 20,
	CORDON_RESULT_SA_MISMATCH = 21,
	CORDON_RESULT_SA_MISS = 22,
	CORDON_RESULT_AUTH_FAILED = 23,
	CORDON_RESULT_REPLAY = 24,
	CORDON_RESULT_BAD_TRAILER = 25,
	CORDON_RESULT_BAD_INNER = 26,
	CORDON_RESULT_DUMMY = 27,
	CORDON_RESULT_SELECTOR = 28,
	CORDON_RESULT_POLICY_NONE = 29,
	CORDON_RESULT_POLICY_TEMPLATE = 30,
	CORDON_RESULT_POLICY_BLOCK = 31,
	CORDON_RESULT_FRAGMENT = 32,
	CORDON_RESULT_CRYPTO = 33,
	CORDON_RESULT_STOPPED = 34,
	CORDON_RESULT_REPLAY_WINDOW = 35,
	CORDON_RESULT_BAD_MODE = 36,
	CORDON_RESULT_CNT = 48,
};

#endif
