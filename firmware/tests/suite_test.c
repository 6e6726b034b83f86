// SPDX-License-Identifier: BSD-3-Clause
/*
 * Each suite through the path: out and in again, with what the wire shows of it.
 */
#include "tests/esp.h"

#include "crypto/suites.h"

struct suite_row {
	const char *desc;
	uint8_t cipher;
	uint8_t key_len;
	uint8_t auth;
	uint8_t auth_key_len;
	uint8_t icv_len;
};

#define CIPHER(name) CORDON_CIPHER_##name
#define AUTH(name) CORDON_AUTH_##name

static const struct suite_row suites[] = {
	{ "GCM 128, 8", CIPHER(AES_GCM), 16, 0, 0, 8 },
	{ "GCM 192, 12", CIPHER(AES_GCM), 24, 0, 0, 12 },
	{ "GCM 256, 16", CIPHER(AES_GCM), 32, 0, 0, 16 },
	{ "GMAC 128", CIPHER(AES_GMAC), 16, 0, 0, 16 },
	{ "GMAC 256", CIPHER(AES_GMAC), 32, 0, 0, 16 },
	{ "CCM 128, 8", CIPHER(AES_CCM), 16, 0, 0, 8 },
	{ "CCM 192, 12", CIPHER(AES_CCM), 24, 0, 0, 12 },
	{ "CCM 256, 16", CIPHER(AES_CCM), 32, 0, 0, 16 },
	{ "ChaCha20-Poly1305", CIPHER(CHACHA20_POLY1305), 32, 0, 0, 16 },
	{ "CBC 128, SHA-1", CIPHER(AES_CBC), 16, AUTH(HMAC_SHA1), 20, 12 },
	{ "CBC 192, SHA-256", CIPHER(AES_CBC), 24, AUTH(HMAC_SHA256), 32, 16 },
	{ "CBC 256, SHA-256 cut to 96", CIPHER(AES_CBC), 32, AUTH(HMAC_SHA256), 32, 12 },
	{ "CBC 128, SHA-384", CIPHER(AES_CBC), 16, AUTH(HMAC_SHA384), 48, 24 },
	{ "CBC 256, SHA-512", CIPHER(AES_CBC), 32, AUTH(HMAC_SHA512), 64, 32 },
	{ "CBC 128, XCBC", CIPHER(AES_CBC), 16, AUTH(AES_XCBC), 16, 12 },
	{ "CBC 128, CMAC", CIPHER(AES_CBC), 16, AUTH(AES_CMAC), 16, 12 },
	{ "CTR 128, SHA-1", CIPHER(AES_CTR), 16, AUTH(HMAC_SHA1), 1, 12 },
	{ "CTR 192, SHA-384", CIPHER(AES_CTR), 24, AUTH(HMAC_SHA384), 48, 24 },
	{ "CTR 256, XCBC", CIPHER(AES_CTR), 32, AUTH(AES_XCBC), 16, 12 },
	{ "NULL, SHA-1", CIPHER(NULL), 0, AUTH(HMAC_SHA1), 20, 12 },
	{ "NULL, SHA-512", CIPHER(NULL), 0, AUTH(HMAC_SHA512), 64, 32 },
	{ "NULL, CMAC", CIPHER(NULL), 0, AUTH(AES_CMAC), 16, 12 },
};

static const struct sa_spec specs[] = {
	{ "tunnel", OUT, PACKET, TUNNEL, 4, 4, 0, 0, 0, 64, 0 },
	{ "transport", OUT, PACKET, TRANSPORT, 6, 6, 0, 0, 0, 64, 0 },
	{ "UDP", OUT, PACKET, TUNNEL, 6, 4, 0, 0, CORDON_SA_ENCAP, 64, 0 },
	{ "ESN", OUT, PACKET, TUNNEL, 4, 6, 0, 0, CORDON_SA_ESN, 64, 0xffffffffull - 5 },
};

static struct fw_sa *suite_sa(const struct sa_spec *spec, const struct suite_row *row, uint8_t direction)
{
	struct fw_sa *sa = sa_make(spec);
	struct cordon_sa_cfg cfg;
	struct fw_sa made = { 0 };

