/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_CMD_H
#define CORE_CMD_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include "cordon/cmd.h"

struct fw_port;

/**
 * fw_cmd_refuse() - say what was refused
 * @done: completion of the command
 * @status: enum cordon_cmd_status
 * @param: enum cordon_param
 * @min: what is allowed
 * @max: what is allowed
 *
 * Return: @status.
 */
static inline uint16_t fw_cmd_refuse(struct cordon_cmd_completion *done, uint16_t status,
				     uint16_t param, uint64_t min, uint64_t max)
{
	done->param = htole16(param);
	done->min = htole64(min);
	done->max = htole64(max);
	return status;
}

bool fw_cmd_poll(struct fw_port *port);
bool fw_cmd_waits(const struct fw_port *port);

#endif
