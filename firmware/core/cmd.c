// SPDX-License-Identifier: BSD-3-Clause
/*
 * The command queue. Commands run to their end one after the other, in the order of the ring.
 *
 * The input is copied once into private memory; a handler sees nothing else. It may hold keys, so
 * it is wiped behind each command that can carry some, whatever became of it.
 */
#include <endian.h>
#include <openssl/crypto.h>
#include <string.h>

#include "core/caps.h"
#include "core/cmd.h"
#include "core/port.h"
#include "core/queue.h"
#include "core/worker.h"
#include "crypto/crypto.h"
#include "path/cfg.h"

/* Commands for each look at the ring, so that a storm of them doesn't stop the packets. */
#define BUDGET 16

/**
 * struct cmd_ctx - a command that runs
 * @port: function
 * @cmd: the ring's entry, a copy
 * @arg: arguments in host order
 * @in: input, a copy
 * @in_len: bytes of it
 * @done: completion
 */
struct cmd_ctx {
	struct fw_port *port;
	struct cordon_cmd cmd;
	uint64_t arg[4];
	const void *in;
	uint32_t in_len;
	struct cordon_cmd_completion *done;
};

/**
 * struct cmd_type - a kind of command
 * @opcode: enum cordon_opcode
 * @in_min: bytes of the input
 * @in_max: most bytes of it, 0 = @in_min
 * @args: arguments that it uses; the others are zero
 * @secret: the input holds keys
 * @run: handler; Return: enum cordon_cmd_status
 */
struct cmd_type {
	uint16_t opcode;
	uint32_t in_min;
	uint32_t in_max;
	uint8_t args;
	bool secret;
	uint16_t (*run)(struct cmd_ctx *c);
};

static uint16_t refuse(struct cmd_ctx *c, uint16_t status, uint16_t param, uint64_t min,
		       uint64_t max)
{
	return fw_cfg_refuse(c->done, status, param, min, max);
}

static uint16_t put_output(struct cmd_ctx *c, const void *data, uint32_t len)
{
	if (le32toh(c->cmd.out_len) < len)
		return refuse(c, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_LENGTH, len,
			      CORDON_CMD_OUT_MAX);
	if (fw_mem_write(&c->port->mem, le64toh(c->cmd.out_addr), data, len))
		return CORDON_CMD_STATUS_DMA;
	c->done->out_len = htole32(len);
	return CORDON_CMD_STATUS_OK;
}

static uint16_t run_nop(struct cmd_ctx *c)
{
	(void)c;
	return CORDON_CMD_STATUS_OK;
}

static uint16_t run_query_caps(struct cmd_ctx *c)
{
	uint8_t records[FW_CAPS_SIZE_MAX];

	return put_output(c, records, fw_caps_write(c->port, records));
}

static uint16_t run_query_stats(struct cmd_ctx *c)
{
	struct cordon_port_stats stats = c->port->stats;
	uint64_t *word = (uint64_t *)&stats;

	for (size_t i = 0; i < sizeof(stats) / sizeof(*word); i++)
		word[i] = htole64(word[i]);
	return put_output(c, &stats, sizeof(stats));
}

static uint16_t run_selftest(struct cmd_ctx *c)
{
	(void)c;
	return fw_crypto_selftest() ? CORDON_CMD_STATUS_FAULT : CORDON_CMD_STATUS_OK;
}

static uint16_t run_queue_pair_create(struct cmd_ctx *c)
{
	return fw_queue_create(c->port, c->in, c->done);
}

static uint16_t run_queue_pair_destroy(struct cmd_ctx *c)
{
	if (c->arg[0] >= CORDON_QUEUE_PAIRS_MAX)
		return refuse(c, CORDON_CMD_STATUS_NOT_FOUND, CORDON_PARAM_HANDLE, 0, 0);
	return fw_queue_destroy(c->port, (uint32_t)c->arg[0]);
}

static uint16_t run_queue_pair_moderate(struct cmd_ctx *c)
{
	return fw_queue_moderate(c->port, c->arg, c->done);
}

