// SPDX-License-Identifier: BSD-3-Clause
/*
 * The replay window against a model that knows nothing of words and rings, at every position, over both wraps of the lower half, and
 * killed at every store.
 */
#include <setjmp.h>
#include <stdio.h>

/* A store to the state block is a place where the firmware may be killed. */
static jmp_buf killed;
static int stores_left = -1;

#define __atomic_store_n(at, value, order) \
	do { \
		if (!stores_left) \
			longjmp(killed, 1); \
		if (stores_left > 0) \
			stores_left--; \
		*(at) = (value); \
	} while (0)

#include "path/replay.c"

#undef __atomic_store_n

#include "tests/test.h"

#define MODEL_LEN (1u << 16)

/* Everything that was accepted, of the last MODEL_LEN numbers. */
struct model {
	uint64_t top;
	uint32_t window;
	bool seen[MODEL_LEN];
};

static struct fw_sa sa;
static struct model model;

static const uint32_t windows[] = { 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 193, 1000, 2047, 2048, 4032, 4033, 4095, 4096 };

static void start(uint32_t window, uint32_t flags, uint64_t top)
{
	uint32_t words = 2;

	while (words * 64 < window + 64)
		words *= 2;
	free(sa.state);
	memset(&sa, 0, sizeof(sa));
	sa.cfg.replay_window = window;
	sa.cfg.flags = flags;
	sa.words_mask = words - 1;
	/* No byte more than the contract gives, for the sanitizer. */
	sa.state = calloc(1, sizeof(*sa.state) + 8 * words);
	assert_non_null(sa.state);
	sa.state->seq = top;
	memset(&model, 0, sizeof(model));
	model.top = top;
	model.window = window;
}

static bool model_may(uint64_t n)
{
	if (!model.window)
		return true;
	if (!n)
		return false;
	if (n > model.top)
		return true;
	return model.top - n < model.window && !model.seen[n % MODEL_LEN];
}

static bool model_accept(uint64_t n)
{
	uint64_t i;

	if (!model_may(n))
		return false;
	if (n > model.top) {
		if (n - model.top >= MODEL_LEN)
			memset(model.seen, 0, sizeof(model.seen));
		else
			for (i = model.top + 1; i <= n; i++)
				model.seen[i % MODEL_LEN] = false;
		model.top = n;
	}
	model.seen[n % MODEL_LEN] = true;
	return true;
}

/* One number to both. */
static void feed(const char *desc, uint64_t n)
{
	bool may = model_may(n);

	check_eq(desc, !fw_replay_check(&sa, n), may);
	check_eq(desc, !fw_replay_commit(&sa, n), model_accept(n));
	check_eq(desc, sa.state->seq, model.top);
	if (may && model.window)
		check(desc, fw_replay_check(&sa, n));
}

static const char *row(uint32_t window, uint64_t top)
{
	static char text[64];

	snprintf(text, sizeof(text), "window %u, top %#llx", window, (unsigned long long)top);
	return text;
}

/* Each position of the window, at each position of the window in its words. */
static void test_positions(void **unused)
{
	uint64_t top, n;
	unsigned int i;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(windows); i++) {
		for (top = 10000; top < 10000 + (windows[i] > 200 ? 3 : 130); top++) {
			const char *desc = row(windows[i], top);

			start(windows[i], 0, 0);
			feed(desc, top);
			for (n = top - windows[i] - 70; n <= top + 2; n++)
				feed(desc, n);
			for (n = top - windows[i] - 70; n <= top + 2; n++)
				feed(desc, n);
		}
	}
}

/* From the first number on, in order, backwards and with everything twice. */
static void test_beginning(void **unused)
{
	unsigned int i;
	uint64_t n;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(windows); i++) {
		start(windows[i], 0, 0);
		check("zero", fw_replay_check(&sa, 0) && fw_replay_commit(&sa, 0));
		for (n = 0; n < 300; n++) {
			feed("forward", n);
			feed("again", n);
		}
		start(windows[i], 0, 0);
		for (n = 300; n != UINT64_MAX; n--)
			feed("backward", n);
	}
}

