// SPDX-License-Identifier: BSD-3-Clause
/*
 * The SAs of a function.
 *
 * A handle is an index and a count; the count must match too, so that a descriptor that is still
 * under way never meets another SA. IN SAs are also in a hash table by (destination, SPI). The hash
 * is seeded, though a tenant could only slow down its own process by chosen SPIs. One worker owns
 * both tables; several would read them under RCU, for which urcu's lists have the same operations.
 */
#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <urcu/compiler.h>

#include "core/event.h"
#include "core/port.h"
#include "core/sad.h"
#include "path/cfg.h"

#define STATE_MAX 65536u

/**
 * struct fw_sad_entry - an SA in the tables
 * @sa: the SA
 * @node: in the bucket, IN only
 * @port: function
 * @state_addr: bus address of the state block
 * @gen: generation of the DMA maps that @sa.state was resolved with
 * @state_len: bytes of the state block
 */
struct fw_sad_entry {
	struct fw_sa sa;
	struct cds_hlist_node node;
	struct fw_port *port;
	uint64_t state_addr;
	uint64_t gen;
	uint32_t state_len;
};

static uint64_t hash(const struct fw_sad *sad, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t h;

	/* Multiply and fold; the constants are odd numbers without structure. */
	h = (a ^ sad->seed) * 0x9e3779b97f4a7c15ull;
	h = (h ^ (h >> 32) ^ b) * 0xd6e8feb86659fd93ull;
	h = (h ^ (h >> 32) ^ c) * 0xa0761d6478bd642full;
	return h ^ (h >> 29);
}

static struct cds_hlist_head *bucket(const struct fw_sad *sad, const uint8_t *daddr, uint32_t spi)
{
	uint64_t a, b;

	memcpy(&a, daddr, 8);
	memcpy(&b, daddr + 8, 8);
	return &sad->buckets[hash(sad, a, b, spi) & sad->mask];
}

static uint16_t *ip_id(struct fw_sad *sad, const struct cordon_sa_cfg *cfg)
{
	uint32_t saddr, daddr;

	memcpy(&saddr, cfg->saddr, sizeof(saddr));
	memcpy(&daddr, cfg->daddr, sizeof(daddr));
	return &sad->ip_ids[hash(sad, saddr, daddr, 0) % FW_SAD_IP_IDS];
}

/**
 * fw_sad_init() - an empty table
 * @sad: table
 * @max: greatest number of SAs
 *
 * Return: 0 or -ENOMEM.
 */
int fw_sad_init(struct fw_sad *sad, uint32_t max)
{
	uint32_t buckets = 64;

	while (buckets < max)
		buckets *= 2;
	memset(sad, 0, sizeof(*sad));
	sad->table = calloc(max ? max : 1, sizeof(struct fw_sad_entry *));
	sad->buckets = calloc(buckets, sizeof(*sad->buckets));
	if (!sad->table || !sad->buckets ||
	    getrandom(&sad->seed, sizeof(sad->seed), 0) != sizeof(sad->seed) ||
	    getrandom(sad->ip_ids, sizeof(sad->ip_ids), 0) != sizeof(sad->ip_ids)) {
		free(sad->table);
		free(sad->buckets);
		memset(sad, 0, sizeof(*sad));
		return -ENOMEM;
	}
	sad->peers.seed = sad->seed;
	sad->max = max;
	sad->mask = buckets - 1;
	return 0;
}

/**
 * fw_sad_exit() - wipe all SAs and free the table
 * @sad: table, zeroed is fine
 */
void fw_sad_exit(struct fw_sad *sad)
{
	fw_sad_flush(sad);
	free(sad->table);
	free(sad->buckets);
	memset(sad, 0, sizeof(*sad));
}

static struct fw_sad_entry *entry_get(const struct fw_sad *sad, uint32_t handle)
{
	uint32_t index = handle & CORDON_HANDLE_INDEX;
	struct fw_sad_entry *e;

	if (index >= sad->max)
		return NULL;
	e = sad->table[index];
	return e && le32toh(e->sa.cfg.handle) == handle ? e : NULL;
}