static uint16_t run_port_set(struct cmd_ctx *c)
{
	return fw_port_set(c->port, c->in, c->done);
}

static uint16_t run_filter_set(struct cmd_ctx *c)
{
	return fw_port_set_filter(c->port, c->in, c->in_len, c->done);
}

static uint16_t run_rss_set(struct cmd_ctx *c)
{
	return fw_port_set_rss(c->port, c->in, c->done);
}

static uint16_t run_sa_add(struct cmd_ctx *c)
{
	return fw_sad_add(c->port, c->in, c->done);
}

static uint16_t run_sa_del(struct cmd_ctx *c)
{
	if (c->arg[0] > UINT32_MAX)
		return CORDON_CMD_STATUS_NOT_FOUND;
	return fw_sad_del(c->port, (uint32_t)c->arg[0]);
}

static uint16_t run_sa_update(struct cmd_ctx *c)
{
	return fw_sad_update(c->port, c->in, c->done);
}

static uint16_t run_sa_flush(struct cmd_ctx *c)
{
	fw_sad_flush(&c->port->sad);
	return CORDON_CMD_STATUS_OK;
}

static uint16_t run_policy_add(struct cmd_ctx *c)
{
	const struct cordon_policy_cfg *cfg = c->in;
	uint32_t max = le32toh(c->port->ipsec_cap.policy_max);

	if (!c->port->ipsec_cap.cap.type)
		return CORDON_CMD_STATUS_UNSUPPORTED;
	if ((le32toh(cfg->handle) & CORDON_HANDLE_INDEX) >= max)
		return refuse(c, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_HANDLE, 0, max - 1u);
	if (fw_spd_count(c->port->spd) >= max)
		return refuse(c, CORDON_CMD_STATUS_FULL, CORDON_PARAM_NONE, 0, max);
	return fw_spd_add(c->port->spd, cfg, c->done);
}

static uint16_t run_policy_del(struct cmd_ctx *c)
{
	if (c->arg[0] > UINT32_MAX)
		return CORDON_CMD_STATUS_NOT_FOUND;
	return fw_spd_del(c->port->spd, (uint32_t)c->arg[0]);
}

static uint16_t run_policy_flush(struct cmd_ctx *c)
{
	fw_spd_flush(c->port->spd);
	return CORDON_CMD_STATUS_OK;
}

static const struct cmd_type cmd_types[] = {
	{ CORDON_CMD_NOP, 0, 0, 0, false, run_nop },
	{ CORDON_CMD_QUERY_CAPS, 0, 0, 0, false, run_query_caps },
	{ CORDON_CMD_QUERY_STATS, 0, 0, 0, false, run_query_stats },
	{ CORDON_CMD_SELFTEST, 0, 0, 0, false, run_selftest },
	{ CORDON_CMD_QUEUE_PAIR_CREATE, sizeof(struct cordon_queue_pair_cfg), 0, 0, false,
	  run_queue_pair_create },
	{ CORDON_CMD_QUEUE_PAIR_DESTROY, 0, 0, 1, false, run_queue_pair_destroy },
	{ CORDON_CMD_QUEUE_PAIR_MODERATE, 0, 0, 4, false, run_queue_pair_moderate },
	{ CORDON_CMD_PORT_SET, sizeof(struct cordon_port_cfg), 0, 0, false, run_port_set },
	{ CORDON_CMD_FILTER_SET, sizeof(struct cordon_filter_cfg), CORDON_CMD_IN_MAX, 0, false,
	  run_filter_set },
	{ CORDON_CMD_RSS_SET, sizeof(struct cordon_rss_cfg), 0, 0, false, run_rss_set },
	{ CORDON_CMD_SA_ADD, sizeof(struct cordon_sa_cfg), 0, 0, true, run_sa_add },
	{ CORDON_CMD_SA_DEL, 0, 0, 1, false, run_sa_del },
	{ CORDON_CMD_SA_UPDATE, sizeof(struct cordon_sa_update), 0, 0, false, run_sa_update },
	{ CORDON_CMD_SA_FLUSH, 0, 0, 0, false, run_sa_flush },
	{ CORDON_CMD_POLICY_ADD, sizeof(struct cordon_policy_cfg), 0, 0, false, run_policy_add },
	{ CORDON_CMD_POLICY_DEL, 0, 0, 1, false, run_policy_del },
	{ CORDON_CMD_POLICY_FLUSH, 0, 0, 0, false, run_policy_flush },
};

