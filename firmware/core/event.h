/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include <stdint.h>

#include "cordon/event.h"

struct fw_port;

void fw_event_post(struct fw_port *port, uint16_t type, uint32_t handle, uint64_t value);
void fw_event_poll(struct fw_port *port);

#endif
