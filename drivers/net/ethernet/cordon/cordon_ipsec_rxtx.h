/* SPDX-License-Identifier: GPL-2.0-only */
/* Cordon: IPsec offload, what is done for each packet. */
#ifndef CORDON_IPSEC_RXTX_H
#define CORDON_IPSEC_RXTX_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/xfrm.h>

#include "cordon.h"

#if IS_ENABLED(CONFIG_CORDON_IPSEC)

bool __cordon_ipsec_tx(struct cordon_dev *cdev, struct sk_buff *skb,
		       struct cordon_tx_accel *accel);
bool cordon_ipsec_rx(struct cordon_dev *cdev, struct sk_buff *skb, u32 handle, u32 rx_flags,
		     u8 result);
bool cordon_ipsec_offload_ok(struct sk_buff *skb, struct xfrm_state *x);

/**
 * cordon_ipsec_tx() - what the card has to do with a packet
 * @cdev: device
 * @skb: packet, as ndo_start_xmit gets it
 * @accel: set if the stack chose an SA for the packet, else all zero
 *
 * Context: ndo_start_xmit.
 * Return: false if the packet must be dropped; it's counted.
 */
static inline bool cordon_ipsec_tx(struct cordon_dev *cdev, struct sk_buff *skb,
				   struct cordon_tx_accel *accel)
{
	memset(accel, 0, sizeof(*accel));
	if (likely(!skb_sec_path(skb)))
		return true;

	return __cordon_ipsec_tx(cdev, skb, accel);
}

/* The SA by which the stack made an ESP packet that the card shall encrypt, else NULL. */
static inline struct xfrm_state *cordon_ipsec_crypto_state(struct sk_buff *skb)
{
	struct xfrm_state *x;

	if (likely(!xfrm_offload(skb)))
		return NULL;

	x = xfrm_input_state(skb);

	return x->xso.dir == XFRM_DEV_OFFLOAD_OUT ? x : NULL;
}

/**
 * cordon_ipsec_features_check() - which features can be used for a packet
 * @skb: packet
 * @features: features that the device has
 *
 * Context: ndo_features_check.
 * Return: features without checksums and segmentation if the packet is an ESP packet whose inside
 * the card sees only after encryption.
 */
static inline netdev_features_t cordon_ipsec_features_check(struct sk_buff *skb,
							    netdev_features_t features)
{
	if (likely(!cordon_ipsec_crypto_state(skb)))
		return features;

	return features & ~(NETIF_F_CSUM_MASK | NETIF_F_GSO_MASK);
}

/**
 * cordon_ipsec_select_queue() - TX queue of a packet that has its sequence number already
 * @skb: packet
 * @queues: number of queues
 * @queue: the queue
 *
 * In crypto mode the stack gives the numbers before it chooses a queue: one SA's packets must go
 * through one queue, else they overtake each other.
 *
 * Context: ndo_select_queue.
 * Return: false if any queue will do.
 */
static inline bool cordon_ipsec_select_queue(struct sk_buff *skb, unsigned int queues,
					     u16 *queue)
{
	const struct xfrm_state *x = cordon_ipsec_crypto_state(skb);

	if (likely(!x))
		return false;

	*queue = ((u32)x->xso.offload_handle & CORDON_HANDLE_INDEX) % queues;

	return true;
}

#else

static inline bool cordon_ipsec_tx(struct cordon_dev *cdev, struct sk_buff *skb,
				   struct cordon_tx_accel *accel)
{
	memset(accel, 0, sizeof(*accel));

	return true;
}

static inline bool cordon_ipsec_rx(struct cordon_dev *cdev, struct sk_buff *skb, u32 handle,
				   u32 rx_flags, u8 result)
{
	return false;
}

static inline netdev_features_t cordon_ipsec_features_check(struct sk_buff *skb,
							    netdev_features_t features)
{
	return features;
}

static inline bool cordon_ipsec_select_queue(struct sk_buff *skb, unsigned int queues,
					     u16 *queue)
{
	return false;
}

#endif /* CONFIG_CORDON_IPSEC */

#endif
