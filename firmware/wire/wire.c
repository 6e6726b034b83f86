// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>

#include "wire/wire.h"

int fw_wire_fds(uint32_t kind)
{
	switch (kind) {
	case FW_IPC_WIRE_NONE:
		return 0;
	case FW_IPC_WIRE_SHM:
		return 3;
	case FW_IPC_WIRE_UNIX:
	case FW_IPC_WIRE_TAP:
		return 1;
	}
	return -EINVAL;
}

int fw_wire_create(const struct fw_ipc_msg *msg, const int *fds, uint32_t count,
		   struct fw_wire **out)
{
	int need = fw_wire_fds(msg->add.wire);

	if (need < 0)
		return need;
	if (count != (uint32_t)need)
		return -EINVAL;
	switch (msg->add.wire) {
	case FW_IPC_WIRE_SHM:
		return fw_wire_shm_create(msg, fds, out);
	case FW_IPC_WIRE_UNIX:
		return fw_wire_unix_create(msg, fds, out);
	case FW_IPC_WIRE_TAP:
		return fw_wire_tap_create(msg, fds, out);
	default:
		return fw_wire_none_create(out);
	}
}
