/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_CAPS_H
#define CORE_CAPS_H

#include <stdint.h>

struct fw_port;

#define FW_CAPS_SIZE_MAX 1024

void fw_caps_init(struct fw_port *port);
uint32_t fw_caps_write(const struct fw_port *port, uint8_t *out);

#endif