/* Jumps of every length about the size of window and ring, and far ones. */
static void test_jumps(void **unused)
{
	unsigned int i;
	uint64_t jump, n, top;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(windows); i++) {
		for (jump = 1; jump < 300; jump++) {
			start(windows[i], 0, 0);
			for (n = 1; n <= windows[i] + 130 && n < 500; n++)
				feed("fill", n);
			top = model.top + (jump > 250 ? (jump - 250) * 997 : jump > 200 ? windows[i] + jump - 225 : jump);
			feed("jump", top);
			for (n = top > windows[i] + 5 ? top - windows[i] - 5 : 0; n <= top; n += 1 + windows[i] / 200)
				feed("behind the jump", n);
		}
		start(windows[i], CORDON_SA_ESN, 5);
		feed("to the end of time", UINT64_MAX);
		feed("just before", UINT64_MAX - 1);
		feed("long ago", 6);
	}
}

/* Shuffled packets with repetitions, across a wrap. */
static void shuffle(uint32_t window, uint32_t flags, uint64_t from, uint64_t to, uint32_t spread)
{
	const char *desc = row(window, from);
	uint64_t base, low;
	unsigned int i;

	start(window, flags, from);
	for (base = from; base < to; base += spread / 3 + 1) {
		for (i = 0; i < 12; i++) {
			low = base + test_random() % spread;
			if (low >= spread / 2 + from)
				low -= spread / 2;
			if (low > to)
				continue;
			if (flags & CORDON_SA_ESN && window) {
				/* A real packet brings 32 bits. Those out of the window are taken for later ones and fail by their ICV. */
				uint64_t guess = fw_replay_number(&sa, (uint32_t)low);

				if (model.top - low < window || low > model.top)
					check_eq(desc, guess, low);
				else
					check(desc, model.top - guess >= window);
			}
			feed(desc, low);
		}
	}
}

static void test_shuffled(void **unused)
{
	static const uint64_t froms[] = { 0, 0xffffffffull - 5000, 0x1ffffffffull - 5000, UINT64_MAX - 20000 };
	unsigned int i, j;
	uint32_t spread;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(windows); i++) {
		for (j = 0; j < ARRAY_CNT(froms); j++)
			for (spread = 10; spread < 10000; spread *= 9)
				shuffle(windows[i], CORDON_SA_ESN, froms[j], froms[j] + 9000, spread);
		shuffle(windows[i], 0, 0xffffffff - 9000, 0xffffffff, 100);
	}
}

/* Without ESN nothing comes after 0xffffffff. */
static void test_end(void **unused)
{
	uint64_t n;

	(void)unused;
	start(64, 0, 0xfffffff0);
	for (n = 0xfffffff1; n <= 0xffffffff; n++)
		feed("the last ones", n);
	for (n = 0; n < 200; n++)
		check("wrapped", fw_replay_commit(&sa, fw_replay_number(&sa, (uint32_t)n)));
}

static void test_no_window(void **unused)
{
	uint8_t bitmap[16];
	uint64_t n;

	(void)unused;
	start(0, 0, 7);
	memset(sa.state->bitmap, 0xff, sizeof(bitmap));
	for (n = 0; n < 300; n++) {
		assert_false(fw_replay_check(&sa, n % 150));
		assert_false(fw_replay_commit(&sa, n % 150));
	}
	assert_int_equal(sa.state->seq, 149);
	memset(bitmap, 0xff, sizeof(bitmap));
	assert_memory_equal(sa.state->bitmap, bitmap, sizeof(bitmap));
}

/*
 * RFC 4303 A2.2 said otherwise: of all numbers with the right lower half, the one in the 2^32 that begin with the window's last.
 */
static void test_guess(void **unused)
{
	static const uint64_t tops[] = {
		0, 1, 62, 63, 64, 4094, 4095, 4096, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x100000000ull, 0x100000001ull,
		0x10000003eull, 0x10000003full, 0x100000040ull, 0x1fffffffeull, 0x1ffffffffull, 0x200000000ull, 0x2000007ffull,
		0xffffffff00000000ull, 0xffffffff00000020ull, 0xffffffffffffffffull,
	};
	unsigned int i, j, k;
	uint64_t bottom;
	uint32_t low;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(windows); i++) {
		for (j = 0; j < ARRAY_CNT(tops) + 100; j++) {
			uint64_t top = j < ARRAY_CNT(tops) ? tops[j] : test_random() >> j % 33;

			start(windows[i], CORDON_SA_ESN, top);
			bottom = top - windows[i] + 1;
			for (k = 0; k < 60; k++) {
				low = k < 10 ? (uint32_t)top + k - 5 : k < 20 ? (uint32_t)bottom + k - 15 : k < 30 ? k - 25 : (uint32_t)test_random();
				check_eq(row(windows[i], top), fw_replay_number(&sa, low), bottom + (uint32_t)(low - (uint32_t)bottom));
			}
		}
	}
	start(64, 0, 0x500000000ull);
	check_eq("without ESN", fw_replay_number(&sa, 77), 77);
	start(0, CORDON_SA_ESN, 0x1fffffff0ull);
	check_eq("no window, ahead", fw_replay_number(&sa, 5), 0x200000005ull);
	check_eq("no window, behind", fw_replay_number(&sa, 0xfffffff0), 0x1fffffff0ull);
	start(0, CORDON_SA_ESN, 0x200000005ull);
	check_eq("no window, behind a wrap", fw_replay_number(&sa, 0xfffffff0), 0x1fffffff0ull);
}

