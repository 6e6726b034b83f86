/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the guest. Only mem.c dereferences it (and path/state.h the SA state blocks, by
 * pointers from here).
 */
#ifndef CORE_MEM_H
#define CORE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fw_mem_map;

/**
 * struct fw_mem - DMA maps of a function, sorted by address
 * @maps: table
 * @count: maps in it
 * @room: maps that fit into it
 * @hit: map that was used last
 * @gen: counted up by each change: translations that were kept are made anew when they are used
 *	next. It never comes round: a guest may change its maps as often as it likes
 */
struct fw_mem {
	struct fw_mem_map *maps;
	uint32_t count;
	uint32_t room;
	uint32_t hit;
	uint64_t gen;
};

/**
 * struct fw_mem_ring - a ring in the memory of the guest
 * @mem: maps
 * @addr: bus address, 64-byte aligned
 * @pages: translation of each 4 KiB page, NULL where there is none. Entries divide 64, so none
 *	crosses a page
 * @gen: of @mem when @pages was made
 * @page_count: number of pages
 * @log2: log2 of the entries
 * @entry_size: bytes of an entry
 * @writable: the card writes it
 */
struct fw_mem_ring {
	struct fw_mem *mem;
	uint64_t addr;
	uint8_t **pages;
	uint64_t gen;
	uint32_t page_count;
	uint8_t log2;
	uint8_t entry_size;
	bool writable;
};

int fw_mem_map(struct fw_mem *mem, int fd, uint64_t addr, uint64_t size, uint64_t offset,
	       bool writable);
int fw_mem_unmap(struct fw_mem *mem, uint64_t addr, uint64_t size);
void fw_mem_clear(struct fw_mem *mem);

int fw_mem_read(struct fw_mem *mem, uint64_t addr, void *dst, size_t len);
int fw_mem_write(struct fw_mem *mem, uint64_t addr, const void *src, size_t len);
void *fw_mem_resolve(struct fw_mem *mem, uint64_t addr, size_t len);

int fw_mem_ring_init(struct fw_mem_ring *ring, struct fw_mem *mem, uint64_t addr, uint8_t log2,
		     uint8_t entry_size, bool writable);
void fw_mem_ring_exit(struct fw_mem_ring *ring);
int fw_mem_ring_read(struct fw_mem_ring *ring, uint32_t index, void *dst);
int fw_mem_ring_write(struct fw_mem_ring *ring, uint32_t index, const void *src);

/** fw_mem_ring_entries() - Return: entries of a ring */
static inline uint32_t fw_mem_ring_entries(const struct fw_mem_ring *ring)
{
	return 1u << ring->log2;
}

#endif
