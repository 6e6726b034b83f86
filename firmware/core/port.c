// SPDX-License-Identifier: BSD-3-Clause
/*
 * Ports: their life, their configuration, and which frames they want.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/caps.h"
#include "core/event.h"
#include "core/ipc.h"
#include "core/port.h"
#include "core/queue.h"
#include "core/rx.h"
#include "core/tx.h"
#include "core/worker.h"
#include "path/cfg.h"

#define MTU_DEFAULT 1500
#define MULTICAST_BIT ((uint64_t)1 << 40)
#define BROADCAST 0xffffffffffffull

static uint64_t mac_number(const uint8_t *mac)
{
	uint64_t n = 0;

	for (int i = 0; i < 6; i++)
		n = n << 8 | mac[i];
	return n;
}

static int doorbells_open(struct fw_port *port, int fd)
{
	struct stat st;
	uint8_t *base;

	if (fstat(fd, &st) || st.st_size < CORDON_BAR_DOORBELL_SIZE)
		return -EINVAL;
	base = mmap(NULL, CORDON_BAR_DOORBELL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	port->doorbells = (const void *)(base + CORDON_DOORBELL_PAGE_OFFSET);
	port->wakes = (void *)(base + CORDON_WAKE_PAGE_OFFSET);
	return 0;
}

static int port_init(struct fw_port *port, const struct fw_ipc_msg *msg)
{
	if (!msg->add.vectors || msg->add.vectors > CORDON_VECTORS_MAX)
		return -EINVAL;
	if (strnlen(msg->add.name, sizeof(msg->add.name)) == sizeof(msg->add.name))
		return -EINVAL;
	port->number = msg->port;
	port->vectors = msg->add.vectors;
	port->limits = msg->add.limits;
	memcpy(port->perm_mac, msg->add.mac, sizeof(port->perm_mac));
	memcpy(port->name, msg->add.name, sizeof(port->name));
	for (uint32_t i = 0; i < CORDON_VECTORS_MAX; i++)
		port->irqs[i] = -1;
	port->kick = -1;
	fw_caps_init(port);
	return 0;
}

/**
 * fw_port_create() - FW_IPC_PORT_ADD
 * @worker: thread that will own it
 * @msg: message
 * @fds: file descriptors of the message. On success they belong to the port
 * @fd_count: how many
 * @out: the port
 *
 * Return: 0 or -errno.
 */
int fw_port_create(struct fw_worker *worker, const struct fw_ipc_msg *msg, const int *fds,
		   uint32_t fd_count, struct fw_port **out)
{
	uint32_t capture = msg->add.has_capture ? 1 : 0;
	struct fw_port *port;
	int ret;

	if (fd_count < 2 + capture)
		return -EINVAL;
	port = calloc(1, sizeof(*port));
	if (!port)
		return -ENOMEM;
	port->worker = worker;
	ret = port_init(port, msg);
	if (!ret)
		ret = doorbells_open(port, fds[0]);
	if (ret)
		goto err_free_port;
	port->tx = fw_tx_alloc();
	if (!port->tx) {
		ret = -ENOMEM;
		goto err_unmap;
	}
	port->reassembly = fw_rx_reassembly_alloc(port);
	if (!port->reassembly) {
		ret = -ENOMEM;
		goto err_free_tx;
	}
	if (capture) {
		port->capture = fw_capture_create(fds[fd_count - 1], port->name);
		if (!port->capture) {
			ret = -ENOMEM;
			goto err_free_reassembly;
		}
	}
	ret = fw_wire_create(msg, fds + 2, fd_count - 2 - capture, &port->wire);
	if (ret)
		goto err_free_reassembly;
	port->kick = fds[1];
	close(fds[0]);
	*out = port;
	return 0;

err_free_reassembly:
	/* The capture has nothing but its header: it's the caller who closes the file. */
	free(port->capture);
	fw_reassembly_free(port->reassembly);
err_free_tx:
	fw_tx_free(port->tx);
err_unmap:
	munmap((void *)(uintptr_t)port->doorbells, CORDON_BAR_DOORBELL_SIZE);
err_free_port:
	free(port);
	return ret;
}

/**
 * fw_port_destroy() - wipe and free a port
 * @port: port
 */
void fw_port_destroy(struct fw_port *port)
{
	fw_port_disable(port);
	port->wire->ops->destroy(port->wire);
	fw_capture_destroy(port->capture);
	fw_tx_free(port->tx);
	fw_reassembly_free(port->reassembly);
	fw_mem_clear(&port->mem);
	for (uint32_t i = 0; i < CORDON_VECTORS_MAX; i++) {
		if (port->irqs[i] >= 0)
			close(port->irqs[i]);
	}
	close(port->kick);
	munmap((void *)(uintptr_t)port->doorbells, CORDON_BAR_DOORBELL_SIZE);
	free(port);
}

