// SPDX-License-Identifier: BSD-3-Clause
/*
 * PCI configuration space: bytes, a mask of those bits that a write changes, and four bits that do
 * something.
 *
 * The function presents itself as a PCI Express endpoint: QEMU turns it into a root complex
 * integrated endpoint by itself where it sits on the root bus. It has no interrupt pin: while an
 * INTx is pending QEMU would trap the doorbell page.
 */
#include <linux/pci_regs.h>
#include <string.h>

#include "board/board.h"

#define CONFIG_PM 0x40
#define CONFIG_MSI 0x50
#define CONFIG_EXP 0x70
#define CONFIG_DSN 0x100

#define CONFIG_COMMAND_MASK                                                                        \
	(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY | PCI_COMMAND_SERR |         \
	 PCI_COMMAND_INTX_DISABLE)
#define CONFIG_DEVCTL_MASK 0xffff
#define CONFIG_LNKCTL_MASK                                                                         \
	(PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES)

static void put8(struct board_config *config, size_t at, uint8_t value, uint8_t mask)
{
	config->value[at] = value;
	config->mask[at] = mask;
}

static void put16(struct board_config *config, size_t at, unsigned int value, unsigned int mask)
{
	put8(config, at, (uint8_t)(value & 0xff), (uint8_t)(mask & 0xff));
	put8(config, at + 1, (uint8_t)(value >> 8 & 0xff), (uint8_t)(mask >> 8 & 0xff));
}

static void put32(struct board_config *config, size_t at, uint32_t value, uint32_t mask)
{
	put16(config, at, value & 0xffff, mask & 0xffff);
	put16(config, at + 2, value >> 16, mask >> 16);
}

static unsigned int get16(const struct board_config *config, size_t at)
{
	return config->value[at] | (unsigned int)config->value[at + 1] << 8;
}

static void put_bar(struct board_config *config, unsigned int index, uint32_t size)
{
	size_t at = PCI_BASE_ADDRESS_0 + 4 * (size_t)index;

	put32(config, at, PCI_BASE_ADDRESS_MEM_TYPE_64, ~(size - 1));
	put32(config, at + 4, 0, ~0u);
}

static void put_cap(struct board_config *config, size_t at, uint8_t id, uint8_t next)
{
	put8(config, at + PCI_CAP_LIST_ID, id, 0);
	put8(config, at + PCI_CAP_LIST_NEXT, next, 0);
}

static void put_header(struct board_config *config)
{
	put16(config, PCI_VENDOR_ID, CORDON_PCI_VENDOR_ID, 0);
	put16(config, PCI_DEVICE_ID, CORDON_PCI_DEVICE_ID, 0);
	put16(config, PCI_COMMAND, 0, CONFIG_COMMAND_MASK);
	put16(config, PCI_STATUS, PCI_STATUS_CAP_LIST, 0);
	put32(config, PCI_CLASS_REVISION, (uint32_t)CORDON_PCI_CLASS << 8 | CORDON_ABI_MAJOR, 0);
	put8(config, PCI_CACHE_LINE_SIZE, 0, 0xff);
	put_bar(config, CORDON_BAR_REGS, CORDON_BAR_REGS_SIZE);
	put_bar(config, CORDON_BAR_DOORBELL, CORDON_BAR_DOORBELL_SIZE);
	put_bar(config, CORDON_BAR_MSIX, CORDON_BAR_MSIX_SIZE);
	put16(config, PCI_SUBSYSTEM_VENDOR_ID, CORDON_PCI_VENDOR_ID, 0);
	put16(config, PCI_SUBSYSTEM_ID, CORDON_PCI_DEVICE_ID, 0);
	put8(config, PCI_CAPABILITY_LIST, CONFIG_PM, 0);
	put8(config, PCI_INTERRUPT_LINE, 0, 0xff);
}

/* Power management: D0 and D3hot; leaving D3hot resets the function. */
static void put_pm(struct board_config *config)
{
	put_cap(config, CONFIG_PM, PCI_CAP_ID_PM, CONFIG_MSI);
	put16(config, CONFIG_PM + PCI_PM_PMC, 3, 0);
	put16(config, CONFIG_PM + PCI_PM_CTRL, 0, PCI_PM_CTRL_STATE_MASK);
}

