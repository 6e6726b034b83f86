// SPDX-License-Identifier: BSD-3-Clause
/*
 * The table of DMA maps: a sorted array without overlaps. Most maps of a virtual machine are parts
 * of one file, so files are kept once, whatever the number of maps (with a virtual IOMMU there is
 * one for each page).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board/board.h"

/* Return: index of the first map whose last byte is at @addr or above. */
static size_t find(const struct board_dma *dma, uint64_t addr)
{
	size_t from = 0, to = dma->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct board_map *map = &dma->maps[middle];

		if (map->addr + (map->size - 1) < addr)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static int check_range(uint64_t addr, uint64_t size)
{
	if (!size || (addr | size) % VFIO_USER_PAGE_SIZE)
		return -EINVAL;
	return size - 1 <= UINT64_MAX - addr ? 0 : -EINVAL;
}

/**
 * board_dma_get_file - take a reference
 * @file: file
 *
 * Context: loop.
 */
void board_dma_get_file(struct board_file *file)
{
	file->maps++;
}

/**
 * board_dma_put_file - give a reference back; the last one closes the file
 * @file: file or NULL
 *
 * Context: loop.
 */
void board_dma_put_file(struct board_file *file)
{
	if (!file || --file->maps)
		return;
	LIST_REMOVE(file, next);
	close(file->fd);
	free(file);
}

/*
 * A file that ends before the map would kill the firmware at its first access; a socket or eventfd
 * can't be mapped at all.
 */
static int check_file(int fd, const struct vfio_user_dma_map *map, struct stat *st)
{
	bool writable = map->flags & VFIO_DMA_MAP_FLAG_WRITE;
	uint64_t length;
	void *page;

	if (fstat(fd, st))
		return -EINVAL;
	length = (uint64_t)st->st_size;
	if (S_ISREG(st->st_mode) && (map->offset > length || map->size > length - map->offset))
		return -EINVAL;
	page = mmap(NULL, VFIO_USER_PAGE_SIZE, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED,
		    fd, (off_t)map->offset);
	if (page == MAP_FAILED)
		return S_ISREG(st->st_mode) && errno == EACCES ? -EACCES : -EINVAL;
	munmap(page, VFIO_USER_PAGE_SIZE);
	return 0;
}

static int get_file(struct board_dma *dma, int *fd, const struct stat *st,
		    struct board_file **found)
{
	bool writable = (fcntl(*fd, F_GETFL) & O_ACCMODE) == O_RDWR;
	struct board_file *file;
	unsigned int count = 0;

	LIST_FOREACH(file, &dma->files, next) {
		if (file->device == st->st_dev && file->inode == st->st_ino &&
		    file->writable == writable) {
			board_dma_get_file(file);
			*found = file;
			return 0;
		}
		count++;
	}
	if (count >= BOARD_FILES_MAX)
		return -ENOSPC;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->fd = *fd;
	file->writable = writable;
	file->device = st->st_dev;
	file->inode = st->st_ino;
	file->maps = 1;
	*fd = -1;
	LIST_INSERT_HEAD(&dma->files, file, next);
	*found = file;
	return 0;
}

/* Each map takes one of the mappings that the kernel lets a process have. */
static bool has_room(const struct board_firmware *firmware)
{
	size_t count = 0;
	unsigned int i;

	for (i = 0; i < firmware->port_count; i++)
		count += firmware->ports[i]->dma.count;
	return count < BOARD_MAPS_MAX;
}

static int reserve(struct board_dma *dma)
{
	size_t room = dma->room ? 2 * dma->room : 64;
	struct board_map *maps;

	if (dma->count < dma->room)
		return 0;
	maps = realloc(dma->maps, room * sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	dma->maps = maps;
	dma->room = room;
	return 0;
}

/* Return: request that the firmware has to acknowledge before it knows the map, 0 = none. */
static uint64_t tell_map(struct board_port *port, const struct board_map *map)
{
	struct fw_ipc_msg msg = { .type = FW_IPC_DMA_MAP };

	if (!map->file)
		return 0;
	msg.dma.addr = map->addr;
	msg.dma.size = map->size;
	msg.dma.offset = map->offset;
	msg.dma.writable = map->writable;
	return board_firmware_tell_map(port, &msg, map->file);
}

/**
 * board_dma_map - add a map
 * @port: port
 * @map: from the client, not yet checked
 * @fd: its file descriptor or -1; -1 afterwards if it was taken
 *
 * The client has to wait (client.wait_seq) until the firmware has the map: behind a virtual IOMMU
 * the guest uses the memory as soon as this is answered.
 *
 * Context: loop.
 * Return: 0 or -errno.
 */
int board_dma_map(struct board_port *port, const struct vfio_user_dma_map *map, int *fd)
{
	struct board_dma *dma = &port->dma;
	struct board_map new = { .addr = map->addr, .size = map->size, .offset = map->offset };
	struct stat st;
	size_t at;
	int ret;

	if (map->argsz < sizeof(*map) ||
	    map->flags & ~(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE) ||
	    !(map->flags & VFIO_DMA_MAP_FLAG_READ) || check_range(map->addr, map->size))
		return -EINVAL;
	new.writable = map->flags & VFIO_DMA_MAP_FLAG_WRITE;
	at = find(dma, new.addr);
	if (at < dma->count && dma->maps[at].addr <= new.addr + (new.size - 1))
		return -EEXIST;
	ret = has_room(port->firmware) ? reserve(dma) : -ENOSPC;
	if (ret)
		return ret;
	if (*fd >= 0) {
		if (map->offset % VFIO_USER_PAGE_SIZE || check_range(map->offset, map->size))
			return -EINVAL;
		ret = check_file(*fd, map, &st);
		if (ret)
			return ret;
		ret = get_file(dma, fd, &st, &new.file);
		if (ret)
			return ret;
	}
	memmove(&dma->maps[at + 1], &dma->maps[at], (dma->count - at) * sizeof(new));
	dma->maps[at] = new;
	dma->count++;
	port->client.wait_seq = tell_map(port, &new);
	return 0;
}

static void remove_maps(struct board_dma *dma, size_t at, size_t count)
{
	size_t i;

	for (i = at; i < at + count; i++)
		board_dma_put_file(dma->maps[i].file);
	memmove(&dma->maps[at], &dma->maps[at + count],
		(dma->count - at - count) * sizeof(*dma->maps));
	dma->count -= count;
}

/**
 * board_dma_refuse - the firmware can't map what it was told
 * @port: port whose client waits for it
 * @addr: bus address of the map
 *
 * Context: loop.
 */
void board_dma_refuse(struct board_port *port, uint64_t addr)
{
	size_t at = find(&port->dma, addr);

	if (at < port->dma.count && port->dma.maps[at].addr == addr)
		remove_maps(&port->dma, at, 1);
}

/* Whole maps only: one that would be cut in two is an error. */
static int count_inside(const struct board_dma *dma, size_t at, uint64_t addr, uint64_t last,
			size_t *count)
{
	*count = 0;
	for (; at < dma->count && dma->maps[at].addr <= last; at++) {
		const struct board_map *map = &dma->maps[at];

		if (map->addr < addr || map->addr + (map->size - 1) > last)
			return -EINVAL;
		++*count;
	}
	return *count ? 0 : -ENOENT;
}

/*
 * Requests are answered in order: the last one's end is the end of all. So only that one is timed,
 * and each answer before it gives it a new second.
 */
static uint64_t ask_unmap(struct board_port *port, size_t at, size_t count)
{
	uint64_t seq = 0;
	size_t i;

	while (count && !port->dma.maps[at + count - 1].file)
		count--;
	for (i = at; i < at + count; i++) {
		const struct board_map *map = &port->dma.maps[i];
		struct fw_ipc_msg msg = { .type = FW_IPC_DMA_UNMAP };

		if (!map->file)
			continue;
		msg.dma.addr = map->addr;
		msg.dma.size = map->size;
		seq = board_firmware_ask(port, &msg, i + 1 < at + count ? 0 : BOARD_REQUEST_MS);
	}
	return seq;
}

static int unmap_all(struct board_port *port, const struct vfio_user_dma_unmap *unmap)
{
	struct fw_ipc_msg msg = { .type = FW_IPC_DMA_CLEAR };

	if (unmap->addr || unmap->size)
		return -EINVAL;
	board_dma_clear(port);
	port->client.wait_seq = board_firmware_ask(port, &msg, BOARD_REQUEST_MS);
	return 0;
}

/**
 * board_dma_unmap - remove a map
 * @port: port
 * @unmap: from the client, not yet checked
 *
 * A range may cover several maps, as a virtual IOMMU gives several back at once, but none in part.
 * The client has to wait (client.wait_seq) until the firmware has let go of the memory.
 *
 * Context: loop.
 * Return: 0 or -errno.
 */
int board_dma_unmap(struct board_port *port, const struct vfio_user_dma_unmap *unmap)
{
	struct board_dma *dma = &port->dma;
	size_t at, count;
	int ret;

	if (unmap->argsz < sizeof(*unmap) || unmap->flags & ~VFIO_DMA_UNMAP_FLAG_ALL)
		return -EINVAL;
	if (unmap->flags & VFIO_DMA_UNMAP_FLAG_ALL)
		return unmap_all(port, unmap);
	if (check_range(unmap->addr, unmap->size))
		return -EINVAL;
	at = find(dma, unmap->addr);
	ret = count_inside(dma, at, unmap->addr, unmap->addr + (unmap->size - 1), &count);
	if (ret)
		return ret;
	port->client.wait_seq = ask_unmap(port, at, count);
	remove_maps(dma, at, count);
	return 0;
}

/**
 * board_dma_clear - forget all maps; the firmware isn't told
 * @port: port
 *
 * Context: loop.
 */
void board_dma_clear(struct board_port *port)
{
	struct board_dma *dma = &port->dma;

	while (dma->count)
		board_dma_put_file(dma->maps[--dma->count].file);
	free(dma->maps);
	dma->maps = NULL;
	dma->room = 0;
}

/**
 * board_dma_replay - tell a new firmware all maps
 * @port: port
 *
 * Context: loop.
 */
void board_dma_replay(struct board_port *port)
{
	size_t i;

	for (i = 0; i < port->dma.count; i++)
		tell_map(port, &port->dma.maps[i]);
}
