// SPDX-License-Identifier: BSD-3-Clause
/*
 * Memory of the guest: the one file that touches it.
 *
 * The guest can write all of it at any time. So what is read is copied to private memory once, and
 * only the copy is looked at; what is written is never read back. A completion becomes valid by its
 * last 32-bit word, which is stored with release order behind the rest.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/mem.h"
#include "cordon/ring.h"

#define PAGE_SHIFT 12
#define PAGE_SIZE ((uint64_t)1 << PAGE_SHIFT)

/**
 * struct fw_mem_map - a map
 * @addr: bus address
 * @size: bytes, not 0; @addr + @size - 1 doesn't wrap
 * @host: where it is in this process
 * @base: what mmap() returned
 * @base_len: bytes of it
 * @writable: the card may write
 */
struct fw_mem_map {
	uint64_t addr;
	uint64_t size;
	uint8_t *host;
	void *base;
	size_t base_len;
	bool writable;
};

/* First map that ends behind the address. */
static uint32_t map_search(const struct fw_mem *mem, uint64_t addr)
{
	uint32_t low = 0, high = mem->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct fw_mem_map *m = &mem->maps[mid];

		if (addr >= m->addr && addr - m->addr >= m->size)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool map_has(const struct fw_mem_map *m, uint64_t addr)
{
	return addr >= m->addr && addr - m->addr < m->size;
}

/* The map that holds the address, or NULL. */
static const struct fw_mem_map *map_find(struct fw_mem *mem, uint64_t addr)
{
	uint32_t i = mem->hit;

	if (i < mem->count && map_has(&mem->maps[i], addr))
		return &mem->maps[i];
	i = map_search(mem, addr);
	if (i == mem->count || !map_has(&mem->maps[i], addr))
		return NULL;
	mem->hit = i;
	return &mem->maps[i];
}

static int table_grow(struct fw_mem *mem)
{
	uint32_t room = mem->room ? 2 * mem->room : 16;
	struct fw_mem_map *maps;

	if (mem->count < mem->room)
		return 0;
	maps = reallocarray(mem->maps, room, sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	mem->maps = maps;
	mem->room = room;
	return 0;
}

static int map_open(struct fw_mem_map *m, int fd, uint64_t offset)
{
	uint64_t skew = offset & (PAGE_SIZE - 1);
	int prot = PROT_READ | (m->writable ? PROT_WRITE : 0);

	if (offset > INT64_MAX || m->size > SIZE_MAX - skew)
		return -EINVAL;
	m->base_len = (size_t)(m->size + skew);
	m->base = mmap(NULL, m->base_len, prot, MAP_SHARED | MAP_NORESERVE, fd,
		       (off_t)(offset - skew));
	if (m->base == MAP_FAILED)
		return -errno;
	m->host = (uint8_t *)m->base + skew;
	return 0;
}

/**
 * fw_mem_map() - add a map
 * @mem: maps
 * @fd: memory, stays the caller's
 * @addr: bus address
 * @size: bytes
 * @offset: where in @fd
 * @writable: the card may write
 *
 * Return: 0, -EINVAL, -EEXIST if it overlaps another, -ENOMEM or what mmap() says.
 */
int fw_mem_map(struct fw_mem *mem, int fd, uint64_t addr, uint64_t size, uint64_t offset,
	       bool writable)
{
	struct fw_mem_map map = { .addr = addr, .size = size, .writable = writable };
	uint32_t i;
	int ret;

	if (!size || size - 1 > UINT64_MAX - addr)
		return -EINVAL;
	i = map_search(mem, addr);
	if (i < mem->count && (addr >= mem->maps[i].addr || size > mem->maps[i].addr - addr))
		return -EEXIST;
	ret = table_grow(mem);
	if (ret)
		return ret;
	ret = map_open(&map, fd, offset);
	if (ret)
		return ret;
	memmove(&mem->maps[i + 1], &mem->maps[i], (mem->count - i) * sizeof(map));
	mem->maps[i] = map;
	mem->count++;
	mem->gen++;
	return 0;
}

/**
 * fw_mem_unmap() - take a map away
 * @mem: maps
 * @addr: bus address of one map
 * @size: its size
 *
 * When it returns, nothing in this process reaches the range: what was kept of it is found stale by
 * its generation.
 *
 * Return: 0, or -ENOENT.
 */
int fw_mem_unmap(struct fw_mem *mem, uint64_t addr, uint64_t size)
{
	uint32_t i = map_search(mem, addr);
	struct fw_mem_map *m;

	if (i == mem->count)
		return -ENOENT;
	m = &mem->maps[i];
	if (m->addr != addr || m->size != size)
		return -ENOENT;
	munmap(m->base, m->base_len);
	mem->count--;
	memmove(m, m + 1, (mem->count - i) * sizeof(*m));
	mem->gen++;
	return 0;
}

/**
 * fw_mem_clear() - take all maps away
 * @mem: maps
 */
void fw_mem_clear(struct fw_mem *mem)
{
	for (uint32_t i = 0; i < mem->count; i++)
		munmap(mem->maps[i].base, mem->maps[i].base_len);
	free(mem->maps);
	mem->maps = NULL;
	mem->count = 0;
	mem->room = 0;
	mem->gen++;
}

/* As much of a range as one map holds. */
static uint8_t *map_part(struct fw_mem *mem, uint64_t addr, size_t len, bool writing, size_t *part)
{
	const struct fw_mem_map *m = map_find(mem, addr);
	uint64_t left;

	if (!m || (writing && !m->writable))
		return NULL;
	left = m->size - (addr - m->addr);
	*part = len <= left ? len : (size_t)left;
	return m->host + (addr - m->addr);
}

/**
 * fw_mem_read() - copy from the guest, each byte once
 * @mem: maps
 * @addr: bus address; the range may lie in several maps
 * @dst: private memory
 * @len: bytes
 *
 * Return: 0, or -EFAULT; then @dst holds anything.
 */
int fw_mem_read(struct fw_mem *mem, uint64_t addr, void *dst, size_t len)
{
	uint8_t *to = dst;
	size_t part;

	while (len) {
		const uint8_t *src = map_part(mem, addr, len, false, &part);

		if (!src)
			return -EFAULT;
		memcpy(to, src, part);
		to += part;
		addr += part;
		len -= part;
	}
	return 0;
}

/**
 * fw_mem_write() - copy to the guest
 * @mem: maps
 * @addr: bus address; the range may lie in several maps
 * @src: private memory
 * @len: bytes
 *
 * Return: 0, or -EFAULT; then a part may have been written.
 */
int fw_mem_write(struct fw_mem *mem, uint64_t addr, const void *src, size_t len)
{
	const uint8_t *from = src;
	size_t part;

	while (len) {
		uint8_t *dst = map_part(mem, addr, len, true, &part);

		if (!dst)
			return -EFAULT;
		memcpy(dst, from, part);
		from += part;
		addr += part;
		len -= part;
	}
	return 0;
}

/**
 * fw_mem_resolve() - pointer to writable memory of the guest
 * @mem: maps
 * @addr: bus address
 * @len: bytes, all in one map
 *
 * Return: pointer that is good until fw_mem.gen changes, or NULL.
 */
void *fw_mem_resolve(struct fw_mem *mem, uint64_t addr, size_t len)
{
	size_t part;
	uint8_t *host = map_part(mem, addr, len, true, &part);

	return host && part == len ? host : NULL;
}

static int ring_resolve(struct fw_mem_ring *ring)
{
	uint64_t page = ring->addr & ~(PAGE_SIZE - 1);
	uint64_t first = ring->addr - page;
	uint64_t left = (uint64_t)ring->entry_size << ring->log2;
	int ret = 0;

	for (uint32_t i = 0; i < ring->page_count; i++) {
		uint64_t size = PAGE_SIZE - first < left ? PAGE_SIZE - first : left;
		size_t part;
		uint8_t *host;

		host = map_part(ring->mem, page + first, (size_t)size, ring->writable, &part);
		if (host && part == size) {
			ring->pages[i] = host - first;
		} else {
			ring->pages[i] = NULL;
			ret = -EFAULT;
		}
		left -= size;
		first = 0;
		page += PAGE_SIZE;
	}
	ring->gen = ring->mem->gen;
	return ret;
}

/**
 * fw_mem_ring_init() - take a ring into use
 * @ring: ring
 * @mem: maps
 * @addr: bus address, 64-byte aligned
 * @log2: log2 of its entries
 * @entry_size: bytes of an entry: 16, 32 or 64
 * @writable: the card writes it
 *
 * Return: 0, -EINVAL, -EFAULT if a part of it can't be reached, -ENOMEM.
 */
int fw_mem_ring_init(struct fw_mem_ring *ring, struct fw_mem *mem, uint64_t addr, uint8_t log2,
		     uint8_t entry_size, bool writable)
{
	uint64_t size = (uint64_t)entry_size << log2;
	int ret;

	*ring = (struct fw_mem_ring){ .mem = mem, .addr = addr, .log2 = log2,
				      .entry_size = entry_size, .writable = writable };
	if (addr & 63 || size - 1 > UINT64_MAX - addr)
		return -EINVAL;
	ring->page_count = (uint32_t)(((addr & (PAGE_SIZE - 1)) + size + PAGE_SIZE - 1) >>
				      PAGE_SHIFT);
	ring->pages = calloc(ring->page_count, sizeof(*ring->pages));
	if (!ring->pages)
		return -ENOMEM;
	ret = ring_resolve(ring);
	if (ret)
		fw_mem_ring_exit(ring);
	return ret;
}

/**
 * fw_mem_ring_exit() - forget a ring
 * @ring: ring, zeroed is fine
 */
void fw_mem_ring_exit(struct fw_mem_ring *ring)
{
	free(ring->pages);
	ring->pages = NULL;
	ring->page_count = 0;
}

static uint8_t *ring_entry(struct fw_mem_ring *ring, uint32_t index)
{
	uint64_t at;
	uint8_t *page;

	/*
	 * Only the entry's own page counts: another one may be unmapped while the driver tears
	 * down.
	 */
	if (ring->gen != ring->mem->gen)
		ring_resolve(ring);
	at = (ring->addr & (PAGE_SIZE - 1)) +
	     (uint64_t)(index & (fw_mem_ring_entries(ring) - 1)) * ring->entry_size;
	page = ring->pages[at >> PAGE_SHIFT];
	return page ? page + (at & (PAGE_SIZE - 1)) : NULL;
}

/**
 * fw_mem_ring_read() - copy an entry from the guest
 * @ring: ring
 * @index: index, free running
 * @dst: private memory
 *
 * Return: 0, or -EFAULT.
 */
int fw_mem_ring_read(struct fw_mem_ring *ring, uint32_t index, void *dst)
{
	const uint8_t *src = ring_entry(ring, index);

	if (!src)
		return -EFAULT;
	memcpy(dst, src, ring->entry_size);
	return 0;
}

/**
 * fw_mem_ring_write() - write a completion or event
 * @ring: ring
 * @index: index, free running
 * @src: the entry; its last word is made here
 *
 * Return: 0, or -EFAULT.
 */
int fw_mem_ring_write(struct fw_mem_ring *ring, uint32_t index, const void *src)
{
	uint8_t *dst = ring_entry(ring, index);
	uint32_t valid = (index >> ring->log2) & 1 ? 0 : CORDON_COMPLETION_VALID;
	size_t head = ring->entry_size - sizeof(valid);

	if (!dst)
		return -EFAULT;
	memcpy(dst, src, head);
	/* Pairs with the driver's read barrier between the word and the rest. */
	__atomic_store_n((uint32_t *)(void *)(dst + head), htole32(valid), __ATOMIC_RELEASE);
	return 0;
}
