// SPDX-License-Identifier: BSD-3-Clause
/*
 * The registers of BAR0. Each access is answered from here at once; the firmware is told, and what
 * it answers shows later in the status register.
 */
#include <stdio.h>
#include <string.h>

#include "board/board.h"

#define REG(member) offsetof(struct cordon_regs, member)

static uint32_t read_status(const struct board_port *port)
{
	const struct board_regs *regs = &port->regs;
	uint32_t status = CORDON_PREP(CORDON_STATUS_GENERATION, port->firmware->generation);

	if (port->firmware->state == BOARD_FIRMWARE_RUNNING && !regs->failed && !regs->resetting)
		status |= CORDON_STATUS_READY;
	if (regs->enabled)
		status |= CORDON_STATUS_ENABLED;
	if (regs->resetting)
		status |= CORDON_STATUS_RESETTING;
	if (regs->failed)
		status |= CORDON_STATUS_FAILED;
	return status;
}

/* Board and firmware are built and installed together. */
static uint32_t read_version(const struct board_port *port)
{
	unsigned int major = 0, minor = 0, patch = 0;

	if (port->firmware->state != BOARD_FIRMWARE_RUNNING)
		return 0;
	sscanf(CORDON_VERSION, "%u.%u.%u", &major, &minor, &patch);
	return (major & 0xff) << 16 | (minor & 0xff) << 8 | (patch & 0xff);
}

static uint32_t low(uint64_t value)
{
	return (uint32_t)(value & 0xffffffff);
}

static uint32_t high(uint64_t value)
{
	return (uint32_t)(value >> 32);
}

static uint32_t read_reg(const struct board_port *port, uint64_t offset)
{
	const struct board_regs *regs = &port->regs;
	const uint8_t *mac = port->options->mac;

	switch (offset) {
	case REG(magic):
		return CORDON_MAGIC;
	case REG(abi):
		return CORDON_PREP(CORDON_ABI_VERSION_MAJOR, CORDON_ABI_MAJOR) |
		       CORDON_PREP(CORDON_ABI_VERSION_MINOR, CORDON_ABI_MINOR);
	case REG(fw_version):
		return read_version(port);
	case REG(status):
		return read_status(port);
	case REG(control):
		return regs->control;
	case REG(error):
		return regs->failed ? regs->error : CORDON_ERROR_NONE;
	case REG(vectors):
		return port->vectors;
	case REG(cmd_sq):
		return low(regs->rings.cmd_sq);
	case REG(cmd_sq) + 4:
		return high(regs->rings.cmd_sq);
	case REG(cmd_cq):
		return low(regs->rings.cmd_cq);
	case REG(cmd_cq) + 4:
		return high(regs->rings.cmd_cq);
	case REG(event_ring):
		return low(regs->rings.event_ring);
	case REG(event_ring) + 4:
		return high(regs->rings.event_ring);
	case REG(ring_sizes):
		return regs->rings.ring_sizes;
	case REG(mac_lo):
		return mac[0] | (uint32_t)mac[1] << 8 | (uint32_t)mac[2] << 16 |
		       (uint32_t)mac[3] << 24;
	case REG(mac_hi):
		return mac[4] | (uint32_t)mac[5] << 8;
	default:
		return 0;
	}
}

static bool is_wide(uint64_t offset)
{
	return offset == REG(cmd_sq) || offset == REG(cmd_cq) || offset == REG(event_ring);
}

/* 32-bit accesses to everything, 64-bit ones to 64-bit registers. */
static bool is_defined(uint64_t offset, size_t len)
{
	return (len == 4 && offset % 4 == 0) || (len == 8 && is_wide(offset));
}

/**
 * board_regs_read - read registers
 * @port: port
 * @offset: first byte
 * @data: bytes
 * @len: bytes, the caller has checked that they lie in the BAR
 *
 * Context: loop.
 */
void board_regs_read(struct board_port *port, uint64_t offset, uint8_t *data, size_t len)
{
	size_t i;

	memset(data, 0, len);
	if (!is_defined(offset, len))
		return;
	for (i = 0; i < len; i += 4) {
		uint32_t value = read_reg(port, offset + i);

		memcpy(data + i, &value, sizeof(value));
	}
}

static void write_low(uint64_t *reg, uint32_t value)
{
	*reg = (*reg & ~0xffffffffull) | value;
}

static void write_high(uint64_t *reg, uint32_t value)
{
	*reg = (*reg & 0xffffffffull) | (uint64_t)value << 32;
}

static void write_ring(struct board_regs *regs, uint64_t offset, uint32_t value)
{
	switch (offset) {
	case REG(cmd_sq):
		write_low(&regs->rings.cmd_sq, value);
		break;
	case REG(cmd_sq) + 4:
		write_high(&regs->rings.cmd_sq, value);
		break;
	case REG(cmd_cq):
		write_low(&regs->rings.cmd_cq, value);
		break;
	case REG(cmd_cq) + 4:
		write_high(&regs->rings.cmd_cq, value);
		break;
	case REG(event_ring):
		write_low(&regs->rings.event_ring, value);
		break;
	case REG(event_ring) + 4:
		write_high(&regs->rings.event_ring, value);
		break;
	case REG(ring_sizes):
		regs->rings.ring_sizes = value;
		break;
	}
}

