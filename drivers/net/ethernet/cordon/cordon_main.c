// SPDX-License-Identifier: GPL-2.0-only
/* Cordon: PCI driver, resets. */

#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "cordon_hw.h"
#include "cordon_ipsec.h"
#include "cordon_queue.h"

#define CORDON_CAPS_SIZE 4096
#define CORDON_ADDRESSES_MAX 4096

#define CORDON_HEALTH_PERIOD HZ

/* A card that needs more resets than this many in so much time is beyond help. */
#define CORDON_RESETS_MAX 10
#define CORDON_RESETS_TIME (60 * HZ)

/**
 * cordon_reset_schedule() - the device must be reset
 * @cdev: device; commands fail from now on, until it is
 *
 * Context: any.
 */
void cordon_reset_schedule(struct cordon_dev *cdev)
{
	set_bit(CORDON_DEV_FAILED, &cdev->flags);
	wake_up_all(&cdev->cmd.free_wait);
	schedule_work(&cdev->reset_work);
}

/**
 * cordon_nonsense() - the card did what it must not
 * @cdev: device
 * @what: what it did
 *
 * Context: any.
 */
void cordon_nonsense(struct cordon_dev *cdev, const char *what)
{
	atomic_inc(&cdev->nonsense);
	dev_err_ratelimited(cdev->dev, "%s: the card will be reset\n", what);
	cordon_reset_schedule(cdev);
}

static bool is_known_port(struct cordon_caps_port *port, const struct cordon_cap_port *cap,
			  size_t len)
{
	if (len < sizeof(*cap) || !cap->queue_pairs)
		return false;
	port->features = le32_to_cpu(cap->features);
	port->queue_pairs = min_t(u16, le16_to_cpu(cap->queue_pairs), CORDON_QUEUE_PAIRS_MAX);
	port->ring_log2 = clamp_t(u16, le16_to_cpu(cap->ring_log2), CORDON_RING_LOG2_MIN,
				  CORDON_RING_LOG2_MAX);
	port->mtu = clamp_t(u32, le32_to_cpu(cap->mtu), CORDON_MTU_MIN, CORDON_MTU_MAX);
	port->addresses = min_t(u32, le16_to_cpu(cap->addresses), CORDON_ADDRESSES_MAX);
	return true;
}

/* What can't be is taken for what the card doesn't have. */
static void read_algorithm(struct cordon_caps_algorithm *alg, const struct cordon_algorithm *cap)
{
	if (cap->present != 1 || cap->salt_len > CORDON_SALT_MAX)
		return;
	alg->key_bytes = le64_to_cpu(cap->key_bytes);
	alg->icv_bytes = le32_to_cpu(cap->icv_bytes);
	alg->present = 1;
	alg->salt_len = cap->salt_len;
}

static bool is_known_ipsec(struct cordon_caps_ipsec *ipsec, const struct cordon_cap_ipsec *cap,
			   size_t len)
{
	unsigned int i;

	if (len < sizeof(*cap))
		return false;
	/* A card that says it twice has what it said last. */
	memset(ipsec, 0, sizeof(*ipsec));
	ipsec->sa_max = min_t(u32, le32_to_cpu(cap->sa_max), CORDON_HANDLE_INDEX);
	ipsec->policy_max = min_t(u32, le32_to_cpu(cap->policy_max), CORDON_HANDLE_INDEX);
	ipsec->modes = le32_to_cpu(cap->modes);
	ipsec->offloads = le32_to_cpu(cap->offloads);
	ipsec->sa_flags = le32_to_cpu(cap->sa_flags);
	ipsec->replay_window_max = min_t(u32, le32_to_cpu(cap->replay_window_max),
					 CORDON_REPLAY_WINDOW_MAX);
	ipsec->families = le32_to_cpu(cap->families);
	for (i = 0; i < CORDON_CIPHER_CNT; i++)
		read_algorithm(&ipsec->ciphers[i], &cap->ciphers[i]);
	for (i = 0; i < CORDON_AUTH_CNT; i++)
		read_algorithm(&ipsec->auths[i], &cap->auths[i]);
	return true;
}

