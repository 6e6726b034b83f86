/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet on its way through the card, in private memory of the firmware (never in memory that a
 * guest or another process can change meanwhile). Code in this folder knows packets, SAs and
 * policies; it knows neither PCI nor rings nor wires.
 */
#ifndef FW_PATH_PKT_H
#define FW_PATH_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cordon/result.h"

/*
 * Room before the frame for an outer IPv6 header, UDP, ESP with IV, and MACsec; room behind for
 * trailers and ICVs.
 */
#define FW_PKT_HEADROOM 192
#define FW_PKT_TAILROOM 320
/* Greatest frame on the wire: MTU, Ethernet header, two tags. */
#define FW_PKT_FRAME_MAX (9600 + 22)
#define FW_PKT_BUFFER (FW_PKT_HEADROOM + FW_PKT_FRAME_MAX + FW_PKT_TAILROOM)

struct fw_sa;

/**
 * struct fw_pkt - one frame
 * @buf: its buffer, 64-byte aligned
 * @size: bytes of the buffer
 * @off: where in the buffer the frame (its Ethernet header) begins
 * @len: bytes of the frame
 * @l3: offset of the outermost IP header from the frame's start, 0 = not IP
 * @l4: offset of the header behind IP (and IPv6 extension headers), 0 = none
 * @l4_proto: its protocol
 * @family: 4 or 6, 0 = not IP
 * @vlan_cnt: tags in the frame
 * @vlan_tci: TCI of the outermost tag, or of the one that was taken off
 * @ethertype: type behind all tags, host order
 * @is_fragment: any fragment
 * @is_first_fragment: the first of several
 * @l3_len: total length of the IP packet by its header
 * @flags: CORDON_RX_* for the completion
 * @hash: RSS hash
 * @hash_type: enum cordon_hash
 * @result: enum cordon_result
 * @sa: the SA that it came through or goes through
 * @esp: offset of the ESP header, 0 = no ESP
 * @frame_max: most bytes that the frame may have behind fw_esp_out_packet(), 0 = any
 */
struct fw_pkt {
	uint8_t *buf;
	uint32_t size;
	uint32_t off;
	uint32_t len;
	uint16_t l3;
	uint16_t l4;
	uint8_t l4_proto;
	uint8_t family;
	uint8_t vlan_cnt;
	uint8_t hash_type;
	uint16_t vlan_tci;
	uint16_t ethertype;
	bool is_fragment;
	bool is_first_fragment;
	uint16_t esp;
	uint32_t frame_max;
	uint32_t l3_len;
	uint32_t flags;
	uint32_t hash;
	enum cordon_result result;
	struct fw_sa *sa;
};

/** fw_pkt_data() - first byte of the frame */
static inline uint8_t *fw_pkt_data(const struct fw_pkt *p)
{
	return p->buf + p->off;
}

#endif
