/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ESP, RFC 4303, in and out, for one burst of packets. Each function judges each packet by itself:
 * p->result is CORDON_RESULT_OK or the reason to drop it (the per-SA drop counters in the state
 * block are counted here; the port's by the caller).
 */
#ifndef FW_PATH_ESP_H
#define FW_PATH_ESP_H

#include "path/sa.h"

/**
 * fw_esp_out_packet() - packet mode: make ESP packets of plain IP packets
 * @pkts: packets, parsed (fw_parse_l3()), each with its @sa; headroom FW_PKT_HEADROOM
 * @count: packets
 *
 * Numbers are taken in order; the state block holds the number before this returns. Limits,
 * exhaustion, neighbour, family, length are checked first: a packet that isn't sent takes no
 * number.
 * BEET: as a tunnel, but the outer header has the fields of the inner one, which stays behind; IPv4
 * packets with options or fragmented are a mismatch.
 * Tunnel: outer header by RFC 4301 5.1.2, field by field as Linux makes it (fw_iphdr_encap()), L2
 * header from the next hop; tags before @l3 stay. Transport: the ESP header goes behind the IP
 * header (IPv6: behind hop-by-hop, routing and destination options before a routing header).
 */
void fw_esp_out_packet(struct fw_pkt **pkts, uint32_t count);

/**
 * fw_esp_out_crypto() - crypto mode: encrypt whole ESP packets in place
 * @pkts: packets with @sa and @esp set
 * @seqs: 64-bit sequence number of each
 * @count: packets
 */
void fw_esp_out_crypto(struct fw_pkt **pkts, const uint64_t *seqs, uint32_t count);

/**
 * fw_esp_in() - decrypt and verify
 * @pkts: packets with @sa and @esp set (UDP encapsulation: @esp points behind the UDP header)
 * @count: packets
 *
 * Each packet's @result is set; @flags are added to.
 * Crypto-mode SAs: payload decrypted in place, nothing removed, flag CORDON_RX_SA_CRYPTO; on
 * AUTH_FAILED the packet is as it came. Without ESN the AAD takes the number of the packet; with
 * ESN the high half is guessed from the state block's @seq, which the card keeps for crypto mode
 * too (RFC 4303 A2.2). What the card can't process (a fragment, a short packet, other encapsulation
 * than the SA's) stays as it came, with result OK and without the flag: the stack does it.
 * Packet-mode SAs: replay check, ICV, replay commit, trailer, ECN and DSCP (tunnel), outer headers
 * removed, Ethernet header rebuilt before the inner packet, parsed anew, selector matched; flag
 * CORDON_RX_SA_PACKET. Packets and bytes are counted behind the trailer, as in Linux. A dummy
 * packet (next header 59) moves the window but isn't counted as a packet. CORDON_RX_CSUM_GOOD is
 * set for what came through UDP encapsulation in transport mode, and mustn't be taken back.
 */
void fw_esp_in(struct fw_pkt **pkts, uint32_t count);

#endif
