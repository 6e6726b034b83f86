/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FW_PATH_SEGMENT_H
#define FW_PATH_SEGMENT_H

#include "path/pkt.h"

/**
 * struct fw_segment - a walk over a packet that is to be segmented
 * @src: the packet, up to CORDON_TX_LENGTH_MAX bytes, parsed
 * @header_len: bytes up to the payload
 * @mss: payload of each segment but the last
 * @offset: payload bytes done
 * @index: segments done
 * @fixed_id: IPv4 ID doesn't count up
 */
struct fw_segment {
	const struct fw_pkt *src;
	uint32_t header_len;
	uint32_t mss;
	uint32_t offset;
	uint32_t index;
	bool fixed_id;
};

/**
 * fw_segment_init() - begin
 * @s: walk
 * @src: packet, parsed (l3, l4, l4_proto TCP or UDP)
 * @header_len: from the descriptor
 * @mss: from the descriptor
 * @fixed_id: from the descriptor
 *
 * Return: number of segments, or -EINVAL if the packet can't be segmented so.
 */
int fw_segment_init(struct fw_segment *s, const struct fw_pkt *src, uint32_t header_len,
		    uint32_t mss, bool fixed_id);

/**
 * fw_segment_next() - make the next segment
 * @s: walk
 * @dst: buffer of FW_PKT_BUFFER bytes, @off is set; gets the frame and @src's parsed fields
 *
 * Lengths, IPv4 ID and checksum, TCP sequence number, FIN and PSH (last one only), CWR (first one
 * only), UDP length are set, and the TCP or UDP checksum is complete.
 *
 * Return: true, or false when there are no more.
 */
bool fw_segment_next(struct fw_segment *s, struct fw_pkt *dst);

#endif
