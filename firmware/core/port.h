/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port: one PCI function, its tables and its wire.
 */
#ifndef CORE_PORT_H
#define CORE_PORT_H

#include <endian.h>

#include "board/ipc.h"
#include "cordon/cmd.h"
#include "cordon/ipsec.h"
#include "cordon/regs.h"
#include "core/mem.h"
#include "core/notify.h"
#include "core/sad.h"
#include "path/reassembly.h"
#include "path/rss.h"
#include "path/spd.h"
#include "wire/capture.h"
#include "wire/wire.h"

struct fw_queue;
struct fw_tx;
struct fw_worker;

#define FW_PORT_ADDRESSES_MAX 256

/**
 * struct fw_filter - address and VLAN filter
 * @count: addresses
 * @addresses: sorted, each as a number
 * @vlans: a bit for each VLAN
 */
struct fw_filter {
	uint32_t count;
	uint64_t addresses[FW_PORT_ADDRESSES_MAX];
	uint64_t vlans[64];
};

/**
 * struct fw_port - a port
 * @worker: the thread that owns it
 * @number: number within the firmware process
 * @name: name
 * @vectors: interrupt vectors
 * @perm_mac: permanent address
 * @limits: what the card doesn't have
 * @kick: eventfd of the kick register
 * @doorbells: doorbell page
 * @wakes: wake page
 * @irqs: eventfd of each vector, or -1
 * @mem: memory of the guest
 * @wire: what it is plugged into
 * @capture: capture of the wire, or NULL
 * @link: the wire has another end
 * @enabled: the function is enabled; all that follows is set up only then
 * @failed: the function can't go on until it is disabled
 * @admin: doorbell line of commands and events
 * @cmd_sq: command ring
 * @cmd_cq: command completion ring
 * @event_ring: event ring
 * @cmd_cons: commands taken
 * @event_overflow: events were lost, and the driver doesn't know
 * @event_link_due: the overflow was told, the link's state behind it not yet
 * @port_cap: capability, in the contract's byte order
 * @ipsec_cap: capability
 * @mtu: of the configuration
 * @flags: CORDON_PORT_*
 * @mac: address, as a number
 * @filter: filter
 * @rss: RSS
 * @queues: queue pairs
 * @queue_next: queue pair that may send next
 * @sad: SAs
 * @spd: policies
 * @tx: packets on their way to the wire
 * @reassembly: fragments of ESP packets
 * @stats: counters, in the host's byte order
 */
struct fw_port {
	struct fw_worker *worker;
	uint32_t number;
	char name[FW_IPC_NAME_MAX];
	uint32_t vectors;
	uint8_t perm_mac[6];
	struct fw_ipc_limits limits;
	int kick;
	const struct cordon_doorbell *doorbells;
	struct cordon_wake *wakes;
	int irqs[CORDON_VECTORS_MAX];
	struct fw_mem mem;
	struct fw_wire *wire;
	struct fw_capture *capture;
	bool link;

	bool enabled;
	bool failed;
	struct fw_notify admin;
	struct fw_mem_ring cmd_sq;
	struct fw_mem_ring cmd_cq;
	struct fw_mem_ring event_ring;
	uint32_t cmd_cons;
	bool event_overflow;
	bool event_link_due;
	struct cordon_cap_port port_cap;
	struct cordon_cap_ipsec ipsec_cap;
	uint32_t mtu;
	uint32_t flags;
	uint64_t mac;
	struct fw_filter filter;
	struct fw_rss rss;
	struct fw_queue *queues[CORDON_QUEUE_PAIRS_MAX];
	uint32_t queue_next;
	struct fw_sad sad;
	struct fw_spd *spd;
	struct fw_tx *tx;
	struct fw_reassembly *reassembly;
	struct cordon_port_stats stats;
};

int fw_port_create(struct fw_worker *worker, const struct fw_ipc_msg *msg, const int *fds,
		   uint32_t fd_count, struct fw_port **out);
void fw_port_destroy(struct fw_port *port);
int fw_port_enable(struct fw_port *port, uint64_t cmd_sq, uint64_t cmd_cq, uint64_t event_ring,
		   uint32_t ring_sizes);
void fw_port_disable(struct fw_port *port);
void fw_port_fail(struct fw_port *port, enum cordon_error why);
void fw_port_poll_link(struct fw_port *port, uint64_t now);

uint16_t fw_port_set(struct fw_port *port, const struct cordon_port_cfg *cfg,
		     struct cordon_cmd_completion *done);
uint16_t fw_port_set_filter(struct fw_port *port, const struct cordon_filter_cfg *cfg,
			    uint32_t len, struct cordon_cmd_completion *done);
uint16_t fw_port_set_rss(struct fw_port *port, const struct cordon_rss_cfg *cfg,
			 struct cordon_cmd_completion *done);
bool fw_port_wants(const struct fw_port *port, const struct fw_pkt *p);

/** fw_port_works() - Return: the port is enabled and works */
static inline bool fw_port_works(const struct fw_port *port)
{
	return port->enabled && !port->failed;
}

/** fw_port_offers() - Return: the capability has all of these features */
static inline bool fw_port_offers(const struct fw_port *port, uint32_t features)
{
	return !(features & ~le32toh(port->port_cap.features));
}

/** fw_port_is_tagged() - Return: the outermost tag of a parsed frame is an 802.1Q tag */
static inline bool fw_port_is_tagged(const struct fw_pkt *p)
{
	const uint8_t *type = fw_pkt_data(p) + 12;

	return p->vlan_cnt && type[0] == 0x81 && type[1] == 0x00;
}

/** fw_port_l2_len() - Return: bytes before the payload of a frame of 14 bytes or more */
static inline uint32_t fw_port_l2_len(const struct fw_pkt *p)
{
	const uint8_t *frame = fw_pkt_data(p);
	uint32_t len = 14;

	for (int i = 0; i < 2 && p->len - len >= 4; i++, len += 4) {
		uint32_t type = (uint32_t)frame[len - 2] << 8 | frame[len - 1];

		if (type != 0x8100 && type != 0x88a8)
			break;
	}
	return len;
}

/** fw_port_count_rx() - count a frame that isn't handed to the host */
static inline void fw_port_count_rx(struct fw_port *port, enum cordon_result why)
{
	port->stats.rx_drops[why]++;
}

/** fw_port_count_tx() - count frames that don't leave */
static inline void fw_port_count_tx(struct fw_port *port, enum cordon_result why, uint32_t count)
{
	port->stats.tx_drops[why] += count;
}

#endif