	sa_cfg(&cfg, spec);
	cfg.direction = direction;
	cfg.cipher = row->cipher;
	cfg.key_len = row->key_len;
	cfg.auth = row->auth;
	cfg.auth_key_len = row->auth_key_len;
	cfg.icv_len = row->icv_len;
	memcpy(cfg.key, sa_key(), 32);
	memset(cfg.auth_key, 0x5c, sizeof(cfg.auth_key));
	assert_int_equal(fw_sa_init(&made, &cfg), 0);
	made.state = sa->state;
	made.owner = sa->owner;
	made.event = sa->event;
	sa->ops->key_free(sa->crypto);
	*sa = made;
	sa->ip_id = &sa->own_ip_id;
	return sa;
}

/* What the receiver finds behind the IP header. */
static void check_wire(const char *desc, const struct fw_sa *sa, const uint8_t *iv_before)
{
	const uint8_t *esp = fw_pkt_data(pkt) + pkt->esp;
	uint32_t head = 8u + sa->ops->iv_len;
	uint32_t len = pkt->len - pkt->esp - head - sa->cfg.icv_len;
	uint32_t block = sa->cfg.cipher == CORDON_CIPHER_AES_CBC ? 16 : 4;

	check_eq(desc, len % block, 0);
	if (sa->cfg.cipher == CORDON_CIPHER_NULL || sa->cfg.cipher == CORDON_CIPHER_AES_GMAC)
		check(desc, !memcmp(esp + head, fw_pkt_data(copy) + copy->l3 + 40, 1) || sa->cfg.mode == TUNNEL);
	if (sa->ops->iv_len)
		check(desc, memcmp(esp + 8, iv_before, sa->ops->iv_len) != 0);
	if (sa->ops->iv_len == 8)
		check_eq(desc, fw_get_be32(esp + 12), fw_get_be32(esp + 4));
}

static void test_round_trip(void **unused)
{
	const struct suite_row *row;
	const struct sa_spec *spec;
	struct fw_sa *sa, *peer;
	uint8_t iv[16] = { 0 };
	uint32_t len;

	(void)unused;
	for (row = suites; row < suites + ARRAY_CNT(suites); row++) {
		for (spec = specs; spec < specs + ARRAY_CNT(specs); spec++) {
			sa = suite_sa(spec, row, OUT);
			peer = suite_sa(spec, row, IN);
			for (len = 1; len < 140; len += len < 40 ? 1 : 13) {
				packet_make(pkt, &(struct packet_spec) { .family = spec->inner, .proto = 17, .len = len });
				save();
				check_eq(row->desc, out(sa), CORDON_RESULT_OK);
				check_wire(row->desc, sa, iv);
				memcpy(iv, fw_pkt_data(pkt) + pkt->esp + 8, sizeof(iv));
				check_eq(row->desc, in(peer), CORDON_RESULT_OK);
				check_eq(row->desc, pkt->l3_len, copy->l3_len);
				check(row->desc, !memcmp(fw_pkt_data(pkt) + pkt->l3, fw_pkt_data(copy) + copy->l3, copy->l3_len));
			}
			sa_free(sa);
			sa_free(peer);
		}
	}
}

/* Every bit counts, the upper half of the number that isn't sent too. */
static void test_bits(void **unused)
{
	const struct suite_row *row;
	struct fw_sa *sa, *peer;
	uint32_t bit, bits;

	(void)unused;
	for (row = suites; row < suites + ARRAY_CNT(suites); row++) {
		sa = suite_sa(&specs[3], row, OUT);
		peer = suite_sa(&specs[3], row, IN);
		packet_make(pkt, &(struct packet_spec) { .family = 6, .proto = 17, .len = 9 });
		check_eq(row->desc, out(sa), CORDON_RESULT_OK);
		save();
		bits = 8 * (pkt->len - pkt->esp);
		for (bit = 0; bit < bits; bit++) {
			memcpy(pkt->buf, copy->buf, copy->off + copy->len);
			pkt->off = copy->off;
			pkt->len = copy->len;
			fw_pkt_data(pkt)[copy->esp + bit / 8] ^= (uint8_t)(1 << bit % 8);
			in(peer);
			check(row->desc, pkt->result == CORDON_RESULT_AUTH_FAILED || pkt->result == CORDON_RESULT_REPLAY ||
						 pkt->result == CORDON_RESULT_REPLAY_WINDOW);
		}
		peer->state->seq += 1ull << 32;
		memcpy(pkt->buf, copy->buf, copy->off + copy->len);
		pkt->off = copy->off;
		pkt->len = copy->len;
		check_eq(row->desc, in(peer), CORDON_RESULT_AUTH_FAILED);
		sa_free(sa);
		sa_free(peer);
	}
}

