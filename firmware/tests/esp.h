/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of ESP have in common: one packet, a copy of what it was, and the shapes of SAs.
 */
#ifndef FW_TESTS_ESP_H
#define FW_TESTS_ESP_H

#include "path/bytes.h"
#include "path/esp.h"
#include "tests/sa.h"

#define OUT CORDON_DIRECTION_OUT
#define IN CORDON_DIRECTION_IN
#define PACKET CORDON_OFFLOAD_PACKET
#define CRYPTO CORDON_OFFLOAD_CRYPTO
#define TRANSPORT CORDON_MODE_TRANSPORT
#define TUNNEL CORDON_MODE_TUNNEL

static struct fw_pkt *pkt;
static struct fw_pkt *copy;

static const struct sa_spec shapes[] = {
	{ "transport 4", OUT, PACKET, TRANSPORT, 4, 4, 16, 16, 0, 64, 0 },
	{ "transport 6", OUT, PACKET, TRANSPORT, 6, 6, 16, 16, 0, 64, 0 },
	{ "tunnel 4in4", OUT, PACKET, TUNNEL, 4, 4, 16, 16, 0, 64, 0 },
	{ "tunnel 6in6", OUT, PACKET, TUNNEL, 6, 6, 16, 16, 0, 64, 0 },
	{ "tunnel 6in4", OUT, PACKET, TUNNEL, 4, 6, 16, 16, 0, 64, 0 },
	{ "tunnel 4in6", OUT, PACKET, TUNNEL, 6, 4, 16, 16, 0, 64, 0 },
	{ "ESN over the wrap", OUT, PACKET, TRANSPORT, 4, 4, 16, 16, CORDON_SA_ESN, 64, 0xffffffffull - 30 },
	{ "ESN over the second wrap", OUT, PACKET, TUNNEL, 6, 6, 32, 16, CORDON_SA_ESN, 64, 0x1ffffffffull - 30 },
	{ "ESN, both halves", OUT, PACKET, TUNNEL, 4, 4, 16, 16, CORDON_SA_ESN, 64, 0x1122334455667788ull },
	{ "UDP transport 4", OUT, PACKET, TRANSPORT, 4, 4, 16, 16, CORDON_SA_ENCAP, 64, 0 },
	{ "UDP transport 6", OUT, PACKET, TRANSPORT, 6, 6, 16, 16, CORDON_SA_ENCAP, 64, 0 },
	{ "UDP tunnel 4in4", OUT, PACKET, TUNNEL, 4, 4, 16, 16, CORDON_SA_ENCAP | CORDON_SA_ESN, 64, 0 },
	{ "UDP tunnel 4in6", OUT, PACKET, TUNNEL, 6, 4, 32, 16, CORDON_SA_ENCAP, 64, 0 },
	{ "192-bit key", OUT, PACKET, TUNNEL, 4, 4, 24, 16, 0, 64, 0 },
	{ "256-bit key", OUT, PACKET, TRANSPORT, 6, 6, 32, 16, 0, 4096, 0 },
	{ "ICV of 8", OUT, PACKET, TUNNEL, 4, 4, 16, 8, 0, 64, 0 },
	{ "ICV of 12", OUT, PACKET, TRANSPORT, 4, 4, 32, 12, CORDON_SA_ESN, 64, 0 },
};

/** peer_of() - the SA at the other end */
static inline struct fw_sa *peer_of(const struct sa_spec *spec)
{
	struct sa_spec peer = *spec;

	peer.direction = IN;
	return sa_make(&peer);
}

/** save() - keep a copy */
static inline void save(void)
{
	uint8_t *buf = copy->buf;

	*copy = *pkt;
	copy->buf = buf;
	memcpy(buf, pkt->buf, pkt->off + pkt->len);
}

/** out() - send the packet through an SA; Return: its result */
static inline enum cordon_result out(struct fw_sa *sa)
{
	pkt->sa = sa;
	fw_esp_out_packet(&pkt, 1);
	return pkt->result;
}

/** in() - as the frame comes from the wire; Return: its result */
static inline enum cordon_result in(struct fw_sa *sa)
{
	uint16_t esp;

	fw_parse_frame(pkt);
	esp = pkt->esp;
	if (sa->cfg.flags & CORDON_SA_ENCAP && pkt->l4_proto == 17)
		esp = (uint16_t)(pkt->l4 + 8);
	pkt->esp = esp;
	pkt->sa = sa;
	pkt->flags = 0;
	fw_esp_in(&pkt, 1);
	return pkt->result;
}

/** esp_start() - group set-up */
static inline int esp_start(void **unused)
{
	(void)unused;
	pkt = packet_alloc();
	copy = packet_alloc();
	return fw_crypto_init();
}

/** esp_stop() - group tear-down */
static inline int esp_stop(void **unused)
{
	(void)unused;
	packet_free(pkt);
	packet_free(copy);
	return 0;
}

#endif