static void put_msix(struct board_config *config, uint32_t vectors)
{
	put_cap(config, CONFIG_MSI, PCI_CAP_ID_MSIX, CONFIG_EXP);
	put16(config, CONFIG_MSI + PCI_MSIX_FLAGS, vectors - 1,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	put32(config, CONFIG_MSI + PCI_MSIX_TABLE, CORDON_MSIX_TABLE_OFFSET | CORDON_BAR_MSIX, 0);
	put32(config, CONFIG_MSI + PCI_MSIX_PBA, CORDON_MSIX_PBA_OFFSET | CORDON_BAR_MSIX, 0);
}

/* @vectors is a power of two. */
static void put_msi(struct board_config *config, uint32_t vectors)
{
	unsigned int log2 = (unsigned int)__builtin_ctz(vectors);

	put_cap(config, CONFIG_MSI, PCI_CAP_ID_MSI, CONFIG_EXP);
	put16(config, CONFIG_MSI + PCI_MSI_FLAGS, PCI_MSI_FLAGS_64BIT | log2 << 1,
	      PCI_MSI_FLAGS_ENABLE | PCI_MSI_FLAGS_QSIZE);
	put32(config, CONFIG_MSI + PCI_MSI_ADDRESS_LO, 0, ~3u);
	put32(config, CONFIG_MSI + PCI_MSI_ADDRESS_HI, 0, ~0u);
	put16(config, CONFIG_MSI + PCI_MSI_DATA_64, 0, 0xffff);
}

static void put_exp(struct board_config *config)
{
	put_cap(config, CONFIG_EXP, PCI_CAP_ID_EXP, 0);
	put16(config, CONFIG_EXP + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4, 0);
	put32(config, CONFIG_EXP + PCI_EXP_DEVCAP,
	      PCI_EXP_DEVCAP_L0S | PCI_EXP_DEVCAP_L1 | PCI_EXP_DEVCAP_EXT_TAG |
		      PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR,
	      0);
	put16(config, CONFIG_EXP + PCI_EXP_DEVCTL,
	      PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B,
	      CONFIG_DEVCTL_MASK);
	/* 16 GT/s, 16 lanes: nothing depends on it but what tools print. */
	put32(config, CONFIG_EXP + PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS_16_0GB | 16u << 4, 0);
	put16(config, CONFIG_EXP + PCI_EXP_LNKCTL, 0, CONFIG_LNKCTL_MASK);
	put16(config, CONFIG_EXP + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS_16_0GB | 16u << 4, 0);
	put32(config, CONFIG_EXP + PCI_EXP_DEVCAP2, PCI_EXP_DEVCAP2_COMP_TMOUT_DIS, 0);
	put16(config, CONFIG_EXP + PCI_EXP_DEVCTL2, 0, PCI_EXP_DEVCTL2_COMP_TMOUT_DIS);
	put32(config, CONFIG_EXP + PCI_EXP_LNKCAP2,
	      PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB | PCI_EXP_LNKCAP2_SLS_8_0GB |
		      PCI_EXP_LNKCAP2_SLS_16_0GB,
	      0);
	put16(config, CONFIG_EXP + PCI_EXP_LNKCTL2, PCI_EXP_LNKCTL2_TLS_16_0GT,
	      PCI_EXP_LNKCTL2_TLS);
}

/* Serial number: the EUI-64 that belongs to the permanent address, low word first. */
static void put_dsn(struct board_config *config, const uint8_t *mac)
{
	put32(config, CONFIG_DSN, PCI_EXT_CAP_ID_DSN | 1u << 16, 0);
	put32(config, CONFIG_DSN + 4,
	      0xff000000u | (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5], 0);
	put32(config, CONFIG_DSN + 8,
	      (uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 | (uint32_t)mac[2] << 8 | 0xff, 0);
}

/**
 * board_config_init - configuration space as after power-on
 * @port: port
 *
 * Context: loop.
 */
void board_config_init(struct board_port *port)
{
	struct board_config *config = &port->config;

	memset(config, 0, sizeof(*config));
	put_header(config);
	put_pm(config);
	if (port->board->options.msi)
		put_msi(config, port->vectors);
	else
		put_msix(config, port->vectors);
	put_exp(config);
	put_dsn(config, port->options->mac);
}

/**
 * board_config_read - read configuration space
 * @port: port
 * @offset: first byte
 * @data: bytes
 * @len: bytes, the caller has checked that they lie in configuration space
 *
 * Context: loop.
 */
void board_config_read(struct board_port *port, uint64_t offset, uint8_t *data, size_t len)
{
	memcpy(data, port->config.value + offset, len);
}

static unsigned int power_state(const struct board_config *config)
{
	return get16(config, CONFIG_PM + PCI_PM_CTRL) & PCI_PM_CTRL_STATE_MASK;
}

/**
 * board_config_may_dma - is the function allowed to use memory?
 * @port: port
 *
 * Context: loop.
 * Return: true if it is a bus master and in D0.
 */
bool board_config_may_dma(const struct board_port *port)
{
	return get16(&port->config, PCI_COMMAND) & PCI_COMMAND_MASTER &&
	       power_state(&port->config) == 0;
}

static uint64_t function_reset(struct board_port *port, const char *why)
{
	board_log(BOARD_LOG_INFO, "%s: %s", port->options->name, why);
	board_port_power_on(port);
	return board_regs_reset(port);
}

/* Something of the firmware's is under way that may touch memory. */
static bool is_active(const struct board_regs *regs)
{
	return regs->enabled || regs->enable_seq || regs->resetting;
}

/**
 * board_config_write - write to configuration space
 * @port: port
 * @offset: first byte
 * @data: bytes
 * @len: bytes, the caller has checked that they lie in configuration space
 *
 * Losing bus mastering or D0 while rings are in use is a reset of the rings: the function must not
 * touch memory from now on, and nothing says where it would have to go on later. A guest that has
 * taken these away, or reset the function, gives the memory to others as soon as its write is done.
 *
 * Context: loop.
 * Return: request after whose end the function touches no memory, as board_regs_reset(); 0: there is
 * nothing to wait for.
 */
uint64_t board_config_write(struct board_port *port, uint64_t offset, const uint8_t *data, size_t len)
{
	struct board_config *config = &port->config;
	unsigned int before = power_state(config), after;
	size_t i;

	for (i = 0; i < len; i++) {
		uint8_t mask = config->mask[offset + i];

		config->value[offset + i] =
			(uint8_t)((config->value[offset + i] & ~mask) | (data[i] & mask));
	}
	after = power_state(config);
	/* D1 and D2 don't exist: a write of them is ignored. */
	if (after != 0 && after != PCI_PM_CTRL_STATE_MASK) {
		config->value[CONFIG_PM + PCI_PM_CTRL] = (uint8_t)before;
		after = before;
	}
	if (get16(config, CONFIG_EXP + PCI_EXP_DEVCTL) & PCI_EXP_DEVCTL_BCR_FLR)
		return function_reset(port, "function level reset");
	if (before && !after)
		return function_reset(port, "reset by leaving D3hot");
	if (is_active(&port->regs) && !board_config_may_dma(port))
		return board_regs_reset(port);
	return 0;
}
