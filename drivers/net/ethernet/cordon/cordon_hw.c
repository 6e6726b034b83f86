// SPDX-License-Identifier: GPL-2.0-only
/* Cordon: registers. */

#include <linux/delay.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/jiffies.h>
#include <linux/unaligned.h>

#include "cordon_hw.h"

#define CORDON_HW_RESETS 3

static bool bar_fits(struct cordon_dev *cdev, int bar, resource_size_t size)
{
	return (pci_resource_flags(cdev->pdev, bar) & IORESOURCE_MEM) &&
	       pci_resource_len(cdev->pdev, bar) >= size;
}

/**
 * cordon_hw_map() - map the BARs
 * @cdev: device
 *
 * Context: process context.
 * Return: 0 or -errno.
 */
int cordon_hw_map(struct cordon_dev *cdev)
{
	void __iomem *pages;

	if (!bar_fits(cdev, CORDON_BAR_REGS, CORDON_BAR_REGS_SIZE) ||
	    !bar_fits(cdev, CORDON_BAR_DOORBELL, CORDON_BAR_DOORBELL_SIZE)) {
		dev_err(cdev->dev, "BARs are missing or too small\n");
		return -ENODEV;
	}

	cdev->regs = pci_iomap(cdev->pdev, CORDON_BAR_REGS, CORDON_BAR_REGS_SIZE);
	if (!cdev->regs)
		return -ENOMEM;
	pages = pci_iomap(cdev->pdev, CORDON_BAR_DOORBELL, CORDON_BAR_DOORBELL_SIZE);
	if (!pages) {
		pci_iounmap(cdev->pdev, cdev->regs);
		return -ENOMEM;
	}
	cdev->doorbell = pages + CORDON_DOORBELL_PAGE_OFFSET;
	cdev->wake = pages + CORDON_WAKE_PAGE_OFFSET;
	return 0;
}

/**
 * cordon_hw_unmap() - undo cordon_hw_map()
 * @cdev: device
 *
 * Context: process context; nothing uses the BARs any more.
 */
void cordon_hw_unmap(struct cordon_dev *cdev)
{
	pci_iounmap(cdev->pdev, (void __iomem *)cdev->doorbell - CORDON_DOORBELL_PAGE_OFFSET);
	pci_iounmap(cdev->pdev, cdev->regs);
}

/**
 * cordon_hw_read() - read a register
 * @cdev: device
 * @offset: CORDON_HW_REG()
 *
 * All-ones is no value of any register: if the magic number reads so too, the device is gone.
 *
 * Context: any; each access is trapped, so not for the data path.
 * Return: the value.
 */
u32 cordon_hw_read(struct cordon_dev *cdev, unsigned int offset)
{
	u32 value = readl(cdev->regs + offset);

	if (unlikely(value == U32_MAX) &&
	    readl(cdev->regs + CORDON_HW_REG(magic)) != CORDON_MAGIC &&
	    !test_and_set_bit(CORDON_DEV_GONE, &cdev->flags)) {
		dev_err(cdev->dev, "the device doesn't answer any more\n");
		wake_up_all(&cdev->cmd.free_wait);
	}
	return value;
}

/**
 * cordon_hw_write() - write a register
 * @cdev: device
 * @offset: CORDON_HW_REG()
 * @value: what to write
 *
 * Context: any; each access is trapped.
 */
void cordon_hw_write(struct cordon_dev *cdev, unsigned int offset, u32 value)
{
	writel(value, cdev->regs + offset);
}

/**
 * cordon_hw_check() - is this a card that the driver understands?
 * @cdev: device
 *
 * Context: any.
 * Return: 0, or -ENODEV with a message.
 */
int cordon_hw_check(struct cordon_dev *cdev)
{
	u32 magic = cordon_hw_read(cdev, CORDON_HW_REG(magic));
	u32 abi = cordon_hw_read(cdev, CORDON_HW_REG(abi));

	if (magic != CORDON_MAGIC) {
		dev_err(cdev->dev, "not a Cordon card: magic number %#x\n", magic);
		return -ENODEV;
	}
	if (CORDON_GET(CORDON_ABI_VERSION_MAJOR, abi) != CORDON_ABI_MAJOR) {
		dev_err(cdev->dev, "the card speaks version %u of the contract, the driver %u\n",
			CORDON_GET(CORDON_ABI_VERSION_MAJOR, abi), CORDON_ABI_MAJOR);
		return -ENODEV;
	}
	return 0;
}

/**
 * cordon_hw_get_mac() - the permanent address
 * @cdev: device
 * @mac: where to put it; not necessarily a valid one
 *
 * Context: any.
 */