static void state_reset(struct fw_port *port)
{
	port->failed = false;
	port->cmd_cons = 0;
	port->event_overflow = false;
	port->event_link_due = false;
	port->mtu = MTU_DEFAULT;
	port->flags = 0;
	port->mac = mac_number(port->perm_mac);
	port->queue_next = 0;
	memset(&port->filter, 0, sizeof(port->filter));
	memset(&port->rss, 0, sizeof(port->rss));
	memset(&port->stats, 0, sizeof(port->stats));
}

static int rings_init(struct fw_port *port, uint64_t cmd_sq, uint64_t cmd_cq, uint64_t event_ring,
		      uint32_t ring_sizes)
{
	uint32_t cmd = CORDON_GET(CORDON_RING_SIZES_CMD, ring_sizes);
	uint32_t event = CORDON_GET(CORDON_RING_SIZES_EVENT, ring_sizes);
	int ret;

	if (ring_sizes & ~(CORDON_RING_SIZES_CMD | CORDON_RING_SIZES_EVENT) ||
	    cmd < CORDON_RING_LOG2_MIN || cmd > CORDON_RING_LOG2_MAX ||
	    event < CORDON_RING_LOG2_MIN || event > CORDON_RING_LOG2_MAX)
		return -EINVAL;
	ret = fw_mem_ring_init(&port->cmd_sq, &port->mem, cmd_sq, (uint8_t)cmd,
			       sizeof(struct cordon_cmd), false);
	if (!ret)
		ret = fw_mem_ring_init(&port->cmd_cq, &port->mem, cmd_cq, (uint8_t)cmd,
				       sizeof(struct cordon_cmd_completion), true);
	if (!ret)
		ret = fw_mem_ring_init(&port->event_ring, &port->mem, event_ring, (uint8_t)event,
				       sizeof(struct cordon_event), true);
	return ret;
}

static void rings_exit(struct fw_port *port)
{
	fw_mem_ring_exit(&port->cmd_sq);
	fw_mem_ring_exit(&port->cmd_cq);
	fw_mem_ring_exit(&port->event_ring);
}

/**
 * fw_port_enable() - FW_IPC_ENABLE
 * @port: port
 * @cmd_sq: registers of the same names
 * @cmd_cq: as above
 * @event_ring: as above
 * @ring_sizes: as above
 *
 * Return: 0, -EBUSY if it is enabled, -EINVAL, -EFAULT, -ENOMEM.
 */
int fw_port_enable(struct fw_port *port, uint64_t cmd_sq, uint64_t cmd_cq, uint64_t event_ring,
		   uint32_t ring_sizes)
{
	int ret;

	if (port->enabled)
		return -EBUSY;
	state_reset(port);
	ret = rings_init(port, cmd_sq, cmd_cq, event_ring, ring_sizes);
	if (ret)
		goto err_exit_rings;
	ret = fw_sad_init(&port->sad, le32toh(port->ipsec_cap.sa_max));
	if (ret)
		goto err_exit_rings;
	port->spd = fw_spd_alloc();
	if (!port->spd) {
		ret = -ENOMEM;
		goto err_exit_sad;
	}
	fw_notify_init(&port->admin, port, CORDON_LINE_ADMIN, 0,
		       fw_mem_ring_entries(&port->cmd_cq), fw_mem_ring_entries(&port->event_ring));
	port->enabled = true;
	port->link = port->wire->ops->poll_link(port->wire, port->worker->now);
	fw_event_post(port, CORDON_EVENT_LINK, 0, port->link);
	return 0;

err_exit_sad:
	fw_sad_exit(&port->sad);
err_exit_rings:
	rings_exit(port);
	return ret;
}

/**
 * fw_port_disable() - FW_IPC_DISABLE: back to the state before it was enabled
 * @port: port
 *
 * DMA maps and interrupts stay. Frames that the wire hasn't taken and fragments that wait
 * for others are dropped, keys are wiped.
 */
void fw_port_disable(struct fw_port *port)
{
	if (!port->enabled)
		return;
	port->enabled = false;
	fw_queue_destroy_all(port);
	fw_tx_reset(port);
	fw_reassembly_reset(port->reassembly);
	fw_sad_exit(&port->sad);
	fw_spd_free(port->spd);
	port->spd = NULL;
	rings_exit(port);
	state_reset(port);
}

/**
 * fw_port_fail() - the function can't go on
 * @port: port
 * @why: reason
 *
 * Nothing is taken from the driver or handed to it until the function is disabled.
 */
void fw_port_fail(struct fw_port *port, enum cordon_error why)
{
	if (port->failed)
		return;
	port->failed = true;
	fw_ipc_send_failed(port->worker, port->number, why);
}

/**
 * fw_port_poll_link() - look whether the wire has another end
 * @port: port
 * @now: time
 */
void fw_port_poll_link(struct fw_port *port, uint64_t now)
{
	bool link = port->wire->ops->poll_link(port->wire, now);

	if (link == port->link)
		return;
	port->link = link;
	fw_event_post(port, CORDON_EVENT_LINK, 0, link);
}

