// SPDX-License-Identifier: GPL-2.0-only
/* Cordon: devlink. */

#include <net/devlink.h>

#include "cordon_hw.h"

static int cordon_devlink_info_get(struct devlink *devlink, struct devlink_info_req *req,
				   struct netlink_ext_ack *extack)
{
	struct cordon_dev *cdev = devlink_priv(devlink);
	char text[24];
	u32 abi;
	int err;

	snprintf(text, sizeof(text), "%u.%u.%u", cdev->fw_version >> 16 & 0xff,
		 cdev->fw_version >> 8 & 0xff, cdev->fw_version & 0xff);
	err = devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW, text);
	if (err)
		return err;

	abi = cordon_hw_read(cdev, CORDON_HW_REG(abi));
	snprintf(text, sizeof(text), "%u.%u", CORDON_GET(CORDON_ABI_VERSION_MAJOR, abi),
		 CORDON_GET(CORDON_ABI_VERSION_MINOR, abi));
	err = devlink_info_version_running_put(req, "fw.abi", text);
	if (err)
		return err;

	snprintf(text, sizeof(text), "%016llx", pci_get_dsn(cdev->pdev));
	return devlink_info_serial_number_put(req, text);
}

static const struct devlink_ops cordon_devlink_ops = {
	.info_get = cordon_devlink_info_get,
};

/**
 * cordon_devlink_alloc() - allocate the device, which is the devlink instance's private part
 * @pdev: PCI device
 *
 * Context: process context.
 * Return: the device, zeroed; NULL without memory.
 */
struct cordon_dev *cordon_devlink_alloc(struct pci_dev *pdev)
{
	struct devlink *devlink;

	devlink = devlink_alloc(&cordon_devlink_ops, sizeof(struct cordon_dev), &pdev->dev);
	return devlink ? devlink_priv(devlink) : NULL;
}

/**
 * cordon_devlink_free() - free the device
 * @cdev: device
 *
 * Context: process context.
 */
void cordon_devlink_free(struct cordon_dev *cdev)
{
	devlink_free(priv_to_devlink(cdev));
}

/**
 * cordon_devlink_register() - make the devlink instance known
 * @cdev: device, complete
 *
 * Context: process context.
 */
void cordon_devlink_register(struct cordon_dev *cdev)
{
	devlink_register(priv_to_devlink(cdev));
}

/**
 * cordon_devlink_unregister() - undo cordon_devlink_register()
 * @cdev: device
 *
 * Context: process context.
 */
void cordon_devlink_unregister(struct cordon_dev *cdev)
{
	devlink_unregister(priv_to_devlink(cdev));
}
