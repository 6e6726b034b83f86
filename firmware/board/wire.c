// SPDX-License-Identifier: BSD-3-Clause
/* Opens what ports are plugged into; the firmware only gets file descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "board/board.h"
#include "wire/shm.h"

static void give(struct board_wire *wire, int fd)
{
	wire->fds[wire->fd_count++] = fd;
}

/* The port with the lower number opens the wire for both. */
static int open_shm(struct board_port *port)
{
	struct board_port *other = &port->board->ports[port->options->wire_port];
	int memory, wake[2];

	if (port > other)
		return 0;
	memory = memfd_create("cordon-wire", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory < 0)
		return -errno;
	give(&port->wire, memory);
	if (ftruncate(memory, FW_IPC_SHM_SIZE) ||
	    fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	wake[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake[0] < 0)
		return -errno;
	give(&port->wire, wake[0]);
	wake[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake[1] < 0)
		return -errno;
	give(&port->wire, wake[1]);
	other->wire.end = 1;
	give(&other->wire, memory);
	give(&other->wire, wake[1]);
	give(&other->wire, wake[0]);
	return 0;
}

static int unlink_stale(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	return unlink(path) ? -errno : 0;
}

static int open_unix(struct board_port *port)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = port->options->wire_local;
	int fd, ret;

	ret = unlink_stale(path);
	if (ret)
		return ret;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	give(&port->wire, fd);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -errno;
	port->wire.bound = path;
	return 0;
}

static int open_tap(struct board_port *port)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd;

	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	give(&port->wire, fd);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", port->options->wire_local);
	if (ioctl(fd, TUNSETIFF, &ifr))
		return -errno;
	return 0;
}

/**
 * board_wire_open - open the wire of a port
 * @port: port; ports are opened in the order of their numbers
 *
 * Context: before the loop.
 * Return: 0 or -errno; board_wire_close() cleans up in either case.
 */
int board_wire_open(struct board_port *port)
{
	switch (port->options->wire) {
	case FW_IPC_WIRE_SHM:
		return open_shm(port);
	case FW_IPC_WIRE_UNIX:
		return open_unix(port);
	case FW_IPC_WIRE_TAP:
		return open_tap(port);
	case FW_IPC_WIRE_NONE:
		break;
	}
	return 0;
}

/**
 * board_wire_leave - tell the other end of a wire that this end's firmware is gone
 * @port: port whose firmware died
 *
 * The other end sees its link go down; a firmware that is started anew brings it up again.
 *
 * Context: the loop; the firmware is dead.
 */
void board_wire_leave(struct board_port *port)
{
	static const uint32_t gone;
	const struct board_wire *wire = &port->wire;
	off_t at = (off_t)(offsetof(struct fw_wire_shm, present) + sizeof(gone) * wire->end);

	if (port->options->wire != FW_IPC_WIRE_SHM)
		return;
	if (pwrite(wire->fds[0], &gone, sizeof(gone), at) != sizeof(gone))
		board_log(BOARD_LOG_ERROR, "%s: the other end can't be told: %s",
			  port->options->name, strerror(errno));
	board_irq_signal(wire->fds[2]);
}

/**
 * board_wire_close - close the wire of a port
 * @port: port
 *
 * Context: after the loop.
 */
void board_wire_close(struct board_port *port)
{
	bool owned = port->options->wire != FW_IPC_WIRE_SHM || port->wire.end == 0;

	while (port->wire.fd_count) {
		int fd = port->wire.fds[--port->wire.fd_count];

		if (owned)
			close(fd);
	}
	if (port->wire.bound)
		unlink(port->wire.bound);
	port->wire.bound = NULL;
}
