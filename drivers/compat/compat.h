/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What older kernels lack. 6.12, 7.2 and 7.3 are supported, nothing else is built or tested; still,
 * each part asks for the version that made it unnecessary. The driver is written against 7.3 and
 * knows nothing of this file, which is included before anything else when it is built outside a
 * kernel tree.
 *
 * Where a callback has got other parameters, a function-like macro with the name of the driver's
 * callback turns its definition into two functions: the callback as the driver wrote it, and one
 * with the old parameters that calls it. Uses of the name without parentheses, as in a table of
 * callbacks, stay as they are and mean the latter.
 */
#ifndef CORDON_COMPAT_H
#define CORDON_COMPAT_H

#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#include <net/page_pool/types.h>
#include <net/xfrm.h>

/* Persistent configuration of NAPI. */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)

static inline void netif_napi_add_config(struct net_device *dev, struct napi_struct *napi,
					 int (*poll)(struct napi_struct *, int), int index)
{
	netif_napi_add(dev, napi, poll);
}

#endif

/* Automatic affinity. */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)

static inline void netif_set_affinity_auto(struct net_device *dev)
{
}

#endif

/* Page pools whose NAPI comes later than they. */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)

static inline void page_pool_enable_direct_recycling(struct page_pool *pool,
						     struct napi_struct *napi)
{
	WRITE_ONCE(pool->p.napi, napi);
}

#endif

/* ethtool_ops.get_rx_ring_count, formerly one of the questions of get_rxnfc. */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)

#define get_rx_ring_count get_rxnfc
#define cordon_get_rx_ring_count(netdev) \
	__cordon_get_rx_ring_count(netdev); \
	static int cordon_get_rx_ring_count(struct net_device *dev, struct ethtool_rxnfc *cmd, \
					    u32 *rules) \
	{ \
		if (cmd->cmd != ETHTOOL_GRXRINGS) \
			return -EOPNOTSUPP; \
		cmd->data = __cordon_get_rx_ring_count(dev); \
		return 0; \
	} \
	static u32 __cordon_get_rx_ring_count(netdev)

#endif

#include "xfrm.h"

#endif