/* Three wraps in a row, each number seen once and once more. */
static void test_wraps(void **unused)
{
	uint64_t wrap, n, got;

	(void)unused;
	for (wrap = 1; wrap <= 3; wrap++) {
		start(128, CORDON_SA_ESN, (wrap << 32) - 300);
		for (n = (wrap << 32) - 299; n < (wrap << 32) + 300; n++) {
			/* Pairs change places. */
			got = fw_replay_number(&sa, (uint32_t)(n ^ 1));
			check_eq("wrap", got, n ^ 1);
			feed("wrap", got);
			check("wrap", fw_replay_commit(&sa, fw_replay_number(&sa, (uint32_t)(n ^ 1))));
		}
	}
}

/* Accept @n, but be killed in front of store number @stop. Return: false if there aren't so many. */
static bool commit_killed(uint64_t n, int stop)
{
	bool done = false;

	if (!setjmp(killed)) {
		stores_left = stop;
		done = !fw_replay_commit(&sa, n);
	}
	stores_left = -1;
	return !done;
}

/* Nothing of 1 to @top comes again, and whatever is left in the bitmap, life goes on. */
static void check_afterwards(uint64_t top)
{
	uint64_t n;
	int i;

	check("floor", sa.state->seq >= top);
	for (n = 1; n <= top; n++)
		check("accepted twice", fw_replay_commit(&sa, n));
	for (i = 0; i < 300; i++) {
		n = sa.state->seq + 1;
		check("ahead", !fw_replay_commit(&sa, n) && fw_replay_commit(&sa, n));
	}
}

/* Killed at any store: the floor doesn't sink, and what was accepted once is never accepted again. */
static void test_killed(void **unused)
{
	static const uint64_t jumps[] = { 1, 2, 63, 64, 65, 127, 128, 129, 500, 4096, 5000, 100000 };
	unsigned int i, k;
	uint64_t n, top;
	bool more;
	int at;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(windows); i++) {
		for (k = 0; k < ARRAY_CNT(jumps) * 4; k++) {
			at = 0;
			do {
				start(windows[i], 0, 0);
				top = 200 + k % 4 * 21;
				for (n = 1; n <= top; n++)
					fw_replay_commit(&sa, n);
				more = commit_killed(top + jumps[k / 4], at++);
				check_afterwards(top);
			} while (more);
		}
	}
}

/* The guest owns the block: whatever it writes, nothing beside the block is touched. */
static void test_hostile(void **unused)
{
	unsigned int i, j;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(windows); i++) {
		start(windows[i], CORDON_SA_ESN, 0);
		for (j = 0; j < 20000; j++) {
			if (!(j % 3))
				sa.state->seq = test_random() >> test_random() % 64;
			if (!(j % 7))
				test_fill(sa.state->bitmap, 8 * (sa.words_mask + 1));
			fw_replay_commit(&sa, fw_replay_number(&sa, (uint32_t)test_random()));
			fw_replay_commit(&sa, test_random());
			fw_replay_advance(&sa, test_random());
		}
	}
}

static void test_advance(void **unused)
{
	(void)unused;
	start(64, CORDON_SA_ESN, 100);
	fw_replay_advance(&sa, 99);
	assert_int_equal(sa.state->seq, 100);
	fw_replay_advance(&sa, 0x100000001ull);
	assert_int_equal(sa.state->seq, 0x100000001ull);
}

static int stop(void **unused)
{
	(void)unused;
	free(sa.state);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_positions), cmocka_unit_test(test_beginning), cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_shuffled),  cmocka_unit_test(test_end),	    cmocka_unit_test(test_no_window),
		cmocka_unit_test(test_guess),	  cmocka_unit_test(test_wraps),	    cmocka_unit_test(test_killed),
		cmocka_unit_test(test_hostile),	  cmocka_unit_test(test_advance),
	};

	return cmocka_run_group_tests(tests, NULL, stop);
}
