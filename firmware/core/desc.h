/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_DESC_H
#define CORE_DESC_H

#include <stdint.h>

#include "cordon/ring.h"

struct fw_queue;

/**
 * struct fw_desc - a TX packet as its slots describe it, in host order
 * @addr: bus address of each segment
 * @len: bytes of each
 * @segments: number of them
 * @total: bytes of all
 * @sa: handle, with an SA flag
 * @flags: CORDON_TX_*
 * @mss: as in struct cordon_tx_desc
 * @header_len: as there
 * @csum_start: as there
 * @csum_offset: as there
 * @vlan_tci: as there
 * @l3_offset: as there
 * @esp_offset: as in struct cordon_tx_ext
 * @slots: slots of the packet
 * @seq: as in struct cordon_tx_ext
 */
struct fw_desc {
	uint64_t addr[CORDON_TX_SEGMENTS_MAX];
	uint32_t len[CORDON_TX_SEGMENTS_MAX];
	uint32_t segments;
	uint32_t total;
	uint32_t sa;
	uint16_t flags;
	uint16_t mss;
	uint32_t header_len;
	uint32_t csum_start;
	uint32_t csum_offset;
	uint16_t vlan_tci;
	uint32_t l3_offset;
	uint16_t esp_offset;
	uint32_t slots;
	uint64_t seq;
};

int fw_desc_read(struct fw_queue *q, uint32_t avail, struct fw_desc *d);
int fw_desc_gather(struct fw_queue *q, const struct fw_desc *d, uint8_t *dst);

#define FW_DESC_SA (CORDON_TX_SA_CRYPTO | CORDON_TX_SA_PACKET)

#endif
