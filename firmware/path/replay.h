/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequence numbers that come in.
 *
 * The window is a ring of bits in the state block, as in RFC 6479: number n is bit
 * n % 64 of word n / 64 modulo the words. There is one word more than the window needs, so a number
 * moves the window by clearing whole words, never by shifting.
 */
#ifndef FW_PATH_REPLAY_H
#define FW_PATH_REPLAY_H

#include "path/sa.h"

/**
 * fw_replay_number() - the whole number of a packet
 * @sa: IN SA with a state block
 * @low: its lower half, as the packet says
 *
 * With ESN the upper half is guessed by RFC 4303 A2.2, exactly as the host's stack guesses it: in
 * crypto mode the two must never differ, or the host would take an old packet for a new one.
 *
 * Return: number.
 */
uint64_t fw_replay_number(const struct fw_sa *sa, uint32_t low);

/**
 * fw_replay_check() - could the number be accepted
 * @sa: IN SA with a state block
 * @n: number
 *
 * Return: CORDON_RESULT_OK if it is ahead of the window, or inside and wasn't seen; else
 * CORDON_RESULT_REPLAY or CORDON_RESULT_REPLAY_WINDOW.
 */
enum cordon_result fw_replay_check(const struct fw_sa *sa, uint64_t n);

/**
 * fw_replay_commit() - accept the number of a packet that was verified
 * @sa: IN SA with a state block
 * @n: number
 *
 * Checks again: another packet of the same burst may have had the number.
 *
 * Return: CORDON_RESULT_OK if it was accepted, and the block says so before this returns; else as
 * fw_replay_check().
 */
enum cordon_result fw_replay_commit(struct fw_sa *sa, uint64_t n);

/**
 * fw_replay_advance() - keep the greatest number without a window (crypto mode with ESN)
 * @sa: IN SA with a state block
 * @n: number that was verified
 */
void fw_replay_advance(struct fw_sa *sa, uint64_t n);

#endif