/* Records that are longer than known are fine, shorter ones aren't, unknown ones are skipped. */
static int parse_caps(struct cordon_caps *caps, const u8 *data, size_t left)
{
	bool has_port = false;

	memset(caps, 0, sizeof(*caps));
	while (left) {
		const struct cordon_cap *cap = (const void *)data;
		bool known = true;
		size_t len;

		if (left < sizeof(*cap))
			return -EPROTO;
		len = le16_to_cpu(cap->len);
		if (len < sizeof(*cap) || len > left || len % 8)
			return -EPROTO;
		switch (le16_to_cpu(cap->type)) {
		case CORDON_CAP_PORT:
			known = is_known_port(&caps->port, (const void *)cap, len);
			has_port = true;
			break;
		case CORDON_CAP_IPSEC:
			known = is_known_ipsec(&caps->ipsec, (const void *)cap, len);
			break;
		default:
			break;
		}
		if (!known)
			return -EPROTO;
		data += len;
		left -= len;
	}
	return has_port ? 0 : -EPROTO;
}

static int query_caps(struct cordon_dev *cdev, struct cordon_caps *caps)
{
	struct cordon_cmd_result res;
	u8 *data;
	int err;

	data = kzalloc(CORDON_CAPS_SIZE, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	err = cordon_cmd_exec(cdev, CORDON_CMD_QUERY_CAPS, NULL, 0, data, CORDON_CAPS_SIZE, NULL,
			      &res);
	if (!err)
		err = parse_caps(caps, data, res.out_len);
	if (err)
		dev_err(cdev->dev, "the card doesn't tell what it can do: %pe\n", ERR_PTR(err));
	kfree(data);
	return err;
}

/* Enable the device, which was reset, so that it takes commands. */
static int enable_dev(struct cordon_dev *cdev)
{
	int irq = cdev->vectors[0].irq, err;

	/* What comes meanwhile is kept pending. */
	disable_irq(irq);
	cordon_cmd_rewind(cdev);
	cordon_event_rewind(cdev);
	err = cordon_hw_enable(cdev);
	if (!err) {
		cordon_event_arm(cdev);
		clear_bit(CORDON_DEV_FAILED, &cdev->flags);
		set_bit(CORDON_DEV_ENABLED, &cdev->flags);
	}
	enable_irq(irq);
	return err;
}

/* Stop the device: no command is under way any more, and it doesn't touch memory. */
static int disable_dev(struct cordon_dev *cdev)
{
	int err;

	clear_bit(CORDON_DEV_ENABLED, &cdev->flags);
	err = cordon_hw_reset(cdev);
	cordon_cmd_cancel(cdev, test_bit(CORDON_DEV_GONE, &cdev->flags) ? -ENODEV : -EIO);
	return err;
}

/**
 * cordon_reset_now() - make sure that the card touches no memory, now
 * @cdev: device; it is brought back by the reset that is scheduled
 *
 * All commands under way have ended when this returns.
 *
 * Context: RTNL.
 */
void cordon_reset_now(struct cordon_dev *cdev)
{
	/* Else that was done, and the device wasn't enabled since. */
	if (test_bit(CORDON_DEV_ENABLED, &cdev->flags))
		disable_dev(cdev);
	cordon_reset_schedule(cdev);
}

/* Take the network device from the stack and reset the card. */
static int reset_down(struct cordon_dev *cdev)
{
	struct cordon_priv *priv = netdev_priv(cdev->netdev);
	int err;

	ASSERT_RTNL();
	atomic_inc(&cdev->resets);
	netif_device_detach(cdev->netdev);
	netif_carrier_off(cdev->netdev);
	cordon_queue_suspend(priv);
	err = disable_dev(cdev);
	/* Not before: who asks for the counters holds their lock until his command has ended. */
	cordon_netdev_keep_stats(priv);
	return err;
}

/* What the driver goes by stays what it was at the start: tables have the size of it. */
static int check_caps_kept(struct cordon_dev *cdev)
{
	struct cordon_caps caps;
	int err;

	err = query_caps(cdev, &caps);
	if (err)
		return err;
	if (!memcmp(&caps.port, &cdev->port, sizeof(caps.port)) &&
	    !memcmp(&caps.ipsec, &cdev->ipsec_caps, sizeof(caps.ipsec)))
		return 0;
	dev_err(cdev->dev, "after the reset the card can do other things than before\n");
	return -ENODEV;
}

/*
 * Bring everything back after a reset. Frames are taken only when SAs and policies are there again:
 * else clear text would get by. With an error the queues are down again, and the card has none.
 */
static int reset_up(struct cordon_dev *cdev)
{
	struct cordon_priv *priv = netdev_priv(cdev->netdev);
	bool running = netif_running(cdev->netdev);
	int err;

	ASSERT_RTNL();
	err = enable_dev(cdev);
	if (err)
		return err;
	err = check_caps_kept(cdev);
	if (!err)
		err = cordon_netdev_enable_rx(priv, false);
	if (!err)
		err = cordon_netdev_sync(priv);
	if (!err && running)
		err = cordon_queue_resume(priv);
	if (!err)
		err = cordon_ipsec_restore(cdev);
	if (!err && running)
		err = cordon_netdev_enable_rx(priv, true);
	if (err)
		goto err_disable;
	netif_device_attach(cdev->netdev);
	return 0;

err_disable:
	cordon_queue_suspend(priv);
	disable_dev(cdev);
	return err;
}

static bool may_reset(struct cordon_dev *cdev)
{
	if (test_bit(CORDON_DEV_GONE, &cdev->flags))
		return false;
	if (!cdev->reset_cnt || time_after(jiffies, cdev->reset_window + CORDON_RESETS_TIME)) {
		cdev->reset_window = jiffies;
		cdev->reset_cnt = 0;
	}
	return cdev->reset_cnt++ < CORDON_RESETS_MAX;
}

static void cordon_reset_work(struct work_struct *work)
{
	struct cordon_dev *cdev = container_of(work, struct cordon_dev, reset_work);
	int err = 0;

	rtnl_lock();
	/* A reset that had to wait for the lock may have been overtaken by another. */
	if (!test_bit(CORDON_DEV_FAILED, &cdev->flags))
		goto out;
	if (!may_reset(cdev)) {
		netif_device_detach(cdev->netdev);
		netif_carrier_off(cdev->netdev);
		cordon_queue_suspend(netdev_priv(cdev->netdev));
		disable_dev(cdev);
		dev_err(cdev->dev, "the card is given up\n");
		goto out;
	}
	err = reset_down(cdev);
	if (!err)
		err = reset_up(cdev);
	if (err) {
		dev_err(cdev->dev, "reset failed: %pe\n", ERR_PTR(err));
		cordon_reset_schedule(cdev);
	} else {
		dev_info(cdev->dev, "the card was reset, its configuration is restored\n");
	}
out:
	rtnl_unlock();
}

/* Interrupts can call the health work more often than counters are worth asking for. */
static void refresh_stats(struct cordon_dev *cdev)
{
	if (!netif_running(cdev->netdev) ||
	    time_before(jiffies, cdev->stats_time + CORDON_HEALTH_PERIOD / 2))
		return;
	cdev->stats_time = jiffies;
	cordon_netdev_refresh_stats(netdev_priv(cdev->netdev));
}

static void cordon_health_work(struct work_struct *work)
{
	struct cordon_dev *cdev = container_of(to_delayed_work(work), struct cordon_dev,
					       health_work);
	int resets = atomic_read(&cdev->resets);

	if (cordon_is_usable(cdev)) {
		bool healthy = cordon_hw_is_healthy(cdev);

		if (test_bit(CORDON_DEV_GONE, &cdev->flags)) {
			netif_carrier_off(cdev->netdev);
			cordon_reset_schedule(cdev);
			return;
		}
		/* A reset that began meanwhile is what was seen, if it isn't over already. */
		if (!cordon_is_usable(cdev) || resets != atomic_read(&cdev->resets))
			goto again;
		if (!healthy)
			cordon_nonsense(cdev, "the firmware stopped");
		else if (cordon_cmd_is_late(cdev))
			cordon_nonsense(cdev, "a command wasn't answered");
		else
			refresh_stats(cdev);
	}
again:
	schedule_delayed_work(&cdev->health_work, CORDON_HEALTH_PERIOD);
}

static int enable_pci(struct pci_dev *pdev)
{
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_disable;
	err = pci_request_mem_regions(pdev, CORDON_DRIVER_NAME);
	if (err)
		goto err_disable;
	return 0;

err_disable:
	pci_disable_device(pdev);
	return err;
}

static void disable_pci(struct pci_dev *pdev)
{
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
}

static void init_dev(struct cordon_dev *cdev, struct pci_dev *pdev)
{
	cdev->pdev = pdev;
	cdev->dev = &pdev->dev;
	mutex_init(&cdev->port_lock);
	spin_lock_init(&cdev->cmd.lock);
	init_waitqueue_head(&cdev->cmd.free_wait);
	INIT_WORK(&cdev->reset_work, cordon_reset_work);
	INIT_DELAYED_WORK(&cdev->health_work, cordon_health_work);
	/* Neither may run before there is a network device. */
	disable_work(&cdev->reset_work);
	disable_delayed_work(&cdev->health_work);
	pci_set_drvdata(pdev, cdev);
}

/* Everything up to where the card takes commands. */
static int start_dev(struct cordon_dev *cdev)
{
	int err;

	err = cordon_hw_map(cdev);
	if (err)
		return err;
	err = cordon_hw_check(cdev);
	if (err)
		goto err_unmap;
	err = cordon_hw_reset(cdev);
	if (err)
		goto err_unmap;
	err = cordon_event_alloc_vectors(cdev);
	if (err)
		goto err_unmap;
	cdev->wq = alloc_ordered_workqueue("cordon-%s", 0, pci_name(cdev->pdev));
	if (!cdev->wq) {
		err = -ENOMEM;
		goto err_free_vectors;
	}
	err = cordon_cmd_init(cdev);
	if (err)
		goto err_destroy_wq;
	err = cordon_event_init(cdev);
	if (err)
		goto err_exit_cmd;
	err = cordon_event_request_irqs(cdev);
	if (err)
		goto err_exit_event;
	err = enable_dev(cdev);
	if (err)
		goto err_free_irqs;
	return 0;

err_free_irqs:
	disable_dev(cdev);
	cordon_event_free_irqs(cdev);
err_exit_event:
	cordon_event_exit(cdev);
err_exit_cmd:
	cordon_cmd_exit(cdev);
err_destroy_wq:
	destroy_workqueue(cdev->wq);
err_free_vectors:
	cordon_event_free_vectors(cdev);
err_unmap:
	cordon_hw_unmap(cdev);
	return err;
}

/* The opposite of start_dev(), in two steps: interrupt handlers look at the network device. */
static void stop_dev(struct cordon_dev *cdev)
{
	disable_dev(cdev);
	cordon_event_free_irqs(cdev);
	pci_clear_master(cdev->pdev);
}

static void free_dev(struct cordon_dev *cdev)
{
	cordon_event_exit(cdev);
	cordon_cmd_exit(cdev);
	destroy_workqueue(cdev->wq);
	cordon_event_free_vectors(cdev);
	cordon_hw_unmap(cdev);
}

static int cordon_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct cordon_dev *cdev;
	struct cordon_priv *priv;
	struct cordon_caps caps;
	int err;

	err = enable_pci(pdev);
	if (err)
		return dev_err_probe(&pdev->dev, err, "the PCI device can't be enabled\n");
	cdev = cordon_devlink_alloc(pdev);
	if (!cdev) {
		err = -ENOMEM;
		goto err_disable_pci;
	}
	init_dev(cdev, pdev);
	err = start_dev(cdev);
	if (err)
		goto err_free_devlink;
	err = query_caps(cdev, &caps);
	if (err)
		goto err_stop_dev;
	cdev->port = caps.port;
	cdev->ipsec_caps = caps.ipsec;
	cdev->has_ipsec = caps.ipsec.sa_max > 0;
	err = cordon_netdev_alloc(cdev);
	if (err)
		goto err_stop_dev;
	err = cordon_ipsec_init(cdev);
	if (err)
		goto err_free_netdev;
	priv = netdev_priv(cdev->netdev);
	priv->features = cdev->netdev->features;
	cordon_event_start(cdev);
	err = register_netdev(cdev->netdev);
	if (err)
		goto err_exit_ipsec;

	enable_work(&cdev->reset_work);
	enable_delayed_work(&cdev->health_work);
	schedule_delayed_work(&cdev->health_work, CORDON_HEALTH_PERIOD);
	if (test_bit(CORDON_DEV_FAILED, &cdev->flags))
		cordon_reset_schedule(cdev);
	cordon_devlink_register(cdev);
	cordon_debugfs_add(cdev);
	return 0;

err_exit_ipsec:
	cordon_event_stop(cdev);
	cordon_ipsec_exit(cdev);
err_free_netdev:
	stop_dev(cdev);
	cordon_netdev_free(cdev);
	goto err_free_dev;
err_stop_dev:
	stop_dev(cdev);
err_free_dev:
	free_dev(cdev);
err_free_devlink:
	cordon_devlink_free(cdev);
err_disable_pci:
	disable_pci(pdev);
	return err;
}

