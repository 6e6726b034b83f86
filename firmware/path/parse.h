/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FW_PATH_PARSE_H
#define FW_PATH_PARSE_H

#include "path/pkt.h"

/**
 * fw_parse_frame() - find the headers of a frame
 * @p: frame; @buf, @off, @len are set
 *
 * Sets @l3 to @esp and @l3_len of struct fw_pkt, but @vlan_tci only if there is a tag: that of a
 * tag that was taken off before stays. A frame that isn't IP, or whose headers are cut short or
 * contradict each other, has the fields of the headers that aren't there as zero; it's never an
 * error. @l4_proto is set even if the header itself isn't whole (@l4 is 0 then) or the packet is a
 * later fragment; a packet shorter than @l3_len says is for the caller to find. IPv6 extension
 * headers are followed to the packet's end.
 * UDP-encapsulated ESP (port 4500, no non-ESP marker, no keepalive) isn't ESP here: the SA decides.
 */
void fw_parse_frame(struct fw_pkt *p);

/**
 * fw_parse_l3() - the same for a frame whose IP header is known to begin at @l3, whatever the
 * Ethernet header says
 * @p: frame
 * @l3: offset
 *
 * Return: true if there is a whole IPv4 or IPv6 header.
 */
bool fw_parse_l3(struct fw_pkt *p, uint16_t l3);

/**
 * struct fw_ipv6_walk - a walk along the headers of an IPv6 packet
 * @off: offset of the header from the frame's start
 * @type_off: offset of the byte that says which header it is
 * @proto: which header it is
 * @fragment: the fragment header that was passed: its offset and flags, 0 = none or an atomic one,
 * RFC 6946
 */
struct fw_ipv6_walk {
	uint32_t off;
	uint32_t type_off;
	uint8_t proto;
	uint16_t fragment;
};

/**
 * fw_ipv6_walk_init() - begin with the header behind the fixed one
 * @w: walk
 * @p: IPv6 packet, @l3 is set
 */
void fw_ipv6_walk_init(struct fw_ipv6_walk *w, const struct fw_pkt *p);

/**
 * fw_ipv6_walk_next() - pass an extension header
 * @w: walk
 * @p: packet
 *
 * Return: true if there was one, whole, and it was passed.
 */
bool fw_ipv6_walk_next(struct fw_ipv6_walk *w, const struct fw_pkt *p);

/** fw_pkt_is_whole() - is the IP packet as long as its header says; Return: true if it is */
static inline bool fw_pkt_is_whole(const struct fw_pkt *p)
{
	return p->family && p->l3 <= p->len && p->l3_len <= p->len - p->l3;
}

#endif
