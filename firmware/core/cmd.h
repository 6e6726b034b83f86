/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_CMD_H
#define CORE_CMD_H

#include <stdbool.h>

struct fw_port;

bool fw_cmd_poll(struct fw_port *port);
bool fw_cmd_waits(const struct fw_port *port);

#endif
