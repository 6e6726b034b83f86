/* SPDX-License-Identifier: GPL-2.0-only */
/* Cordon: Ethernet addresses for the packets of tunnel SAs. */
#ifndef CORDON_NEXTHOP_H
#define CORDON_NEXTHOP_H

#include <linux/workqueue.h>

struct cordon_ipsec;
struct cordon_sa;

int cordon_nexthop_init(struct cordon_ipsec *ipsec);
void cordon_nexthop_exit(struct cordon_ipsec *ipsec);
void cordon_nexthop_resolve(struct cordon_ipsec *ipsec, struct cordon_sa *sa);
void cordon_nexthop_kick(struct cordon_ipsec *ipsec);

#endif