static struct fw_sa *entry_sa(struct fw_sad_entry *e)
{
	struct fw_mem *mem = &e->port->mem;

	if (caa_unlikely(e->gen != mem->gen)) {
		e->sa.state = fw_mem_resolve(mem, e->state_addr, e->state_len);
		e->gen = mem->gen;
	}
	return &e->sa;
}

static void entry_event(struct fw_sa *sa, uint16_t type, uint64_t value)
{
	struct fw_sad_entry *e = sa->owner;

	fw_event_post(e->port, type, le32toh(sa->cfg.handle), value);
}

static uint16_t handle_check(const struct fw_sad *sad, uint32_t handle,
			     struct cordon_cmd_completion *done)
{
	uint32_t index = handle & CORDON_HANDLE_INDEX;

	if (index >= sad->max)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_HANDLE, 0,
				     sad->max - 1u);
	if (sad->table[index])
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_EXISTS, CORDON_PARAM_HANDLE, 0,
				     sad->max - 1u);
	return CORDON_CMD_STATUS_OK;
}

/*
 * fw_sa_check() has judged length and alignment. The block must lie in one map; the driver takes it
 * from one page.
 */
static uint16_t state_check(struct fw_port *port, const struct cordon_sa_cfg *cfg,
			    struct cordon_cmd_completion *done)
{
	uint32_t len = le32toh(cfg->state_len);
	uint64_t addr = le64toh(cfg->state_addr);
	const void *state;

	if (len > STATE_MAX)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_STATE, 0,
				     STATE_MAX);
	state = fw_mem_resolve(&port->mem, addr, len);
	if (!state || (uintptr_t)state & 7)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_DMA, CORDON_PARAM_STATE, 0, 0);
	return CORDON_CMD_STATUS_OK;
}

static uint16_t cfg_check(struct fw_port *port, const struct cordon_sa_cfg *cfg,
			  struct cordon_cmd_completion *done)
{
	static const uint8_t none[12];
	uint16_t status;

	if (!port->ipsec_cap.cap.type)
		return CORDON_CMD_STATUS_UNSUPPORTED;
	status = handle_check(&port->sad, le32toh(cfg->handle), done);
	if (status)
		return status;
	status = fw_sa_check(cfg, &port->ipsec_cap, done);
	if (status)
		return status;
	/* Compared as a whole when an IN SA is looked up. */
	if (cfg->family == CORDON_FAMILY_INET && memcmp(cfg->daddr + 4, none, sizeof(none)) != 0)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_FAMILY, 0, 0);
	return state_check(port, cfg, done);
}

/**
 * fw_sad_add() - CORDON_CMD_SA_ADD
 * @port: function
 * @cfg: configuration, a private copy that the caller wipes
 * @done: says what was refused
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_sad_add(struct fw_port *port, const struct cordon_sa_cfg *cfg,
		    struct cordon_cmd_completion *done)
{
	uint16_t status = cfg_check(port, cfg, done);
	struct fw_sad *sad = &port->sad;
	struct fw_sad_entry *e;
	int ret;

	if (status)
		return status;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CORDON_CMD_STATUS_NO_MEMORY;
	ret = fw_sa_init(&e->sa, cfg);
	if (ret) {
		free(e);
		return ret == -ENOMEM ? CORDON_CMD_STATUS_NO_MEMORY : CORDON_CMD_STATUS_FAULT;
	}
	if (fw_peer_add(&sad->peers, cfg)) {
		fw_sa_exit(&e->sa);
		free(e);
		return CORDON_CMD_STATUS_NO_MEMORY;
	}
	e->port = port;
	e->state_addr = le64toh(cfg->state_addr);
	e->state_len = le32toh(cfg->state_len);
	e->gen = port->mem.gen - 1;
	e->sa.event = entry_event;
	e->sa.owner = e;
	e->sa.ip_id = ip_id(sad, cfg);
	sad->table[le32toh(cfg->handle) & CORDON_HANDLE_INDEX] = e;
	if (cfg->direction == CORDON_DIRECTION_IN)
		cds_hlist_add_head(&e->node, bucket(sad, cfg->daddr, cfg->spi));
	sad->count++;
	return CORDON_CMD_STATUS_OK;
}

static void entry_del(struct fw_sad *sad, struct fw_sad_entry *e)
{
	/* What is held for the SA is counted for it once more. */
	fw_reassembly_forget(e->port->reassembly, le32toh(e->sa.cfg.handle));
	fw_peer_del(&sad->peers, &e->sa.cfg);
	sad->table[le32toh(e->sa.cfg.handle) & CORDON_HANDLE_INDEX] = NULL;
	if (e->sa.cfg.direction == CORDON_DIRECTION_IN)
		cds_hlist_del(&e->node);
	sad->count--;
	fw_sa_exit(&e->sa);
	OPENSSL_cleanse(e, sizeof(*e));
	free(e);
}