/* A function that isn't ready (a reset goes on, or it failed) doesn't take the bit. */
static void enable(struct board_port *port)
{
	struct board_regs *regs = &port->regs;
	struct fw_ipc_msg msg = { .type = FW_IPC_ENABLE };

	if (!(read_status(port) & CORDON_STATUS_READY))
		return;
	regs->control = CORDON_CONTROL_ENABLE;
	if (!board_config_may_dma(port)) {
		board_regs_fail(port, CORDON_ERROR_DMA);
		return;
	}
	msg.enable.cmd_sq = regs->rings.cmd_sq;
	msg.enable.cmd_cq = regs->rings.cmd_cq;
	msg.enable.event_ring = regs->rings.event_ring;
	msg.enable.ring_sizes = regs->rings.ring_sizes;
	regs->enable_seq = board_firmware_ask(port, &msg, BOARD_ENABLE_MS);
}

static void write_control(struct board_port *port, uint32_t value)
{
	bool was = port->regs.control & CORDON_CONTROL_ENABLE;
	bool is = value & CORDON_CONTROL_ENABLE;

	if (value & CORDON_CONTROL_RESET || (was && !is))
		board_regs_reset(port);
	else if (!was && is)
		enable(port);
}

static void write_reg(struct board_port *port, uint64_t offset, uint32_t value)
{
	if (offset == REG(control))
		write_control(port, value);
	else if (offset == REG(kick) && value < CORDON_DOORBELL_LINES && port->regs.enabled)
		board_irq_signal(port->kick_fd);
	else if (!port->regs.control)
		write_ring(&port->regs, offset, value);
}

/**
 * board_regs_write - write registers
 * @port: port
 * @offset: first byte
 * @data: bytes
 * @len: bytes, the caller has checked that they lie in the BAR
 *
 * Context: loop.
 */
void board_regs_write(struct board_port *port, uint64_t offset, const uint8_t *data, size_t len)
{
	size_t i;

	if (!is_defined(offset, len))
		return;
	for (i = 0; i < len; i += 4) {
		uint32_t value;

		memcpy(&value, data + i, sizeof(value));
		write_reg(port, offset + i, value);
	}
}

/**
 * board_regs_reset - reset the function; a firmware that is gone is replaced
 * @port: port
 *
 * STATUS_RESETTING is set until the firmware has acknowledged, or the new one has started. Resets
 * that come meanwhile are part of this one, so that the number of requests under way is bounded.
 *
 * Context: loop.
 * Return: request after whose end the function touches no memory (see board_client_resume()); 0: it
 * touches none now.
 */
uint64_t board_regs_reset(struct board_port *port)
{
	struct board_regs *regs = &port->regs;
	struct board_firmware *firmware = port->firmware;
	struct fw_ipc_msg msg = { .type = FW_IPC_DISABLE };

	regs->control = 0;
	regs->enabled = false;
	regs->enable_seq = 0;
	memset(&regs->rings, 0, sizeof(regs->rings));
	if (regs->resetting)
		return firmware->state == BOARD_FIRMWARE_DYING ? BOARD_SEQ_DEATH : regs->reset_seq;
	regs->resetting = true;
	regs->failed = false;
	regs->error = CORDON_ERROR_NONE;
	regs->reset_seq = 0;
	switch (firmware->state) {
	case BOARD_FIRMWARE_STARTING:
	case BOARD_FIRMWARE_RUNNING:
		regs->reset_seq = board_firmware_ask(port, &msg, BOARD_REQUEST_MS);
		return regs->reset_seq;
	case BOARD_FIRMWARE_DYING:
		firmware->restart = true;
		return BOARD_SEQ_DEATH;
	case BOARD_FIRMWARE_DEAD:
		if (board_firmware_start(firmware))
			board_regs_fail(port, CORDON_ERROR_FIRMWARE_DIED);
		break;
	}
	return 0;
}

/**
 * board_regs_reset_done - the firmware has acknowledged the reset, or a new one runs
 * @port: port
 *
 * The doorbells are cleared only now: a firmware that still looks at them would take the jump for
 * an error.
 *
 * Context: loop.
 */
void board_regs_reset_done(struct board_port *port)
{
	memset(port->doorbell, 0, CORDON_BAR_DOORBELL_SIZE);
	port->regs.resetting = false;
	port->regs.reset_seq = 0;
}

/**
 * board_regs_enable_done - the firmware has acknowledged ENABLE
 * @port: port
 * @error: 0 or -errno
 *
 * Context: loop.
 */
void board_regs_enable_done(struct board_port *port, int error)
{
	port->regs.enable_seq = 0;
	if (error)
		board_regs_fail(port, CORDON_ERROR_BAD_RINGS);
	else
		port->regs.enabled = true;
}

/**
 * board_regs_fail - the function can't go on
 * @port: port
 * @error: why
 *
 * Context: loop.
 */
void board_regs_fail(struct board_port *port, enum cordon_error error)
{
	struct board_regs *regs = &port->regs;

	board_log(BOARD_LOG_WARNING, "%s: failed, error %d", port->options->name, error);
	regs->failed = true;
	regs->error = error;
	regs->enabled = false;
	regs->enable_seq = 0;
	regs->resetting = false;
	regs->reset_seq = 0;
	board_irq_raise(port, 0, 1);
}
