/* SPDX-License-Identifier: GPL-2.0-only */
/* Cordon: IPsec policies. */
#ifndef CORDON_POLICY_H
#define CORDON_POLICY_H

#include <linux/types.h>

struct cordon_ipsec;
struct cordon_ipsec_restore;
struct cordon_selector;
struct netlink_ext_ack;
struct xfrm_policy;
struct xfrm_selector;

int cordon_policy_add(struct xfrm_policy *xp, struct netlink_ext_ack *extack);
void cordon_policy_delete(struct xfrm_policy *xp);
void cordon_policy_free(struct xfrm_policy *xp);

void cordon_policy_fill_selector(struct cordon_selector *to, const struct xfrm_selector *from);
void cordon_policy_del_pending(struct cordon_ipsec *ipsec);
int cordon_policy_restore(struct cordon_ipsec *ipsec, struct cordon_ipsec_restore *restore);
void cordon_policy_drop_limbo(struct cordon_ipsec *ipsec);

#endif