/**
 * fw_sad_del() - CORDON_CMD_SA_DEL
 * @port: function
 * @handle: SA
 *
 * Frames that were encrypted already don't need the SA; what is still to be segmented looks it up
 * anew. So nothing uses it when this returns.
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_sad_del(struct fw_port *port, uint32_t handle)
{
	struct fw_sad_entry *e = entry_get(&port->sad, handle);

	if (!e)
		return CORDON_CMD_STATUS_NOT_FOUND;
	entry_del(&port->sad, e);
	return CORDON_CMD_STATUS_OK;
}

/**
 * fw_sad_flush() - wipe all SAs
 * @sad: table
 */
void fw_sad_flush(struct fw_sad *sad)
{
	for (uint32_t i = 0; i < sad->max && sad->count; i++) {
		if (sad->table[i])
			entry_del(sad, sad->table[i]);
	}
}

/**
 * fw_sad_update() - CORDON_CMD_SA_UPDATE
 * @port: function
 * @cfg: new next hop, a private copy
 * @done: says what was refused
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_sad_update(struct fw_port *port, const struct cordon_sa_update *cfg,
		       struct cordon_cmd_completion *done)
{
	const struct cordon_next_hop *hop = &cfg->next_hop;
	struct fw_sad_entry *e;

	if (cfg->reserved)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	if (!fw_next_hop_check(hop))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_NONE, 0, 0);
	e = entry_get(&port->sad, le32toh(cfg->handle));
	if (!e)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_NOT_FOUND, CORDON_PARAM_HANDLE, 0, 0);
	if (e->sa.cfg.direction != CORDON_DIRECTION_OUT || !fw_sa_writes_l2(&e->sa))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_MODE, 0, 0);
	e->sa.next_hop = *hop;
	e->sa.neighbour_asked = false;
	return CORDON_CMD_STATUS_OK;
}

/**
 * fw_sad_get() - SA of a handle
 * @port: function
 * @handle: SA
 *
 * Return: SA with its state block resolved, or NULL.
 */
struct fw_sa *fw_sad_get(struct fw_port *port, uint32_t handle)
{
	struct fw_sad_entry *e = entry_get(&port->sad, handle);

	return e ? entry_sa(e) : NULL;
}

/**
 * fw_sad_find() - IN SA of an ESP packet
 * @port: function
 * @family: of @daddr
 * @daddr: destination, 16 bytes, zero behind an IPv4 address
 * @spi: SPI, network order
 *
 * Return: the SA that was added last with this destination and SPI, or NULL.
 */
struct fw_sa *fw_sad_find(struct fw_port *port, uint8_t family, const uint8_t *daddr, uint32_t spi)
{
	struct fw_sad_entry *e;

	cds_hlist_for_each_entry_2(e, bucket(&port->sad, daddr, spi), node) {
		const struct cordon_sa_cfg *cfg = &e->sa.cfg;

		if (cfg->spi == spi && cfg->family == family && !memcmp(cfg->daddr, daddr, 16))
			return entry_sa(e);
	}
	return NULL;
}
