/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_IPC_H
#define CORE_IPC_H

#include <stdint.h>

#include "cordon/regs.h"

struct fw_worker;

void fw_ipc_poll(struct fw_worker *w);
void fw_ipc_send_failed(struct fw_worker *w, uint32_t port, enum cordon_error why);

#endif
