// SPDX-License-Identifier: BSD-3-Clause
/*
 * TX descriptors: each slot is copied once, and only the copy is judged.
 *
 * If the number of slots can't be, nobody knows where the next packet begins: the queue pair stops.
 * Any other fault costs only its own packet.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/desc.h"
#include "core/port.h"
#include "core/queue.h"

/* A field that goes with a flag is zero without it. */
static bool fields_ok(const struct fw_desc *d)
{
	bool segment = d->flags & CORDON_TX_SEGMENT;

	if (d->flags & ~CORDON_TX_FLAGS)
		return false;
	if (!(d->flags & FW_DESC_SA) && (d->sa || d->l3_offset))
		return false;
	if ((d->flags & FW_DESC_SA) == FW_DESC_SA)
		return false;
	if (!segment && (d->mss || d->header_len || d->flags & CORDON_TX_FIXED_ID))
		return false;
	if (!(d->flags & CORDON_TX_CSUM) && (d->csum_start || d->csum_offset))
		return false;
	if (!(d->flags & CORDON_TX_VLAN) && d->vlan_tci)
		return false;
	return !(d->flags & CORDON_TX_SA_CRYPTO) == !(d->flags & CORDON_TX_EXT);
}

static bool features_ok(const struct fw_port *port, const struct fw_desc *d)
{
	if (d->flags & CORDON_TX_CSUM && !fw_port_offers(port, CORDON_FEATURE_TX_CSUM))
		return false;
	if (d->flags & CORDON_TX_VLAN && !fw_port_offers(port, CORDON_FEATURE_TX_VLAN))
		return false;
	return true;
}

static bool slots_ok(const struct fw_desc *d)
{
	uint32_t ext = d->flags & CORDON_TX_EXT ? 1 : 0;

	return d->segments >= 1 && d->segments <= CORDON_TX_SEGMENTS_MAX &&
	       d->slots == 1 + ext + d->segments / 2;
}

static void first_decode(struct fw_desc *d, const struct cordon_tx_desc *slot)
{
	d->addr[0] = le64toh(slot->addr);
	d->len[0] = le32toh(slot->len);
	d->segments = slot->segments;
	d->slots = slot->slots;
	d->sa = le32toh(slot->sa);
	d->flags = le16toh(slot->flags);
	d->mss = le16toh(slot->mss);
	d->header_len = le16toh(slot->header_len);
	d->csum_start = le16toh(slot->csum_start);
	d->csum_offset = le16toh(slot->csum_offset);
	d->vlan_tci = le16toh(slot->vlan_tci);
	d->l3_offset = le16toh(slot->l3_offset);
	d->esp_offset = 0;
	d->seq = 0;
}

static int ext_read(struct fw_queue *q, uint32_t index, struct fw_desc *d)
{
	struct cordon_tx_ext ext;

	if (fw_mem_ring_read(&q->tx_ring, index, &ext))
		return -EFAULT;
	d->seq = le64toh(ext.seq);
	d->esp_offset = le16toh(ext.esp_offset);
	if (ext.reserved0 || ext.secy || ext.reserved[0] || ext.reserved[1])
		return CORDON_RESULT_BAD_DESC;
	return CORDON_RESULT_OK;
}

static int segs_read(struct fw_queue *q, uint32_t index, struct fw_desc *d)
{
	for (uint32_t i = 1; i < d->segments; i += 2, index++) {
		struct cordon_tx_segs segs;

		if (fw_mem_ring_read(&q->tx_ring, index, &segs))
			return -EFAULT;
		if (segs.reserved)
			return CORDON_RESULT_BAD_DESC;
		d->addr[i] = le64toh(segs.addr[0]);
		d->len[i] = le32toh(segs.len[0]);
		if (i + 1 < d->segments) {
			d->addr[i + 1] = le64toh(segs.addr[1]);
			d->len[i + 1] = le32toh(segs.len[1]);
		} else if (segs.addr[1] || segs.len[1]) {
			return CORDON_RESULT_BAD_DESC;
		}
	}
	return CORDON_RESULT_OK;
}

static int total_add(struct fw_desc *d)
{
	d->total = 0;
	for (uint32_t i = 0; i < d->segments; i++) {
		if (!d->len[i])
			return CORDON_RESULT_BAD_DESC;
		if (d->len[i] > CORDON_TX_LENGTH_MAX - d->total)
			return CORDON_RESULT_TOO_LONG;
		d->total += d->len[i];
	}
	return CORDON_RESULT_OK;
}

/**
 * fw_desc_read() - read and judge the slots of the packet at the consumer index
 * @q: queue pair
 * @avail: slots that the driver has given, not 0
 * @d: the packet; its @slots are right unless the return value is negative
 *
 * Return: enum cordon_result, -EINVAL if the ring can't be followed any further, -EFAULT if it
 * can't be reached.
 */
int fw_desc_read(struct fw_queue *q, uint32_t avail, struct fw_desc *d)
{
	struct cordon_tx_desc first;
	uint32_t next = q->tx_cons + 1;
	int ret;

	if (fw_mem_ring_read(&q->tx_ring, q->tx_cons, &first))
		return -EFAULT;
	first_decode(d, &first);
	if (!d->slots || d->slots > CORDON_TX_SLOTS_MAX || d->slots > avail)
		return -EINVAL;
	if (!fields_ok(d) || !slots_ok(d) || !features_ok(q->port, d))
		return CORDON_RESULT_BAD_DESC;
	if (d->flags & CORDON_TX_EXT) {
		ret = ext_read(q, next++, d);
		if (ret)
			return ret;
	}
	ret = segs_read(q, next, d);
	return ret ? ret : total_add(d);
}

/**
 * fw_desc_gather() - copy the packet from the guest
 * @q: queue pair
 * @d: packet
 * @dst: @d->total bytes
 *
 * Return: 0 or -EFAULT.
 */
int fw_desc_gather(struct fw_queue *q, const struct fw_desc *d, uint8_t *dst)
{
	for (uint32_t i = 0; i < d->segments; i++) {
		if (fw_mem_read(&q->port->mem, d->addr[i], dst, d->len[i]))
			return -EFAULT;
		dst += d->len[i];
	}
	return 0;
}
