/* SPDX-License-Identifier: GPL-2.0-only */
/* Cordon: registers and doorbells. All MMIO of the driver is in this header and its .c file. */
#ifndef CORDON_HW_H
#define CORDON_HW_H

#include <linux/io.h>

#include "cordon.h"

/* How long a reset or an enable may take; the card kills a firmware that needs longer. */
#define CORDON_HW_TIMEOUT_MS 15000

int cordon_hw_map(struct cordon_dev *cdev);
void cordon_hw_unmap(struct cordon_dev *cdev);
u32 cordon_hw_read(struct cordon_dev *cdev, unsigned int offset);
void cordon_hw_write(struct cordon_dev *cdev, unsigned int offset, u32 value);
int cordon_hw_check(struct cordon_dev *cdev);
void cordon_hw_get_mac(struct cordon_dev *cdev, u8 mac[ETH_ALEN]);
int cordon_hw_reset(struct cordon_dev *cdev);
int cordon_hw_enable(struct cordon_dev *cdev);
bool cordon_hw_is_healthy(struct cordon_dev *cdev);

#define CORDON_HW_REG(name) offsetof(struct cordon_regs, name)

/*
 * Copy the entry of a completion ring at @cons, if it is there. The last word of an entry is
 * written last and tells by its top bit whether it belongs to this pass over the ring. The card can
 * change the entry at any time: only the copy is looked at.
 */
static inline bool cordon_ring_copy(void *entry, const void *ring, size_t size, unsigned int log2,
				    u32 cons)
{
	const void *from = ring + (cons & ((1u << log2) - 1)) * size;
	const __le32 *valid = from + size - sizeof(*valid);
	u32 phase = (cons >> log2) & 1 ? 0 : CORDON_COMPLETION_VALID;

	if ((le32_to_cpu(READ_ONCE(*valid)) & CORDON_COMPLETION_VALID) != phase)
		return false;
	/* Pairs with the card's release of the last word. */
	dma_rmb();
	memcpy(entry, from, size);
	/* Keep the compiler from reading the ring again in place of the copy. */
	barrier();
	return true;
}

/* Zero a doorbell line, as the card wants it before its rings are created. */
static inline void cordon_hw_clear_line(struct cordon_dev *cdev, unsigned int line)
{
	memset_io(&cdev->doorbell[line], 0, sizeof(cdev->doorbell[line]));
}

/*
 * Move the producer index of a submission ring, and wake the firmware if it sleeps. The caller
 * serializes producers of the line.
 */
static inline void cordon_hw_ring(struct cordon_dev *cdev, unsigned int line, u32 old, u32 new)
{
	u32 event;

	/* writel() orders the ring's entries before the index; pairs with the card's acquire. */
	writel(new, &cdev->doorbell[line].sq_prod);
	/* Pairs with the card's fence between sq_event and its last look at sq_prod. */
	mb();
	event = readl(&cdev->wake[line].sq_event);
	if (new - event - 1 < new - old)
		cordon_hw_write(cdev, CORDON_HW_REG(kick), line);
}

static inline void cordon_hw_set_rx_prod(struct cordon_dev *cdev, unsigned int line, u32 prod)
{
	writel(prod, &cdev->doorbell[line].rx_prod);
}

/* Ask for an interrupt; the caller looks at its rings again afterwards. */
static inline void cordon_hw_arm(struct cordon_dev *cdev, unsigned int line, u32 sq_cons,
				 u32 rx_cons, u32 arm)
{
	struct cordon_doorbell __iomem *doorbell = &cdev->doorbell[line];

	writel(sq_cons, &doorbell->sq_cons);
	writel(rx_cons, &doorbell->rx_cons);
	writel(arm, &doorbell->arm);
	/*
	 * An entry written before the card saw the new value raises no interrupt: the look at the
	 * rings must not overtake it. Pairs with the card's fence between the entry and its look.
	 */
	mb();
}

#endif
