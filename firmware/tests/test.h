/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the unit tests have in common.
 */
#ifndef FW_TESTS_TEST_H
#define FW_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* A check inside a table: says which row. */
#define check(desc, cond) \
	do { \
		if (!(cond)) \
			fail_msg("%s: %s", (desc), #cond); \
	} while (0)

#define check_eq(desc, a, b) \
	do { \
		unsigned long long a_ = (unsigned long long)(a); \
		unsigned long long b_ = (unsigned long long)(b); \
		if (a_ != b_) \
			fail_msg("%s: %s is %#llx, %s is %#llx", (desc), #a, a_, #b, b_); \
	} while (0)

/** test_random() - xorshift: the same numbers in each run; Return: number */
static inline uint64_t test_random(void)
{
	static uint64_t state = 0x853c49e6748fea9bull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

/** test_fill() - random bytes */
static inline void test_fill(void *data, size_t len)
{
	uint8_t *at = data;

	while (len--)
		*at++ = (uint8_t)(test_random() >> 32);
}

static inline uint8_t test_nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/** test_hex() - bytes of a string of hexadecimal digits; Return: number of bytes */
static inline size_t test_hex(const char *hex, void *data)
{
	uint8_t *at = data;
	size_t len = strlen(hex) / 2;
	size_t i;

	for (i = 0; i < len; i++)
		at[i] = (uint8_t)(test_nibble(hex[2 * i]) << 4 | test_nibble(hex[2 * i + 1]));
	return len;
}

#endif
