// SPDX-License-Identifier: BSD-3-Clause
/*
 * Messages on stderr, which may be a pipe that nobody reads: a message that there is no room for is
 * lost, and a later one tells how many were. Warnings and information follow from what guests do,
 * so there are only so many of them in a second.
 */
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "board/board.h"

#define LOG_LINES_PER_SECOND 10

enum board_log_level board_log_level = BOARD_LOG_WARNING;

static unsigned long lost;

static bool is_too_much(enum board_log_level level)
{
	static struct {
		uint64_t second;
		unsigned int lines;
	} used[BOARD_LOG_DEBUG + 1];
	uint64_t second = board_loop_now() / 1000;

	if (level != BOARD_LOG_WARNING && level != BOARD_LOG_INFO)
		return false;
	if (used[level].second != second) {
		used[level].second = second;
		used[level].lines = 0;
	}
	return used[level].lines++ >= LOG_LINES_PER_SECOND;
}

/* What poll() calls writable takes PIPE_BUF bytes at once. Return: it was written. */
static bool write_line(const char *line, int len)
{
	struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (len < 0 || len > PIPE_BUF || poll(&err, 1, 0) != 1 || !(err.revents & POLLOUT))
		return false;
	return write(STDERR_FILENO, line, (size_t)len) == len;
}

/**
 * board_log - write a message
 * @level: its level
 * @format: as for printf, without newline
 *
 * Context: one thread. It doesn't wait.
 */
void board_log(enum board_log_level level, const char *format, ...)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	char text[512], line[600];
	int len;
	va_list args;

	if (level > board_log_level)
		return;
	if (is_too_much(level)) {
		lost++;
		return;
	}
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (lost) {
		len = snprintf(line, sizeof(line), "cordond: %lu messages are missing here\n",
			       lost);
		if (write_line(line, len))
			lost = 0;
	}
	len = snprintf(line, sizeof(line), "cordond: %s: %s\n", names[level], text);
	if (!write_line(line, len))
		lost++;
}