static const struct cmd_type *type_find(uint16_t opcode)
{
	for (size_t i = 0; i < sizeof(cmd_types) / sizeof(cmd_types[0]); i++) {
		if (cmd_types[i].opcode == opcode)
			return &cmd_types[i];
	}
	return NULL;
}

static uint16_t cmd_check(struct cmd_ctx *c, const struct cmd_type *type)
{
	uint32_t max = type->in_max ? type->in_max : type->in_min;

	if (c->cmd.reserved)
		return refuse(c, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	for (uint32_t i = type->args; i < 4; i++) {
		if (c->arg[i])
			return refuse(c, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	}
	if (c->in_len < type->in_min || c->in_len > max)
		return refuse(c, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_LENGTH, type->in_min,
			      max);
	if (le32toh(c->cmd.out_len) > CORDON_CMD_OUT_MAX)
		return refuse(c, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_LENGTH, 0,
			      CORDON_CMD_OUT_MAX);
	return CORDON_CMD_STATUS_OK;
}

static uint16_t cmd_run(struct cmd_ctx *c)
{
	const struct cmd_type *type = type_find(le16toh(c->cmd.opcode));
	uint8_t *in = c->port->worker->cmd_in;
	uint16_t status;

	if (!type)
		return CORDON_CMD_STATUS_UNKNOWN_OPCODE;
	status = cmd_check(c, type);
	if (status)
		return status;
	if (fw_mem_read(&c->port->mem, le64toh(c->cmd.in_addr), in, c->in_len))
		status = CORDON_CMD_STATUS_DMA;
	c->in = in;
	if (!status)
		status = type->run(c);
	if (type->secret)
		OPENSSL_cleanse(in, c->in_len);
	return status;
}

/* Run the command at the consumer index. */
static void cmd_next(struct fw_port *port)
{
	struct cordon_cmd_completion done = { 0 };
	struct cmd_ctx c = { .port = port, .done = &done };

	if (fw_mem_ring_read(&port->cmd_sq, port->cmd_cons, &c.cmd)) {
		fw_port_fail(port, CORDON_ERROR_DMA);
		return;
	}
	port->cmd_cons++;
	c.in_len = le32toh(c.cmd.in_len);
	for (uint32_t i = 0; i < 4; i++)
		c.arg[i] = le64toh(c.cmd.arg[i]);
	done.status = htole16(cmd_run(&c));
	done.tag = c.cmd.tag;
	done.opcode = c.cmd.opcode;
	if (fw_mem_ring_write(&port->cmd_cq, port->admin.ring[FW_NOTIFY_SQ].prod, &done)) {
		fw_port_fail(port, CORDON_ERROR_DMA);
		return;
	}
	fw_notify_add(&port->admin, FW_NOTIFY_SQ, port->worker->now);
}

/**
 * fw_cmd_poll() - run commands that wait
 * @port: function, enabled
 *
 * Return: true if there were any.
 */
bool fw_cmd_poll(struct fw_port *port)
{
	uint32_t prod = fw_notify_sq_prod(&port->admin);
	uint32_t fill = prod - port->cmd_cons;

	fw_notify_awake(&port->admin, port->cmd_cons);
	if (!fill)
		return false;
	if (fill > fw_mem_ring_entries(&port->cmd_sq)) {
		fw_port_fail(port, CORDON_ERROR_BAD_RINGS);
		return false;
	}
	for (uint32_t i = 0; i < BUDGET && i < fill && !port->failed; i++)
		cmd_next(port);
	return true;
}

/**
 * fw_cmd_waits() - does a command wait
 * @port: function, enabled
 *
 * Return: true if one does.
 */
bool fw_cmd_waits(const struct fw_port *port)
{
	return fw_notify_sq_prod(&port->admin) != port->cmd_cons;
}