void cordon_hw_get_mac(struct cordon_dev *cdev, u8 mac[ETH_ALEN])
{
	put_unaligned_le32(cordon_hw_read(cdev, CORDON_HW_REG(mac_lo)), mac);
	put_unaligned_le16(cordon_hw_read(cdev, CORDON_HW_REG(mac_hi)), mac + 4);
}

/* Wait until the bits of @mask in the status register are @want. */
static int wait_status(struct cordon_dev *cdev, u32 mask, u32 want)
{
	unsigned long end = jiffies + msecs_to_jiffies(CORDON_HW_TIMEOUT_MS);
	u32 status;

	for (;;) {
		bool late = time_after(jiffies, end);

		status = cordon_hw_read(cdev, CORDON_HW_REG(status));
		if (test_bit(CORDON_DEV_GONE, &cdev->flags))
			return -ENODEV;
		if ((status & mask) == want)
			return 0;
		if (status & CORDON_STATUS_FAILED)
			return -EIO;
		if (late)
			return -ETIMEDOUT;
		usleep_range(500, 1000);
	}
}

/**
 * cordon_hw_reset() - reset the function
 * @cdev: device
 *
 * When it returns 0, the card doesn't touch the memory of the host any more, and is ready to be
 * enabled; it may reach memory from now on. If it doesn't manage, it is cut off from it.
 *
 * Context: process context, may sleep for CORDON_HW_TIMEOUT_MS.
 * Return: 0 or -errno.
 */
int cordon_hw_reset(struct cordon_dev *cdev)
{
	int err, i;

	/* A firmware that hangs is killed by the first reset; only the next one makes a new one. */
	for (i = 0; i < CORDON_HW_RESETS; i++) {
		cordon_hw_write(cdev, CORDON_HW_REG(control), CORDON_CONTROL_RESET);
		err = wait_status(cdev, CORDON_STATUS_RESETTING | CORDON_STATUS_ENABLED |
				  CORDON_STATUS_READY, CORDON_STATUS_READY);
		if (err != -EIO)
			break;
	}
	if (err) {
		pci_clear_master(cdev->pdev);
		dev_err(cdev->dev, "the card can't be reset: %pe\n", ERR_PTR(err));
		return err;
	}
	/* Only now is it sure that no old ring is in use. An enable would fail without. */
	pci_set_master(cdev->pdev);
	return 0;
}

/**
 * cordon_hw_enable() - give the card the admin rings
 * @cdev: device; it was reset, and its rings are rewound
 *
 * Context: process context, may sleep for CORDON_HW_TIMEOUT_MS.
 * Return: 0 or -errno.
 */
int cordon_hw_enable(struct cordon_dev *cdev)
{
	u32 status;
	int err;

	cordon_hw_clear_line(cdev, CORDON_LINE_ADMIN);
	lo_hi_writeq(cdev->cmd.sq_dma, cdev->regs + CORDON_HW_REG(cmd_sq));
	lo_hi_writeq(cdev->cmd.cq_dma, cdev->regs + CORDON_HW_REG(cmd_cq));
	lo_hi_writeq(cdev->events.dma, cdev->regs + CORDON_HW_REG(event_ring));
	cordon_hw_write(cdev, CORDON_HW_REG(ring_sizes),
			CORDON_PREP(CORDON_RING_SIZES_CMD, CORDON_CMD_LOG2) |
			CORDON_PREP(CORDON_RING_SIZES_EVENT, CORDON_EVENT_LOG2));
	cordon_hw_write(cdev, CORDON_HW_REG(control), CORDON_CONTROL_ENABLE);

	err = wait_status(cdev, CORDON_STATUS_ENABLED, CORDON_STATUS_ENABLED);
	if (err) {
		dev_err(cdev->dev, "the card can't be enabled: %pe, error %u\n", ERR_PTR(err),
			cordon_hw_read(cdev, CORDON_HW_REG(error)));
		return err;
	}

	status = cordon_hw_read(cdev, CORDON_HW_REG(status));
	cdev->generation = CORDON_GET(CORDON_STATUS_GENERATION, status);
	cdev->fw_version = cordon_hw_read(cdev, CORDON_HW_REG(fw_version));
	return 0;
}

/**
 * cordon_hw_is_healthy() - does the firmware that was enabled still run?
 * @cdev: device
 *
 * Context: any.
 * Return: true if it does.
 */
bool cordon_hw_is_healthy(struct cordon_dev *cdev)
{
	u32 status = cordon_hw_read(cdev, CORDON_HW_REG(status));

	return !test_bit(CORDON_DEV_GONE, &cdev->flags) && (status & CORDON_STATUS_ENABLED) &&
	       !(status & CORDON_STATUS_FAILED) &&
	       CORDON_GET(CORDON_STATUS_GENERATION, status) == cdev->generation;
}
