// SPDX-License-Identifier: GPL-2.0-only
/* Cordon: IPsec offload, SAs as debugfs shows them. Keys aren't shown. */

#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "cordon_ipsec.h"

static const char *const mode_names[] = {
	[CORDON_MODE_TRANSPORT] = "transport",
	[CORDON_MODE_TUNNEL] = "tunnel",
	[CORDON_MODE_BEET] = "beet",
};

static void show_drops(struct seq_file *file, const struct cordon_sa_state *state)
{
	unsigned int i;
	u64 drops;

	for (i = 0; i < CORDON_SA_DROP_CNT; i++) {
		drops = cordon_sa_read(&state->drops[i]);
		if (drops)
			seq_printf(file, " %s %llu",
				   cordon_result_names[CORDON_SA_DROP_FIRST + i] ?: "other", drops);
	}
}

static void show_sa(struct seq_file *file, const struct cordon_sa *sa)
{
	const struct cordon_sa_state *state = sa->block->state;
	u32 flags = le32_to_cpu(READ_ONCE(state->flags));

	seq_printf(file, "%#010x spi %#010x reqid %u %s %s %s%s", sa->handle,
		   be32_to_cpu(sa->cfg.spi), le32_to_cpu(sa->cfg.reqid),
		   cordon_sa_is_out(sa) ? "out" : "in", mode_names[sa->cfg.mode],
		   cordon_sa_is_packet(sa) ? "packet" : "crypto",
		   READ_ONCE(sa->dead) ? " dead" : READ_ONCE(sa->on_card) ? "" : " lost");
	if (cordon_sa_is_packet(sa))
		seq_printf(file, " seq %llu packets %llu bytes %llu%s%s%s%s",
			   cordon_sa_read(&state->seq), cordon_sa_read(&state->packets),
			   cordon_sa_read(&state->bytes),
			   flags & CORDON_SA_STATE_USED ? " used" : "",
			   flags & CORDON_SA_STATE_SOFT ? " soft" : "",
			   flags & CORDON_SA_STATE_HARD ? " hard" : "",
			   flags & CORDON_SA_STATE_EXHAUSTED ? " exhausted" : "");
	seq_puts(file, " drops");
	show_drops(file, state);
	seq_putc(file, '\n');
}

/**
 * cordon_ipsec_show() - print the SAs
 * @file: where to print
 * @cdev: device with IPsec offload
 *
 * Context: process.
 */
void cordon_ipsec_show(struct seq_file *file, const struct cordon_dev *cdev)
{
	struct cordon_sa *sa;
	unsigned long index;

	/* SAs and their blocks stay for as long as there are readers. */
	rcu_read_lock();
	xa_for_each(&cdev->ipsec->sas.xa, index, sa) {
		show_sa(file, sa);
		if (need_resched()) {
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();
}
