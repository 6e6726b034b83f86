/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_RX_H
#define CORE_RX_H

#include <stdbool.h>

struct fw_port;

bool fw_rx_poll(struct fw_port *port);

#endif
