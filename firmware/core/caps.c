// SPDX-License-Identifier: BSD-3-Clause
/*
 * What the card can do, less what limits take away. Commands are judged by the same records that
 * the driver gets, so that published limits are the real ones.
 */
#include <endian.h>
#include <string.h>

#include "core/caps.h"
#include "core/port.h"
#include "crypto/crypto.h"

#define SA_MAX 65536u
#define POLICY_MAX 16384u

#define PORT_FEATURES (CORDON_PORT_RX_ENABLE | CORDON_PORT_PROMISCUOUS | \
		       CORDON_PORT_ALL_MULTICAST | CORDON_PORT_VLAN_STRIP | \
		       CORDON_PORT_VLAN_FILTER | CORDON_PORT_RX_CSUM | CORDON_PORT_RSS | \
		       CORDON_PORT_ESP | CORDON_FEATURE_TX_CSUM | CORDON_FEATURE_TSO | \
		       CORDON_FEATURE_USO | CORDON_FEATURE_TX_VLAN)
/* A NIC without these isn't one. */
#define PORT_ALWAYS (CORDON_PORT_RX_ENABLE | CORDON_PORT_PROMISCUOUS | CORDON_PORT_ALL_MULTICAST)

#define SA_FLAGS (CORDON_SA_ESN | CORDON_SA_ENCAP | CORDON_SA_NO_ECN | CORDON_SA_DECAP_DSCP | \
		  CORDON_SA_NO_DSCP | CORDON_SA_NO_PMTU_DISC | CORDON_SA_SEQ_MAY_WRAP)

/* Bit n - 1: n bytes. */
#define AES_KEY_BYTES(bit) (1ull << (16 + 8 * (bit) - 1))

#define BIT(n) (1u << (n))

static uint32_t least(uint32_t value, uint32_t limit)
{
	return limit && limit < value ? limit : value;
}

static void port_init(struct cordon_cap_port *cap, const struct fw_ipc_limits *limits)
{
	uint32_t features = PORT_FEATURES & ~(limits->no_features & ~PORT_ALWAYS);

	memset(cap, 0, sizeof(*cap));
	cap->cap.type = htole16(CORDON_CAP_PORT);
	cap->cap.len = htole16(sizeof(*cap));
	cap->features = htole32(features);
	cap->queue_pairs = htole16((uint16_t)least(CORDON_QUEUE_PAIRS_MAX, limits->queue_pairs));
	cap->ring_log2 = htole16(CORDON_RING_LOG2_MAX);
	cap->mtu = htole32(CORDON_MTU_MAX);
	cap->addresses = htole16(FW_PORT_ADDRESSES_MAX);
}

static bool is_aes(unsigned int cipher)
{
	return cipher != CORDON_CIPHER_NULL && cipher != CORDON_CIPHER_CHACHA20_POLY1305;
}

/* An algorithm that has lost all of its key or ICV lengths isn't there. */
static void take_away(struct cordon_algorithm *algorithm, bool gone, uint64_t keys, uint32_t icvs)
{
	uint64_t had_keys = le64toh(algorithm->key_bytes);
	uint32_t had_icvs = le32toh(algorithm->icv_bytes);

	algorithm->key_bytes = htole64(had_keys & ~keys);
	algorithm->icv_bytes = htole32(had_icvs & ~icvs);
	if (gone || (had_keys && !(had_keys & ~keys)) || (had_icvs && !(had_icvs & ~icvs)))
		memset(algorithm, 0, sizeof(*algorithm));
}

static bool is_pair(const struct cordon_algorithm *cipher)
{
	return cipher->present && !cipher->icv_bytes;
}