static void cordon_remove(struct pci_dev *pdev)
{
	struct cordon_dev *cdev = pci_get_drvdata(pdev);

	cordon_debugfs_del(cdev);
	cordon_devlink_unregister(cdev);
	disable_work_sync(&cdev->reset_work);
	disable_delayed_work_sync(&cdev->health_work);
	unregister_netdev(cdev->netdev);
	cordon_event_stop(cdev);
	cordon_ipsec_exit(cdev);
	stop_dev(cdev);
	cordon_netdev_free(cdev);
	free_dev(cdev);
	cordon_devlink_free(cdev);
	disable_pci(pdev);
}

static void cordon_shutdown(struct pci_dev *pdev)
{
	struct cordon_dev *cdev = pci_get_drvdata(pdev);

	disable_work_sync(&cdev->reset_work);
	disable_delayed_work_sync(&cdev->health_work);
	rtnl_lock();
	reset_down(cdev);
	rtnl_unlock();
	pci_clear_master(pdev);
}

/* The function will be reset from outside: by sysfs, for instance. */
static void cordon_reset_prepare(struct pci_dev *pdev)
{
	struct cordon_dev *cdev = pci_get_drvdata(pdev);

	disable_work_sync(&cdev->reset_work);
	disable_delayed_work_sync(&cdev->health_work);
	rtnl_lock();
	reset_down(cdev);
	rtnl_unlock();
}

