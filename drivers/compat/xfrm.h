/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cordon, compatibility: the offload of SAs before Linux 6.16.
 *
 * Three callbacks had no device argument. The driver defines its functions with it; here each of
 * these definitions becomes that of a function by another name, behind one without the argument
 * that has the name by which the driver's struct xfrmdev_ops refers to it.
 */
#ifndef CORDON_COMPAT_XFRM_H
#define CORDON_COMPAT_XFRM_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)

#include <linux/netdevice.h>
#include <net/xfrm.h>

/*
 * Below a bond the device proper is real_dev; during the first call it is the bond itself, which
 * the driver recognizes as not its own. An SA that waits for a key exchange has none.
 */
static inline struct net_device *cordon_compat_xfrm_dev(const struct xfrm_state *x)
{
	return x->xso.real_dev ?: x->xso.dev;
}

#define cordon_ipsec_state_add(dev_arg, x_arg, extack_arg)					\
	cordon_ipsec_state_add_dev(dev_arg, x_arg, extack_arg);					\
	static int cordon_ipsec_state_add(struct xfrm_state *state,				\
					  struct netlink_ext_ack *state_extack)			\
	{											\
		return cordon_ipsec_state_add_dev(cordon_compat_xfrm_dev(state), state,		\
						  state_extack);				\
	}											\
	static int cordon_ipsec_state_add_dev(dev_arg, x_arg, extack_arg)

#define cordon_ipsec_state_delete(dev_arg, x_arg)						\
	cordon_ipsec_state_delete_dev(dev_arg, x_arg);						\
	static void cordon_ipsec_state_delete(struct xfrm_state *state)				\
	{											\
		cordon_ipsec_state_delete_dev(cordon_compat_xfrm_dev(state), state);		\
	}											\
	static void cordon_ipsec_state_delete_dev(dev_arg, x_arg)

#define cordon_ipsec_state_free(dev_arg, x_arg)							\
	cordon_ipsec_state_free_dev(dev_arg, x_arg);						\
	static void cordon_ipsec_state_free(struct xfrm_state *state)				\
	{											\
		cordon_ipsec_state_free_dev(cordon_compat_xfrm_dev(state), state);		\
	}											\
	static void cordon_ipsec_state_free_dev(dev_arg, x_arg)

#endif

#endif