/* A cipher that needs an authentication, and an authentication, are nothing without each other. */
static void widows_take_away(struct cordon_cap_ipsec *cap)
{
	bool auth = false, pair = false;
	unsigned int i;

	for (i = 0; i < CORDON_AUTH_CNT; i++)
		auth |= cap->auths[i].present;
	for (i = 0; i < CORDON_CIPHER_CNT; i++) {
		if (!auth && is_pair(&cap->ciphers[i]))
			memset(&cap->ciphers[i], 0, sizeof(cap->ciphers[i]));
		pair |= is_pair(&cap->ciphers[i]);
	}
	if (!pair)
		memset(cap->auths, 0, sizeof(cap->auths));
}

/* Return: true if a suite is left. */
static bool algorithms_init(struct cordon_cap_ipsec *cap, const struct fw_ipc_limits *limits)
{
	uint64_t aes_keys = 0;
	bool any = false;
	unsigned int i;

	fw_crypto_limits(cap->ciphers, cap->auths);
	for (i = 0; i < 3; i++)
		if (limits->no_key_bits & BIT(i))
			aes_keys |= AES_KEY_BYTES(i);
	for (i = 0; i < CORDON_AUTH_CNT; i++)
		take_away(&cap->auths[i], limits->no_auths & BIT(i), 0, limits->no_icv_bytes);
	for (i = 0; i < CORDON_CIPHER_CNT; i++)
		take_away(&cap->ciphers[i], limits->no_ciphers & BIT(i), is_aes(i) ? aes_keys : 0,
			  limits->no_icv_bytes);
	widows_take_away(cap);
	for (i = 0; i < CORDON_CIPHER_CNT; i++)
		any |= cap->ciphers[i].present;
	return any;
}

static void ipsec_init(struct cordon_cap_ipsec *cap, const struct fw_ipc_limits *limits)
{
	uint32_t modes = (BIT(CORDON_MODE_TRANSPORT) | BIT(CORDON_MODE_TUNNEL) |
			  BIT(CORDON_MODE_BEET)) &
			 ~limits->no_modes;
	uint32_t offloads = (BIT(CORDON_OFFLOAD_CRYPTO) | BIT(CORDON_OFFLOAD_PACKET)) &
			    ~limits->no_offloads;
	uint32_t families = (BIT(CORDON_FAMILY_INET) | BIT(CORDON_FAMILY_INET6)) &
			    ~limits->no_families;

	memset(cap, 0, sizeof(*cap));
	/* A card that lacks all of one of these does no IPsec. */
	if (!modes || !offloads || !families || !algorithms_init(cap, limits))
		return;
	cap->cap.type = htole16(CORDON_CAP_IPSEC);
	cap->cap.len = htole16(sizeof(*cap));
	cap->sa_max = htole32(least(SA_MAX, limits->sa_max));
	cap->policy_max = htole32(least(POLICY_MAX, limits->policy_max));
	cap->modes = htole32(modes);
	cap->offloads = htole32(offloads);
	cap->sa_flags = htole32(SA_FLAGS & ~limits->no_sa_flags);
	cap->replay_window_max = htole32(least(CORDON_REPLAY_WINDOW_MAX,
					       limits->replay_window_max));
	cap->families = htole32(families);
}

/**
 * fw_caps_init() - make the capabilities of a port
 * @port: port with its limits
 */
void fw_caps_init(struct fw_port *port)
{
	port_init(&port->port_cap, &port->limits);
	ipsec_init(&port->ipsec_cap, &port->limits);
	if (!port->ipsec_cap.cap.type)
		port->port_cap.features &= ~htole32(CORDON_PORT_ESP);
}

/**
 * fw_caps_write() - records for CORDON_CMD_QUERY_CAPS
 * @port: port
 * @out: FW_CAPS_SIZE_MAX bytes
 *
 * Return: bytes written.
 */
uint32_t fw_caps_write(const struct fw_port *port, uint8_t *out)
{
	uint32_t len = sizeof(port->port_cap);

	memcpy(out, &port->port_cap, sizeof(port->port_cap));
	if (port->ipsec_cap.cap.type) {
		memcpy(out + len, &port->ipsec_cap, sizeof(port->ipsec_cap));
		len += (uint32_t)sizeof(port->ipsec_cap);
	}
	return len;
}