/* The same numbers under another SA with the same key: other IVs, for CBC. */
static void test_cbc_iv(void **unused)
{
	struct fw_sa *one = suite_sa(&specs[0], &suites[9], OUT);
	struct fw_sa *other = suite_sa(&specs[0], &suites[9], OUT);
	uint8_t ivs[2][16];

	(void)unused;
	one->ops->iv(one->crypto, 1, ivs[0]);
	other->ops->iv(other->crypto, 1, ivs[1]);
	assert_memory_not_equal(ivs[0], ivs[1], 16);
	one->ops->iv(one->crypto, 2, ivs[1]);
	assert_memory_not_equal(ivs[0], ivs[1], 16);
	one->ops->iv(one->crypto, 1, ivs[1]);
	assert_memory_equal(ivs[0], ivs[1], 16);
	sa_free(one);
	sa_free(other);
}

/* A packet that isn't genuine goes to the host as it came, also where the text was decrypted before the verdict. */
static void test_crypto_mode_restores(void **unused)
{
	static const struct sa_spec crypto = { "crypto", IN, CRYPTO, TUNNEL, 4, 4, 0, 0, 0, 64, 0 };
	const struct suite_row *row;
	struct fw_sa *sa, *peer;

	(void)unused;
	for (row = suites; row < suites + ARRAY_CNT(suites); row++) {
		sa = suite_sa(&specs[0], row, OUT);
		peer = suite_sa(&crypto, row, IN);
		packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 17, .len = 300 });
		check_eq(row->desc, out(sa), CORDON_RESULT_OK);
		fw_pkt_data(pkt)[pkt->len - 1] ^= 1;
		save();
		check_eq(row->desc, in(peer), CORDON_RESULT_AUTH_FAILED);
		check_eq(row->desc, pkt->len, copy->len);
		check(row->desc, !memcmp(fw_pkt_data(pkt), fw_pkt_data(copy), copy->len));
		sa_free(sa);
		sa_free(peer);
	}
}

static bool iv_fails(const struct fw_crypto_key *key, uint64_t seq, uint8_t *iv)
{
	(void)key;
	(void)seq;
	(void)iv;
	return false;
}

static void test_without_iv_nothing_is_sent(void **unused)
{
	static const struct sa_spec crypto = { "crypto", OUT, CRYPTO, TUNNEL, 4, 4, 0, 0, 0, 64, 0 };
	const struct sa_spec *tried[] = { &specs[0], &crypto };
	struct fw_crypto_ops broken;
	struct fw_sa *sa, *maker;
	uint64_t seq = 1;
	unsigned int i;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(tried); i++) {
		maker = suite_sa(&specs[0], &suites[9], OUT);
		sa = suite_sa(tried[i], &suites[9], OUT);
		broken = *sa->ops;
		broken.iv = iv_fails;
		sa->ops = &broken;
		packet_make(pkt, &(struct packet_spec) { .family = 4, .proto = 17, .len = 300 });
		if (tried[i] == &crypto) {
			check_eq(crypto.desc, out(maker), CORDON_RESULT_OK);
			pkt->sa = sa;
			fw_esp_out_crypto(&pkt, &seq, 1);
			check_eq(crypto.desc, pkt->result, CORDON_RESULT_CRYPTO);
		} else {
			check_eq(specs[0].desc, out(sa), CORDON_RESULT_CRYPTO);
		}
		sa_free(sa);
		sa_free(maker);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_cbc_iv),
		cmocka_unit_test(test_crypto_mode_restores),
		cmocka_unit_test(test_without_iv_nothing_is_sent),
	};

	return cmocka_run_group_tests(tests, esp_start, esp_stop);
}
