/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FW_PATH_PARSE_H
#define FW_PATH_PARSE_H

#include "path/pkt.h"

/**
 * fw_parse_frame() - find the headers of a frame
 * @p: frame; @buf, @off, @len are set
 *
 * Sets @l3 to @is_first_fragment of struct fw_pkt. A frame that isn't IP, or whose headers are cut short or contradict each other, has the
 * fields of the headers that aren't there as zero; it's never an error. IPv6 extension headers are followed (bounded).
 * UDP-encapsulated ESP (port 4500, no non-ESP marker, no keepalive) isn't ESP here: the SA decides.
 */
void fw_parse_frame(struct fw_pkt *p);

/**
 * fw_parse_l3() - the same for a frame whose IP header is known to begin at @l3, whatever the Ethernet header says
 * @p: frame
 * @l3: offset
 *
 * Return: true if there is a whole IPv4 or IPv6 header.
 */
bool fw_parse_l3(struct fw_pkt *p, uint16_t l3);

#endif
