/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SAs for tests, and ESP packets made and opened by plain OpenSSL, which share no code with the card's.
 */
#ifndef FW_TESTS_SA_H
#define FW_TESTS_SA_H

#include <openssl/evp.h>

#include "cordon/event.h"
#include "cordon/ring.h"
#include "path/sa.h"
#include "tests/packet.h"

#define SA_SPI 0x1a2b3c4d

/**
 * struct sa_spec - an SA
 * @desc: name of the test's row
 * @direction: CORDON_DIRECTION_*
 * @offload: CORDON_OFFLOAD_*
 * @mode: CORDON_MODE_*
 * @family: outer family
 * @inner: family of the packets in it
 * @key_len: bytes of the key, 0 = 16
 * @icv_len: bytes of the ICV, 0 = 16
 * @flags: CORDON_SA_*
 * @window: replay window
 * @seq: where it begins
 */
struct sa_spec {
	const char *desc;
	uint8_t direction;
	uint8_t offload;
	uint8_t mode;
	uint8_t family;
	uint8_t inner;
	uint8_t key_len;
	uint8_t icv_len;
	uint32_t flags;
	uint32_t window;
	uint64_t seq;
};

/**
 * struct sa_events - what an SA raised
 * @first_use: number of CORDON_EVENT_SA_FIRST_USE
 * @soft: of CORDON_EVENT_SA_SOFT
 * @hard: of CORDON_EVENT_SA_HARD
 * @exhausted: of CORDON_EVENT_SA_EXHAUSTED
 * @neighbour: of CORDON_EVENT_SA_NEIGHBOUR
 */
struct sa_events {
	int first_use;
	int soft;
	int hard;
	int exhausted;
	int neighbour;
};

static inline const uint8_t *sa_key(void)
{
	static const uint8_t key[32] = { 0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76, 0x87, 0x98, 0xa9, 0xba,
					 0xcb, 0xdc, 0xed, 0xfe, 0x0f, 0x01, 0x12, 0x23, 0x34, 0x45, 0x56,
					 0x67, 0x78, 0x89, 0x9a, 0xab, 0xbc, 0xcd, 0xde, 0xef, 0xf0 };

	return key;
}

static inline void sa_event(struct fw_sa *sa, uint16_t type, uint64_t value)
{
	struct sa_events *events = sa->owner;

	assert_int_equal(value, 0);
	events->first_use += type == CORDON_EVENT_SA_FIRST_USE;
	events->soft += type == CORDON_EVENT_SA_SOFT;
	events->hard += type == CORDON_EVENT_SA_HARD;
	events->exhausted += type == CORDON_EVENT_SA_EXHAUSTED;
	events->neighbour += type == CORDON_EVENT_SA_NEIGHBOUR;
}

static inline void sa_cfg(struct cordon_sa_cfg *cfg, const struct sa_spec *spec)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->handle = 0x01000007;
	cfg->flags = spec->flags;
	packet_put16((uint8_t *)&cfg->spi, SA_SPI >> 16);
	packet_put16((uint8_t *)&cfg->spi + 2, SA_SPI & 0xffff);
	cfg->reqid = 42;
	cfg->direction = spec->direction;
	cfg->offload = spec->offload;
	cfg->mode = spec->mode;
	cfg->family = spec->family;
	cfg->cipher = CORDON_CIPHER_AES_GCM;
	cfg->icv_len = spec->icv_len ? spec->icv_len : 16;
	cfg->key_len = spec->key_len ? spec->key_len : 16;
	cfg->replay_window = spec->window;
	cfg->state_len = fw_sa_state_size(spec->window);
	test_hex(spec->family == 4 ? "c0000201" : "20010db8000000000000000000000001", cfg->saddr);
	test_hex(spec->family == 4 ? "c0000202" : "20010db8000000000000000000000002", cfg->daddr);
	test_hex("0200000000d1", cfg->next_hop.daddr);
	test_hex("0200000000d2", cfg->next_hop.saddr);
	cfg->next_hop.valid = 1;
	cfg->next_hop.hop_limit = 57;
	memcpy(cfg->key, sa_key(), cfg->key_len);
	memcpy(cfg->salt, "\xca\xfe\x12\x34", 4);
}

