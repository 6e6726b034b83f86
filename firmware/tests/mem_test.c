// SPDX-License-Identifier: BSD-3-Clause
/*
 * Guest memory: the table of maps against a model, copies across maps, rings over pages that come
 * and go.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "core/mem.c"
#include "tests/test.h"

#define PAGES 32
#define BASE 0x7fff0000ull

struct guest {
	struct fw_mem mem;
	int fd;
	uint8_t *memory;
};

static int setup(void **state)
{
	struct guest *g = calloc(1, sizeof(*g));

	g->fd = memfd_create("guest", 0);
	assert_int_equal(ftruncate(g->fd, PAGES * PAGE_SIZE), 0);
	g->memory = mmap(NULL, PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
	assert_ptr_not_equal(g->memory, MAP_FAILED);
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct guest *g = *state;

	fw_mem_clear(&g->mem);
	munmap(g->memory, PAGES * PAGE_SIZE);
	close(g->fd);
	free(g);
	return 0;
}

static int map_page(struct guest *g, uint32_t page, uint32_t count)
{
	return fw_mem_map(&g->mem, g->fd, BASE + page * PAGE_SIZE, count * PAGE_SIZE,
			  page * PAGE_SIZE, true);
}

static void test_map_refused(void **state)
{
	struct guest *g = *state;
	static const struct {
		const char *desc;
		uint64_t addr, size;
		int ret;
	} rows[] = {
		{ "empty", BASE, 0, -EINVAL },
		{ "wraps", UINT64_MAX - 100, 200, -EINVAL },
		{ "the same", BASE + 4 * PAGE_SIZE, 4 * PAGE_SIZE, -EEXIST },
		{ "its first byte", BASE + 3 * PAGE_SIZE, PAGE_SIZE + 1, -EEXIST },
		{ "its last byte", BASE + 8 * PAGE_SIZE - 1, 1, -EEXIST },
		{ "inside", BASE + 5 * PAGE_SIZE, PAGE_SIZE, -EEXIST },
		{ "around", BASE, 16 * PAGE_SIZE, -EEXIST },
		{ "right before", BASE + 3 * PAGE_SIZE, PAGE_SIZE, 0 },
		{ "right behind", BASE + 8 * PAGE_SIZE, PAGE_SIZE, 0 },
		{ "the end of all", UINT64_MAX - PAGE_SIZE + 1, PAGE_SIZE, 0 },
	};

	assert_int_equal(map_page(g, 4, 4), 0);
	for (size_t i = 0; i < ARRAY_CNT(rows); i++)
		check_eq(rows[i].desc,
			 fw_mem_map(&g->mem, g->fd, rows[i].addr, rows[i].size, 0, true),
			 rows[i].ret);
	assert_int_equal(fw_mem_unmap(&g->mem, BASE + 4 * PAGE_SIZE, PAGE_SIZE), -ENOENT);
	assert_int_equal(fw_mem_unmap(&g->mem, BASE + 5 * PAGE_SIZE, 3 * PAGE_SIZE), -ENOENT);
	assert_int_equal(fw_mem_unmap(&g->mem, BASE + 4 * PAGE_SIZE, 4 * PAGE_SIZE), 0);
	assert_int_equal(fw_mem_unmap(&g->mem, BASE + 4 * PAGE_SIZE, 4 * PAGE_SIZE), -ENOENT);
}

/* Random maps and unmaps of single pages; every copy is compared with what the model says. */
static void test_table_against_model(void **state)
{
	struct guest *g = *state;
	bool mapped[PAGES] = { false };
	uint8_t buf[4 * PAGE_SIZE];

	for (int n = 0; n < 20000; n++) {
		uint32_t page = test_random() % PAGES;
		uint64_t addr = BASE + page * PAGE_SIZE;
		uint32_t first = test_random() % (PAGES * PAGE_SIZE);
		uint32_t len = test_random() % sizeof(buf);
		bool all = first + len <= PAGES * PAGE_SIZE;

		if (mapped[page])
			assert_int_equal(fw_mem_unmap(&g->mem, addr, PAGE_SIZE), 0);
		else
			assert_int_equal(map_page(g, page, 1), 0);
		mapped[page] = !mapped[page];
		for (uint64_t at = first; len && all && at < first + len; at++)
			all = mapped[at / PAGE_SIZE];
		memset(g->memory + first % (PAGES * PAGE_SIZE - sizeof(buf)), n & 0xff, 64);
		assert_int_equal(fw_mem_read(&g->mem, BASE + first, buf, len),
				 !len || all ? 0 : -EFAULT);
		if (len && all)
			assert_memory_equal(buf, g->memory + first, len);
	}
}

