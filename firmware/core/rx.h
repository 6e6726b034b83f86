/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_RX_H
#define CORE_RX_H

#include <stdbool.h>

struct fw_port;
struct fw_reassembly;

struct fw_reassembly *fw_rx_reassembly_alloc(struct fw_port *port);
bool fw_rx_poll(struct fw_port *port);

#endif