/**
 * fw_port_set() - CORDON_CMD_PORT_SET
 * @port: port
 * @cfg: configuration, a private copy
 * @done: says what was refused
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_port_set(struct fw_port *port, const struct cordon_port_cfg *cfg,
		     struct cordon_cmd_completion *done)
{
	uint32_t allowed = le32toh(port->port_cap.features) & 0xffff;
	uint32_t mtu = le32toh(cfg->mtu);
	uint64_t mac = mac_number(cfg->mac);

	if (cfg->reserved)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	if (le32toh(cfg->flags) & ~allowed)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_UNSUPPORTED, CORDON_PARAM_FLAGS,
				     allowed, 0);
	if (mtu < CORDON_MTU_MIN || mtu > CORDON_MTU_MAX)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_MTU,
				     CORDON_MTU_MIN, CORDON_MTU_MAX);
	if (!mac || mac & MULTICAST_BIT)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_ADDRESS, 0, 0);
	port->mtu = mtu;
	port->flags = le32toh(cfg->flags);
	port->mac = mac;
	return CORDON_CMD_STATUS_OK;
}

static int number_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/**
 * fw_port_set_filter() - CORDON_CMD_FILTER_SET
 * @port: port
 * @cfg: configuration, a private copy
 * @len: bytes of it, not less than the fixed part
 * @done: says what was refused
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_port_set_filter(struct fw_port *port, const struct cordon_filter_cfg *cfg,
			    uint32_t len, struct cordon_cmd_completion *done)
{
	uint32_t count = le32toh(cfg->count);
	uint64_t need = sizeof(*cfg) + (uint64_t)8 * count;
	struct fw_filter *filter = &port->filter;

	if (cfg->reserved)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	if (count > FW_PORT_ADDRESSES_MAX)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_FULL, CORDON_PARAM_ADDRESS, 0,
				     FW_PORT_ADDRESSES_MAX);
	if (len != need)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_LENGTH, need,
				     need);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *mac = cfg->addresses[i];

		if (mac[6] || mac[7] || !mac_number(mac))
			return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_ADDRESS,
					     0, 0);
	}
	for (uint32_t i = 0; i < count; i++)
		filter->addresses[i] = mac_number(cfg->addresses[i]);
	qsort(filter->addresses, count, sizeof(filter->addresses[0]), number_compare);
	filter->count = count;
	for (uint32_t i = 0; i < 64; i++)
		filter->vlans[i] = le64toh(cfg->vlans[i]);
	return CORDON_CMD_STATUS_OK;
}

/**
 * fw_port_set_rss() - CORDON_CMD_RSS_SET
 * @port: port
 * @cfg: configuration, a private copy
 * @done: says what was refused
 *
 * Return: enum cordon_cmd_status.
 */
uint16_t fw_port_set_rss(struct fw_port *port, const struct cordon_rss_cfg *cfg,
			 struct cordon_cmd_completion *done)
{
	uint16_t pairs = le16toh(port->port_cap.queue_pairs);

	if (!fw_port_offers(port, CORDON_PORT_RSS))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_UNSUPPORTED, CORDON_PARAM_RSS, 0, 0);
	if (cfg->reserved)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	if (le32toh(cfg->hash) & ~CORDON_RSS_ALL)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_FLAGS,
				     CORDON_RSS_ALL, 0);
	for (uint32_t i = 0; i < CORDON_RSS_TABLE_SIZE; i++) {
		if (cfg->table[i] >= pairs)
			return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RSS, 0,
					     pairs - 1u);
	}
	fw_rss_set(&port->rss, le32toh(cfg->hash), cfg->key, cfg->table);
	return CORDON_CMD_STATUS_OK;
}

static bool address_wanted(const struct fw_port *port, uint64_t mac)
{
	const struct fw_filter *filter = &port->filter;

	if (mac == port->mac || mac == BROADCAST)
		return true;
	if (mac & MULTICAST_BIT && port->flags & CORDON_PORT_ALL_MULTICAST)
		return true;
	return bsearch(&mac, filter->addresses, filter->count, sizeof(mac), number_compare);
}

/**
 * fw_port_wants() - is a frame for this port
 * @port: port
 * @p: parsed frame
 *
 * Return: true if address and VLAN pass the filter.
 */
bool fw_port_wants(const struct fw_port *port, const struct fw_pkt *p)
{
	const uint8_t *frame = fw_pkt_data(p);

	if (port->flags & CORDON_PORT_PROMISCUOUS)
		return true;
	if (!address_wanted(port, mac_number(frame)))
		return false;
	if (port->flags & CORDON_PORT_VLAN_FILTER && fw_port_is_tagged(p)) {
		uint32_t vlan = p->vlan_tci & 0xfff;

		return !vlan || port->filter.vlans[vlan / 64] >> (vlan % 64) & 1;
	}
	return true;
}