static void test_write_needs_permission(void **state)
{
	struct guest *g = *state;
	uint8_t buf[PAGE_SIZE];

	memset(buf, 7, sizeof(buf));
	assert_int_equal(map_page(g, 0, 1), 0);
	assert_int_equal(fw_mem_map(&g->mem, g->fd, BASE + PAGE_SIZE, PAGE_SIZE, PAGE_SIZE, false),
			 0);
	assert_int_equal(fw_mem_write(&g->mem, BASE, buf, sizeof(buf)), 0);
	assert_memory_equal(g->memory, buf, sizeof(buf));
	assert_int_equal(fw_mem_write(&g->mem, BASE + PAGE_SIZE, buf, 1), -EFAULT);
	assert_int_equal(fw_mem_write(&g->mem, BASE + 100, buf, sizeof(buf)), -EFAULT);
	assert_int_equal(g->memory[PAGE_SIZE], 0);
	assert_int_equal(fw_mem_read(&g->mem, BASE + 100, buf, sizeof(buf)), 0);
	assert_non_null(fw_mem_resolve(&g->mem, BASE + 64, PAGE_SIZE - 64));
	assert_null(fw_mem_resolve(&g->mem, BASE + 65, PAGE_SIZE - 64));
	assert_null(fw_mem_resolve(&g->mem, BASE + PAGE_SIZE, 1));
	assert_null(fw_mem_resolve(&g->mem, BASE - 1, 1));
}

static void test_ring(void **state)
{
	static const uint8_t sizes[] = { 16, 32, 64 };
	struct guest *g = *state;

	for (uint32_t page = 0; page < PAGES; page++)
		assert_int_equal(map_page(g, page, 1), 0);
	for (size_t i = 0; i < ARRAY_CNT(sizes); i++) {
		struct fw_mem_ring ring;
		uint64_t start = PAGE_SIZE + 64 * (test_random() % 64);

		assert_int_equal(fw_mem_ring_init(&ring, &g->mem, BASE + start, 9, sizes[i], true),
				 0);
		for (uint32_t n = 0; n < 2048; n++) {
			uint8_t entry[64], back[64];
			uint32_t valid;
			const uint8_t *at = g->memory + start + (n % 512) * sizes[i];

			memset(entry, n & 0xff, sizeof(entry));
			assert_int_equal(fw_mem_ring_write(&ring, n, entry), 0);
			assert_memory_equal(at, entry, sizes[i] - 4u);
			memcpy(&valid, at + sizes[i] - 4, 4);
			assert_int_equal(valid, n / 512 % 2 ? 0 : CORDON_COMPLETION_VALID);
			assert_int_equal(fw_mem_ring_read(&ring, n + 512, back), 0);
			assert_memory_equal(back, at, sizes[i]);
		}
		fw_mem_ring_exit(&ring);
	}
}

/*
 * Entries of a page that is gone can't be reached, the others can; what comes back is found again.
 */
static void test_ring_follows_maps(void **state)
{
	struct guest *g = *state;
	struct fw_mem_ring ring;
	uint8_t entry[64] = { 0 };

	for (uint32_t page = 0; page < 8; page++)
		assert_int_equal(map_page(g, page, 1), 0);
	assert_int_equal(fw_mem_ring_init(&ring, &g->mem, BASE + 2 * PAGE_SIZE + 1024, 8, 64, true),
			 0);
	assert_int_equal(ring.page_count, 5);
	assert_int_equal(fw_mem_unmap(&g->mem, BASE + 3 * PAGE_SIZE, PAGE_SIZE), 0);
	for (uint32_t n = 0; n < 256; n++)
		assert_int_equal(fw_mem_ring_read(&ring, n, entry),
				 (1024 + n * 64) / PAGE_SIZE == 1 ? -EFAULT : 0);
	assert_int_equal(map_page(g, 3, 1), 0);
	for (uint32_t n = 0; n < 256; n++)
		assert_int_equal(fw_mem_ring_write(&ring, n, entry), 0);
	fw_mem_clear(&g->mem);
	assert_int_equal(fw_mem_ring_read(&ring, 0, entry), -EFAULT);
	fw_mem_ring_exit(&ring);
}

/* What was kept isn't taken for new again, however often the maps change. */
static void test_generations_never_come_round(void **state)
{
	struct guest *g = *state;
	struct fw_mem_ring ring;
	uint8_t entry[64] = { 0 };

	assert_int_equal(map_page(g, 0, 1), 0);
	assert_int_equal(fw_mem_ring_init(&ring, &g->mem, BASE, 6, 64, true), 0);
	assert_int_equal(fw_mem_unmap(&g->mem, BASE, PAGE_SIZE), 0);
	g->mem.gen += UINT32_MAX;
	assert_int_equal(fw_mem_ring_read(&ring, 0, entry), -EFAULT);
	fw_mem_ring_exit(&ring);
}

static void test_ring_refused(void **state)
{
	struct guest *g = *state;
	struct fw_mem_ring ring;

	assert_int_equal(map_page(g, 0, 4), 0);
	assert_int_equal(fw_mem_ring_init(&ring, &g->mem, BASE + 32, 6, 64, false), -EINVAL);
	assert_int_equal(fw_mem_ring_init(&ring, &g->mem, UINT64_MAX - 63, 6, 64, false), -EINVAL);
	assert_int_equal(fw_mem_ring_init(&ring, &g->mem, BASE + 64, 8, 64, false), -EFAULT);
	assert_int_equal(fw_mem_ring_init(&ring, &g->mem, BASE - 64, 6, 64, false), -EFAULT);
	assert_int_equal(fw_mem_ring_init(&ring, &g->mem, BASE, 8, 64, false), 0);
	fw_mem_ring_exit(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_map_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_against_model, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_needs_permission, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ring_follows_maps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_generations_never_come_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ring_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
