/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fields of IP headers, and what a tunnel does with them.
 */
#ifndef FW_PATH_IPHDR_H
#define FW_PATH_IPHDR_H

#include "cordon/ipsec.h"
#include "path/bytes.h"
#include "path/pkt.h"

#define FW_ETHER_LEN 14
#define FW_ETHERTYPE_IPV4 0x0800
#define FW_ETHERTYPE_IPV6 0x86dd
#define FW_ETHERTYPE_VLAN 0x8100
#define FW_ETHERTYPE_QINQ 0x88a8

#define FW_IPV4_LEN 20
#define FW_IPV6_LEN 40
#define FW_IPV6_FRAGMENT_LEN 8
#define FW_UDP_LEN 8
#define FW_ESP_LEN 8
/* ESP in UDP, RFC 3948. */
#define FW_PORT_NAT_T 4500

#define FW_PROTO_HOP_BY_HOP 0
#define FW_PROTO_ICMP 1
#define FW_PROTO_IPIP 4
#define FW_PROTO_TCP 6
#define FW_PROTO_UDP 17
#define FW_PROTO_IPV6 41
#define FW_PROTO_ROUTING 43
#define FW_PROTO_FRAGMENT 44
#define FW_PROTO_GRE 47
#define FW_PROTO_ESP 50
#define FW_PROTO_AH 51
#define FW_PROTO_ICMPV6 58
#define FW_PROTO_NONE 59
#define FW_PROTO_DEST_OPTS 60
#define FW_PROTO_BEETPH 94
#define FW_PROTO_IPCOMP 108
#define FW_PROTO_SCTP 132
#define FW_PROTO_UDPLITE 136

#define FW_IPV4_DF 0x4000
#define FW_IPV4_MF 0x2000
#define FW_IPV4_OFFSET 0x1fff

/** fw_ethertype() - type of an address family */
static inline uint16_t fw_ethertype(uint8_t family)
{
	return family == CORDON_FAMILY_INET ? FW_ETHERTYPE_IPV4 : FW_ETHERTYPE_IPV6;
}

/** fw_iphdr_len() - bytes of a header of an address family without options */
static inline uint32_t fw_iphdr_len(uint8_t family)
{
	return family == CORDON_FAMILY_INET ? FW_IPV4_LEN : FW_IPV6_LEN;
}

/** fw_iphdr_dsfield() - DSCP and ECN of a header; Return: the octet */
static inline uint8_t fw_iphdr_dsfield(const uint8_t *ip, uint8_t family)
{
	return family == CORDON_FAMILY_INET ? ip[1] : (uint8_t)(fw_get_be16(ip) >> 4);
}

/**
 * fw_iphdr_set_ipv4() - change 16 bits of an IPv4 header and its checksum with them, RFC 1624
 * @ip: header
 * @offset: of the bits, even
 * @value: new value
 *
 * The checksum isn't made anew: one that was wrong stays wrong.
 */
void fw_iphdr_set_ipv4(uint8_t *ip, unsigned int offset, uint16_t value);

/**
 * struct fw_outer - outer header of a tunnel
 * @saddr: source
 * @daddr: destination
 * @family: of the outer header
 * @inner_family: of the packet in the tunnel
 * @flags: CORDON_SA_*
 * @hop_limit: TTL or hop limit
 * @proto: protocol behind the header: ESP or UDP
 * @id: IPv4 ID for packets that may be fragmented
 * @len: bytes of the outer packet, its header included
 * @inner_len: bytes of the inner packet
 */
struct fw_outer {
	const uint8_t *saddr;
	const uint8_t *daddr;
	uint8_t family;
	uint8_t inner_family;
	uint8_t hop_limit;
	uint8_t proto;
	uint16_t id;
	uint32_t flags;
	uint32_t len;
	uint32_t inner_len;
};

/**
 * fw_iphdr_encap() - write the outer header of a tunnel, RFC 4301 5.1.2
 * @ip: where
 * @inner: header of the inner packet
 * @outer: what it says
 *
 * Field by field what Linux makes: ECN by RFC 3168 9.1.1 (CE becomes ECT(0)), DF copied from IPv4,
 * and set for IPv6 that is longer than the least IPv6 MTU.
 */
void fw_iphdr_encap(uint8_t *ip, const uint8_t *inner, const struct fw_outer *outer);

/**
 * fw_iphdr_translate() - write a header with the fields of another one, as BEET mode does
 * @ip: where
 * @from: the other one, not in the same place
 * @from_family: of it
 * @to: @saddr, @daddr, @family, @proto and @len of the new one
 *
 * Linux carries TTL, DSCP, ECN and what both families have of ID, DF and flow label; options and
 * extension headers stay behind.
 */
void fw_iphdr_translate(uint8_t *ip, const uint8_t *from, uint8_t from_family,
			const struct fw_outer *to);

/**
 * fw_iphdr_decap() - carry DSCP and congestion from the outer to the inner header
 * @inner: inner header
 * @family: of it
 * @outer: DSCP and ECN of the outer header
 * @flags: CORDON_SA_*
 *
 * CE is set on a packet that is ECN-capable, RFC 6040 4.2; one that isn't passes as it is, as in
 * Linux.
 */
void fw_iphdr_decap(uint8_t *inner, uint8_t family, uint8_t outer, uint32_t flags);

#endif
