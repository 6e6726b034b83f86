// SPDX-License-Identifier: BSD-3-Clause
/* Messages on stderr. */
#include <stdarg.h>
#include <stdio.h>

#include "board/board.h"

enum board_log_level board_log_level = BOARD_LOG_WARNING;

/**
 * board_log - write a message
 * @level: its level
 * @format: as for printf, without newline
 *
 * Context: any.
 */
void board_log(enum board_log_level level, const char *format, ...)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	char text[512];
	va_list args;

	if (level > board_log_level)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "cordond: %s: %s\n", names[level], text);
}