/** sa_make() - an SA with a state block */
static inline struct fw_sa *sa_make(const struct sa_spec *spec)
{
	struct fw_sa *sa = calloc(1, sizeof(*sa));
	struct cordon_sa_cfg cfg;
	size_t size = fw_sa_state_size(spec->window);

	assert_non_null(sa);
	sa_cfg(&cfg, spec);
	assert_int_equal(fw_sa_init(sa, &cfg), 0);
	sa->state = aligned_alloc(64, (size + 63) / 64 * 64);
	assert_non_null(sa->state);
	memset(sa->state, 0, size);
	sa->state->seq = spec->seq;
	sa->state->soft_packets = UINT64_MAX;
	sa->state->hard_packets = UINT64_MAX;
	sa->state->soft_bytes = UINT64_MAX;
	sa->state->hard_bytes = UINT64_MAX;
	packet_put16((uint8_t *)&sa->state->encap_sport, 4500);
	packet_put16((uint8_t *)&sa->state->encap_dport, 4501);
	sa->owner = calloc(1, sizeof(struct sa_events));
	assert_non_null(sa->owner);
	sa->event = sa_event;
	return sa;
}

static inline struct sa_events *sa_events(struct fw_sa *sa)
{
	return sa->owner;
}

static inline void sa_free(struct fw_sa *sa)
{
	free(sa->state);
	free(sa->owner);
	fw_sa_exit(sa);
	free(sa);
}

/** sa_drops() - drops that the block counts for a reason; Return: number */
static inline uint64_t sa_drops(const struct fw_sa *sa, enum cordon_result result)
{
	return sa->state->drops[result - CORDON_SA_DROP_FIRST];
}

static inline const EVP_CIPHER *sa_cipher(const struct sa_spec *spec)
{
	switch (spec->key_len) {
	case 24:
		return EVP_aes_192_gcm();
	case 32:
		return EVP_aes_256_gcm();
	default:
		return EVP_aes_128_gcm();
	}
}

/**
 * sa_crypt() - RFC 4106 by plain OpenSSL
 * @spec: SA
 * @encrypt: encrypt and write the ICV, or decrypt and verify it
 * @esp: ESP header, IV, text, ICV
 * @len: bytes of the text
 * @seq: whole number
 *
 * Return: true if it was done, and the ICV was right.
 */
static inline bool sa_crypt(const struct sa_spec *spec, bool encrypt, uint8_t *esp, uint32_t len, uint64_t seq)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int icv_len = spec->icv_len ? spec->icv_len : 16;
	uint8_t nonce[12] = { 0xca, 0xfe, 0x12, 0x34 };
	uint8_t aad[12];
	int aad_len = 8;
	bool ok;
	int n;

	assert_non_null(ctx);
	memcpy(nonce + 4, esp + 8, 8);
	memcpy(aad, esp, 8);
	if (spec->flags & CORDON_SA_ESN) {
		packet_put16(aad + 4, (uint32_t)(seq >> 48));
		packet_put16(aad + 6, (uint32_t)(seq >> 32));
		memcpy(aad + 8, esp + 4, 4);
		aad_len = 12;
	}
	assert_int_equal(EVP_CipherInit_ex(ctx, sa_cipher(spec), NULL, sa_key(), nonce, encrypt), 1);
	if (!encrypt)
		assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, icv_len, esp + 16 + len), 1);
	assert_int_equal(EVP_CipherUpdate(ctx, NULL, &n, aad, aad_len), 1);
	assert_int_equal(EVP_CipherUpdate(ctx, esp + 16, &n, esp + 16, (int)len), 1);
	ok = EVP_CipherFinal_ex(ctx, esp + 16 + n, &n) == 1;
	if (encrypt)
		assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, icv_len, esp + 16 + len), 1);
	EVP_CIPHER_CTX_free(ctx);
	return ok;
}

/**
 * sa_seal() - the frame of an ESP packet with any text
 * @spec: SA
 * @p: packet
 * @seq: whole number
 * @text: text with padding, pad length and next header
 * @len: bytes of it
 */
static inline void sa_seal(const struct sa_spec *spec, struct fw_pkt *p, uint64_t seq, const void *text, uint32_t len)
{
	uint32_t udp_len = spec->flags & CORDON_SA_ENCAP ? 8 : 0;
	struct packet_spec outer = {
		.family = spec->family,
		.proto = udp_len ? 17 : 50,
		.len = udp_len + 16 + len + (spec->icv_len ? spec->icv_len : 16),
	};
	uint8_t *esp;

	packet_make(p, &outer);
	p->esp = (uint16_t)(p->l4 + udp_len);
	esp = fw_pkt_data(p) + p->esp;
	packet_put16(esp, SA_SPI >> 16);
	packet_put16(esp + 2, SA_SPI & 0xffff);
	packet_put16(esp + 4, (uint32_t)(seq >> 16));
	packet_put16(esp + 6, (uint32_t)seq);
	memcpy(esp + 16, text, len);
	assert_true(sa_crypt(spec, true, esp, len, seq));
}

#endif
