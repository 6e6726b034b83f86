/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FW_PATH_CFG_H
#define FW_PATH_CFG_H

#include <endian.h>
#include <stdint.h>

#include "cordon/cmd.h"

/**
 * fw_cfg_refuse() - say what of a configuration was refused
 * @done: completion of the command
 * @status: enum cordon_cmd_status
 * @param: enum cordon_param
 * @min: what is allowed
 * @max: what is allowed
 *
 * Return: @status.
 */
static inline uint16_t fw_cfg_refuse(struct cordon_cmd_completion *done, uint16_t status,
				     uint16_t param, uint64_t min, uint64_t max)
{
	done->param = htole16(param);
	done->min = htole64(min);
	done->max = htole64(max);
	return status;
}

#endif