static void cordon_reset_done(struct pci_dev *pdev)
{
	struct cordon_dev *cdev = pci_get_drvdata(pdev);
	int err;

	rtnl_lock();
	clear_bit(CORDON_DEV_GONE, &cdev->flags);
	cdev->reset_cnt = 0;
	err = cordon_hw_reset(cdev);
	if (!err)
		err = reset_up(cdev);
	rtnl_unlock();
	enable_work(&cdev->reset_work);
	enable_delayed_work(&cdev->health_work);
	schedule_delayed_work(&cdev->health_work, CORDON_HEALTH_PERIOD);
	if (err)
		dev_err(cdev->dev, "reset failed: %pe\n", ERR_PTR(err));
	/* A reset that was called for while the work was disabled was lost. */
	if (err || test_bit(CORDON_DEV_FAILED, &cdev->flags))
		cordon_reset_schedule(cdev);
}

static const struct pci_error_handlers cordon_err_handlers = {
	.reset_prepare	= cordon_reset_prepare,
	.reset_done	= cordon_reset_done,
};

static const struct pci_device_id cordon_ids[] = {
	{ PCI_DEVICE(CORDON_PCI_VENDOR_ID, CORDON_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, cordon_ids);

static struct pci_driver cordon_driver = {
	.name		= CORDON_DRIVER_NAME,
	.id_table	= cordon_ids,
	.probe		= cordon_probe,
	.remove		= cordon_remove,
	.shutdown	= cordon_shutdown,
	.err_handler	= &cordon_err_handlers,
};

static int __init cordon_init(void)
{
	int err;

	cordon_debugfs_init();
	err = pci_register_driver(&cordon_driver);
	if (err)
		cordon_debugfs_exit();
	return err;
}
module_init(cordon_init);

static void __exit cordon_exit(void)
{
	pci_unregister_driver(&cordon_driver);
	cordon_debugfs_exit();
}
module_exit(cordon_exit);

MODULE_DESCRIPTION("Cordon network card with inline IPsec");
MODULE_LICENSE("GPL");
