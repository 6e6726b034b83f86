// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: debugfs. Rings with the indices of both sides, one file for each queue pair; what the
 * IPsec offload takes and has. The entries of the command ring aren't shown: commands carry keys.
 */

#include <linux/debugfs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>

#include "cordon_hw.h"
#include "cordon_ipsec.h"
#include "cordon_queue.h"

static struct dentry *root;

static void show_doorbell(struct seq_file *file, struct cordon_dev *cdev, unsigned int line)
{
	struct cordon_doorbell __iomem *doorbell = &cdev->doorbell[line];

	seq_printf(file, "doorbell: sq_prod %u rx_prod %u sq_cons %u rx_cons %u arm %u\n",
		   readl(&doorbell->sq_prod), readl(&doorbell->rx_prod),
		   readl(&doorbell->sq_cons), readl(&doorbell->rx_cons), readl(&doorbell->arm));
	seq_printf(file, "wake: sq_event %u\n", readl(&cdev->wake[line].sq_event));
}

static void show_tx(struct seq_file *file, const struct cordon_tx_ring *tx)
{
	u32 i;

	seq_printf(file, "TX: entries %u prod %u rung %u cons %u cq_cons %u\n", 1u << tx->log2,
		   tx->prod, tx->rung, tx->cons, tx->cq_cons);
	for (i = 0; i < 1u << tx->log2; i++) {
		const struct cordon_tx_desc *desc = &tx->slots[i].desc;
		const struct cordon_tx_completion *cqe = &tx->cq[i];

		/* Slots that go on with a packet aren't decoded. */
		if (!tx->bufs[i].skb && !cqe->valid)
			continue;
		seq_printf(file, "%5u: len %u flags %#06x slots %u segments %u sa %#x", i,
			   le32_to_cpu(desc->len), le16_to_cpu(desc->flags), desc->slots,
			   desc->segments, le32_to_cpu(desc->sa));
		seq_printf(file, " | slot %u result %u segments %u valid %#x\n",
			   le32_to_cpu(cqe->slot), le16_to_cpu(cqe->result),
			   le16_to_cpu(cqe->segments), le32_to_cpu(cqe->valid));
	}
}

static void show_rx(struct seq_file *file, const struct cordon_rx_ring *rx)
{
	u32 i;

	seq_printf(file, "RX: entries %u prod %u cons %u\n", 1u << rx->log2, rx->prod, rx->cons);
	for (i = 0; i < 1u << rx->log2; i++) {
		const struct cordon_rx_completion *cqe = &rx->cq[i];

		if (!cqe->valid)
			continue;
		seq_printf(file, "%5u: len %u flags %#x sa %#x result %u hash %#x/%u buffer %u valid %#x\n",
			   i, le32_to_cpu(cqe->len), le32_to_cpu(cqe->flags), le32_to_cpu(cqe->sa),
			   cqe->result, le32_to_cpu(cqe->hash), cqe->hash_type,
			   le32_to_cpu(cqe->buffer), le32_to_cpu(cqe->valid));
	}
}

static int queue_show(struct seq_file *file, void *unused)
{
	struct cordon_queue_pair *qp = file->private;

	/* Rings come and go under RTNL. What the card or NAPI write meanwhile is only printed. */
	rtnl_lock();
	if (qp->tx && qp->rx) {
		show_doorbell(file, qp->cdev, qp->line);
		show_tx(file, qp->tx);
		show_rx(file, qp->rx);
	} else {
		seq_puts(file, "down\n");
	}
	rtnl_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queue);

static int admin_show(struct seq_file *file, void *unused)
{
	struct cordon_dev *cdev = file->private;

	show_doorbell(file, cdev, CORDON_LINE_ADMIN);
	seq_printf(file, "commands: prod %u cons %u\n", cdev->cmd.sq_prod, cdev->cmd.cq_cons);
	seq_printf(file, "events: cons %u\n", cdev->events.cons);
	seq_printf(file, "flags: %#lx status %#x error %u\n", cdev->flags,
		   cordon_hw_read(cdev, CORDON_HW_REG(status)),
		   cordon_hw_read(cdev, CORDON_HW_REG(error)));
	seq_printf(file, "resets: %d nonsense: %d\n", atomic_read(&cdev->resets),
		   atomic_read(&cdev->nonsense));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(admin);

static int ipsec_limits_show(struct seq_file *file, void *unused)
{
	cordon_ipsec_check_show(file, file->private);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ipsec_limits);

static int ipsec_sas_show(struct seq_file *file, void *unused)
{
	cordon_ipsec_show(file, file->private);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ipsec_sas);

/**
 * cordon_debugfs_add() - make a device's directory
 * @cdev: device, complete
 *
 * Context: process context.
 */
void cordon_debugfs_add(struct cordon_dev *cdev)
{
	struct cordon_priv *priv = netdev_priv(cdev->netdev);
	unsigned int i;
	char name[16];

	cdev->debugfs = debugfs_create_dir(pci_name(cdev->pdev), root);
	debugfs_create_file("admin", 0400, cdev->debugfs, cdev, &admin_fops);
	if (cdev->ipsec) {
		debugfs_create_file("ipsec_limits", 0400, cdev->debugfs, cdev, &ipsec_limits_fops);
		debugfs_create_file("ipsec_sas", 0400, cdev->debugfs, cdev, &ipsec_sas_fops);
	}
	for (i = 0; i < cdev->port.queue_pairs; i++) {
		snprintf(name, sizeof(name), "queue-%u", i);
		debugfs_create_file(name, 0400, cdev->debugfs, &priv->qps[i], &queue_fops);
	}
}

/**
 * cordon_debugfs_del() - delete a device's directory
 * @cdev: device
 *
 * Context: process context.
 */
void cordon_debugfs_del(struct cordon_dev *cdev)
{
	debugfs_remove_recursive(cdev->debugfs);
}

/**
 * cordon_debugfs_init() - make the driver's directory
 *
 * Context: process context.
 */
void cordon_debugfs_init(void)
{
	root = debugfs_create_dir(CORDON_DRIVER_NAME, NULL);
}

/**
 * cordon_debugfs_exit() - delete the driver's directory
 *
 * Context: process context.
 */
void cordon_debugfs_exit(void)
{
	debugfs_remove(root);
}
