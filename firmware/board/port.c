// SPDX-License-Identifier: BSD-3-Clause
/* The ports: made from the command line, distributed to firmware processes, given their sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "board/board.h"

/*
 * Shared with the client, which must not be able to cut the file off below the board's or the
 * firmware's mapping.
 */
static int create_doorbell(struct board_port *port)
{
	void *map;

	port->doorbell_fd = memfd_create("cordon-doorbell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (port->doorbell_fd < 0)
		return -errno;
	if (ftruncate(port->doorbell_fd, CORDON_BAR_DOORBELL_SIZE) ||
	    fcntl(port->doorbell_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	map = mmap(NULL, CORDON_BAR_DOORBELL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		   port->doorbell_fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	port->doorbell = map;
	return 0;
}

static int open_capture(struct board_port *port)
{
	if (!port->options->capture)
		return 0;
	/* Appending: a firmware that takes over begins a new section of the file. */
	port->capture_fd = open(port->options->capture,
				O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (port->capture_fd < 0) {
		int ret = -errno;

		board_log(BOARD_LOG_ERROR, "--capture %s: %s: %s", port->options->name,
			  port->options->capture, strerror(-ret));
		return ret;
	}
	return 0;
}

/* MSI knows only powers of two. */
static uint32_t count_vectors(const struct board *board, const struct board_port_options *options)
{
	uint32_t wanted = 1 + options->queues, vectors;

	if (!board->options.msi)
		return wanted;
	for (vectors = 1; 2 * vectors <= wanted; vectors *= 2)
		;
	return vectors;
}

static struct board_firmware *find_firmware(struct board *board, const char *group)
{
	unsigned int i;

	for (i = 0; group && i < board->firmware_count; i++) {
		const char *other = board->firmwares[i].ports[0]->options->group;

		if (other && strcmp(other, group) == 0)
			return &board->firmwares[i];
	}
	board_firmware_init(&board->firmwares[board->firmware_count], board);
	return &board->firmwares[board->firmware_count++];
}

/* File descriptors are marked as absent first, so that destroying works from any point on. */
static void init_port(struct board *board, unsigned int index)
{
	struct board_port *port = &board->ports[index];

	port->board = board;
	port->options = &board->options.ports[index];
	port->vectors = count_vectors(board, port->options);
	port->listener.fd = -1;
	port->listen_fd = -1;
	port->doorbell_fd = -1;
	port->kick_fd = -1;
	port->nowhere_fd = -1;
	port->capture_fd = -1;
	board_client_init(&port->client);
	board_irq_init(&port->irq);
	LIST_INIT(&port->dma.files);
	board_port_power_on(port);
}

static int create_port(struct board_port *port)
{
	int ret;

	ret = create_doorbell(port);
	if (ret)
		return ret;
	port->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (port->kick_fd < 0)
		return -errno;
	port->nowhere_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (port->nowhere_fd < 0)
		return -errno;
	ret = open_capture(port);
	if (ret)
		return ret;
	ret = board_wire_open(port);
	if (ret) {
		board_log(BOARD_LOG_ERROR, "--port %s: wire %s: %s", port->options->name,
			  port->options->wire_local, strerror(-ret));
		return ret;
	}
	return 0;
}

static int join_firmware(struct board *board, struct board_port *port)
{
	struct board_firmware *firmware = find_firmware(board, port->options->group);

	port->firmware = firmware;
	if (firmware->port_count == FW_IPC_PORTS_MAX) {
		board_log(BOARD_LOG_ERROR, "--port %s: group %s has more than %d ports",
			  port->options->name, port->options->group, FW_IPC_PORTS_MAX);
		return -E2BIG;
	}
	port->slot = firmware->port_count;
	firmware->ports[firmware->port_count++] = port;
	return 0;
}

/**
 * board_port_create_all - make all ports
 * @board: board; in case of an error board_port_destroy_all() cleans up
 *
 * Context: before the loop.
 * Return: 0 or -errno.
 */
int board_port_create_all(struct board *board)
{
	unsigned int i;
	int ret;

	board->ports = calloc(board->options.port_count, sizeof(*board->ports));
	board->firmwares = calloc(board->options.port_count, sizeof(*board->firmwares));
	if (!board->ports || !board->firmwares)
		return -ENOMEM;
	board->port_count = board->options.port_count;
	for (i = 0; i < board->port_count; i++)
		init_port(board, i);
	for (i = 0; i < board->port_count; i++) {
		ret = join_firmware(board, &board->ports[i]);
		if (ret)
			return ret;
	}
	for (i = 0; i < board->port_count; i++) {
		ret = create_port(&board->ports[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void destroy_port(struct board_port *port)
{
	if (port->listen_fd >= 0)
		unlink(port->options->socket);
	close_fd(port->listen_fd);
	close_fd(port->client.event.fd);
	board_irq_clear(port);
	board_dma_clear(port);
	board_wire_close(port);
	close_fd(port->capture_fd);
	close_fd(port->nowhere_fd);
	close_fd(port->kick_fd);
	close_fd(port->doorbell_fd);
	if (port->doorbell)
		munmap(port->doorbell, CORDON_BAR_DOORBELL_SIZE);
}

/**
 * board_port_destroy_all - close everything, unlink all sockets
 * @board: board whose firmware has ended
 *
 * Context: after the loop.
 */
void board_port_destroy_all(struct board *board)
{
	unsigned int i;

	for (i = 0; i < board->port_count; i++)
		if (board->ports[i].firmware)
			destroy_port(&board->ports[i]);
	free(board->ports);
	free(board->firmwares);
}

/* Return: 0 if @path may be replaced: it doesn't exist, or is a socket that nobody listens at. */
static int check_path(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, ret;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	ret = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && errno == ECONNREFUSED
		      ? 0
		      : -EADDRINUSE;
	close(fd);
	return ret;
}

/**
 * board_port_listen - make the socket and wait for the client
 * @port: port whose firmware runs
 *
 * The socket gets its name only when it listens: who sees it can connect.
 *
 * Context: loop.
 * Return: 0 or -errno.
 */
int board_port_listen(struct board_port *port)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = port->options->socket;
	int fd, ret;

	ret = check_path(path);
	if (ret)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s~", path);
	unlink(addr.sun_path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 8) ||
	    rename(addr.sun_path, path)) {
		ret = -errno;
		unlink(addr.sun_path);
		close(fd);
		return ret;
	}
	port->listen_fd = fd;
	return board_client_wait(port);
}

/**
 * board_port_power_on - configuration space and MSI-X table as after power-on
 * @port: port
 *
 * Context: loop.
 */
void board_port_power_on(struct board_port *port)
{
	uint32_t i;

	board_config_init(port);
	memset(port->msix, 0, sizeof(port->msix));
	/* PCI Express 7.7.2.4: the mask bit of each vector is set. */
	for (i = 0; i < port->vectors; i++)
		port->msix[CORDON_MSIX_TABLE_OFFSET + 16 * i + 12] = 1;
}
