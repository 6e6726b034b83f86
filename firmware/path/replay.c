// SPDX-License-Identifier: BSD-3-Clause
#include "path/replay.h"

#include "path/bytes.h"
#include "path/state.h"

uint64_t fw_replay_number(const struct fw_sa *sa, uint32_t low)
{
	uint32_t window = le32toh(sa->cfg.replay_window);
	uint64_t top;
	uint32_t high, bottom;

	if (!(le32toh(sa->cfg.flags) & CORDON_SA_ESN))
		return low;

	/* Without a window a number is taken for the nearest one. */
	if (!window)
		window = 1u << 31;
	top = fw_state_seq(sa);
	high = (uint32_t)(top >> 32);
	bottom = (uint32_t)top - window + 1;
	if ((uint32_t)top >= window - 1) {
		/* Case A: the window lies in one half's range, a number below it is of the next. */
		if (low < bottom)
			high++;
	} else if (low >= bottom) {
		/* Case B: the window reaches back over a wrap. */
		high--;
	}
	return (uint64_t)high << 32 | low;
}

static enum cordon_result check(const struct fw_sa *sa, uint64_t n, uint64_t top)
{
	uint32_t window = le32toh(sa->cfg.replay_window);

	if (!window)
		return CORDON_RESULT_OK;
	/* RFC 4303 2.2: the first number is 1. */
	if (!n)
		return CORDON_RESULT_REPLAY_WINDOW;
	if (n > top)
		return CORDON_RESULT_OK;
	if (top - n >= window)
		return CORDON_RESULT_REPLAY_WINDOW;
	return fw_state_bits(sa, n) >> n % 64 & 1 ? CORDON_RESULT_REPLAY : CORDON_RESULT_OK;
}

enum cordon_result fw_replay_check(const struct fw_sa *sa, uint64_t n)
{
	return check(sa, n, fw_state_seq(sa));
}

enum cordon_result fw_replay_commit(struct fw_sa *sa, uint64_t n)
{
	uint64_t top = fw_state_seq(sa);
	enum cordon_result result = check(sa, n, top);
	uint64_t words = 0;
	uint64_t i;

	if (result != CORDON_RESULT_OK)
		return result;
	if (n > top) {
		/*
		 * The floor rises first. Killed behind this store, old bits stay where new numbers
		 * belong and forbid some that are late; the other way round, numbers of the old
		 * window would lose their bits and be accepted again.
		 */
		fw_state_set_seq(sa, n);
		words = FW_MIN(n / 64 - top / 64, (uint64_t)sa->words_mask + 1);
	}
	if (sa->cfg.replay_window) {
		for (i = 0; i < words; i++)
			fw_state_set_bits(sa, n - i * 64, 0);
		fw_state_set_bits(sa, n, fw_state_bits(sa, n) | 1ull << n % 64);
	}
	fw_state_settle();
	return CORDON_RESULT_OK;
}

void fw_replay_advance(struct fw_sa *sa, uint64_t n)
{
	if (n > fw_state_seq(sa))
		fw_state_set_seq(sa, n);
}
