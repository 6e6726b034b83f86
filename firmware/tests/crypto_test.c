// SPDX-License-Identifier: BSD-3-Clause
/*
 * Engines: known answers, each other's results, and what becomes of forged packets.
 */
#include "crypto/crypto.c"

#include "tests/test.h"

static const struct fw_crypto_ops *const engines[] = {
	&fw_openssl_aead[0],
#ifdef HAVE_IPSEC_MB
	&fw_ipsec_mb_gcm,
#endif
};

static struct fw_crypto_key *key_make(const struct fw_crypto_ops *ops, const uint8_t *key, size_t key_len, size_t auth_key_len,
				      const uint8_t *salt, size_t icv_len)
{
	const struct fw_crypto_secret secret = { key, key_len, key, auth_key_len, salt, icv_len };

	return ops->key_alloc(ops, &secret);
}

static int start(void **unused)
{
	(void)unused;
	return fw_crypto_init();
}

static void test_find(void **unused)
{
	(void)unused;
	assert_non_null(fw_crypto_find(CORDON_CIPHER_AES_GCM, CORDON_AUTH_NONE));
	assert_int_equal(fw_crypto_find(CORDON_CIPHER_AES_CBC, CORDON_AUTH_HMAC_SHA1)->auth, CORDON_AUTH_HMAC_SHA1);
	assert_null(fw_crypto_find(CORDON_CIPHER_AES_GCM, CORDON_AUTH_HMAC_SHA1));
	assert_null(fw_crypto_find(CORDON_CIPHER_AES_CBC, CORDON_AUTH_NONE));
	assert_null(fw_crypto_find(0, 0));
	assert_null(fw_crypto_find(255, 0));
	assert_null(fw_crypto_find(CORDON_CIPHER_NULL, 255));
	assert_int_equal(fw_crypto_selftest(), 0);
}

/* Engines that are broken in one way each. */
static const struct fw_crypto_ops *broken_base;

static void broken_encrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	broken_base->encrypt(key, ops, count);
	ops[0].data[ops[0].len - 1] ^= 1;
}

static void broken_icv(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	broken_base->encrypt(key, ops, count);
	ops[0].icv[15] ^= 1;
}

static void broken_decrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	broken_base->decrypt(key, ops, count);
	ops[0].data[0] ^= 1;
}

static void broken_verify(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	broken_base->decrypt(key, ops, count);
	ops[0].ok = true;
}

static void test_selftest(void **unused)
{
	struct fw_crypto_ops broken;
	unsigned int i;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(engines); i++) {
		broken_base = engines[i];
		check_eq(engines[i]->name, fw_crypto_selftest_suite(engines[i]), 0);
		broken = *engines[i];
		broken.encrypt = broken_encrypt;
		check("cipher text", fw_crypto_selftest_suite(&broken) == -EIO);
		broken.encrypt = broken_icv;
		check("ICV", fw_crypto_selftest_suite(&broken) == -EIO);
		broken = *engines[i];
		broken.decrypt = broken_decrypt;
		check("plain text", fw_crypto_selftest_suite(&broken) == -EIO);
		broken.decrypt = broken_verify;
		check("takes everything for genuine", fw_crypto_selftest_suite(&broken) == -EIO);
	}
}

/* draft-mcgrew-gcm-test-01, the first case: a whole ESP payload with an extended sequence number. */
static void test_rfc4106(void **unused)
{
	uint8_t key[16], key_salt[4], nonce[8], plain_esp[72], sealed[72], ad[12], icv[16], data[72], made[16];
	struct fw_crypto_op op = { .data = data, .len = 72, .iv = nonce, .aad = ad, .aad_len = 12, .icv = made };
	struct fw_crypto_key *k;
	unsigned int i;

	(void)unused;
	test_hex("4c80cdefbb5d10da906ac73c3613a634", key);
	test_hex("2e443b68", key_salt);
	test_hex("4956ed7e3b244cfe", nonce);
	test_hex("000043218765432100000000", ad);
	test_hex("45000048699a000080114db7c0a80102c0a801010a9bf15638d3010000010000"
		 "00000000045f736970045f756470037369700963796265726369747902646b00"
		 "0021000101020201", plain_esp);
	test_hex("fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34"
		 "cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce"
		 "61bc17d768fd9732", sealed);
	test_hex("459018148f6cbe722fd04796562dfdb4", icv);
	for (i = 0; i < ARRAY_CNT(engines); i++) {
		k = key_make(engines[i], key, 16, 0, key_salt, 16);
		assert_non_null(k);
		memcpy(data, plain_esp, sizeof(data));
		engines[i]->encrypt(k, &op, 1);
		check(engines[i]->name, !memcmp(data, sealed, sizeof(data)));
		check(engines[i]->name, !memcmp(made, icv, sizeof(icv)));
		engines[i]->decrypt(k, &op, 1);
		check(engines[i]->name, op.ok && !memcmp(data, plain_esp, sizeof(data)));
		engines[i]->key_free(k);
	}
}

static void test_lengths(void **unused)
{
	static const struct {
		const char *desc;
		size_t key_len;
		size_t auth_key_len;
		size_t icv_len;
		bool ok;
	} rows[] = {
		{ "128 bits", 16, 0, 16, true },  { "192 bits", 24, 0, 16, true },	 { "256 bits", 32, 0, 16, true },
		{ "ICV of 8", 16, 0, 8, true },	  { "ICV of 12", 32, 0, 12, true },	 { "ICV of 4", 16, 0, 4, false },
		{ "ICV of 0", 16, 0, 0, false },  { "ICV of 17", 16, 0, 17, false },	 { "no key", 0, 0, 16, false },
		{ "with salt", 20, 0, 16, false }, { "two keys", 16, 20, 16, false }, { "512 bits", 64, 0, 16, false },
	};
	uint8_t key[64] = { 1 };
	struct fw_crypto_key *k;
	unsigned int i, j;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(engines); i++) {
		for (j = 0; j < ARRAY_CNT(rows); j++) {
			k = key_make(engines[i], key, rows[j].key_len, rows[j].auth_key_len, key, rows[j].icv_len);
			check(rows[j].desc, !!k == rows[j].ok);
			engines[i]->key_free(k);
		}
		engines[i]->key_free(NULL);
	}
}

#define LEN_MAX 9216
#define ENGINES ARRAY_CNT(engines)

/* One burst, as each engine has it. */
static uint8_t data[ENGINES][FW_CRYPTO_BURST][LEN_MAX];
static uint8_t was[FW_CRYPTO_BURST][LEN_MAX];
static uint8_t icvs[ENGINES][FW_CRYPTO_BURST][16];
static uint8_t ivs[FW_CRYPTO_BURST][8];
static uint8_t ads[FW_CRYPTO_BURST][12];
static struct fw_crypto_op burst[ENGINES][FW_CRYPTO_BURST];

static void burst_make(unsigned int round)
{
	unsigned int e, i;
	uint32_t len;

	test_fill(ivs, sizeof(ivs));
	test_fill(ads, sizeof(ads));
	memset(icvs, 0, sizeof(icvs));
	for (i = 0; i < FW_CRYPTO_BURST; i++) {
		len = round < 9 ? i * 4 + round : (uint32_t)(test_random() % LEN_MAX);
		test_fill(was[i], len);
		for (e = 0; e < ENGINES; e++) {
			memcpy(data[e][i], was[i], len);
			burst[e][i] = (struct fw_crypto_op) {
				.data = data[e][i], .len = len, .aad_len = i % 2 ? 8 : 12, .iv = ivs[i], .aad = ads[i], .icv = icvs[e][i],
			};
		}
	}
}

/* Packet @i is forged in its text, additional data or ICV, or isn't. */
static bool burst_forge(unsigned int i, size_t icv_len)
{
	bool forged = false;
	unsigned int e;

	if (i % 5 == 2)
		ads[i][7] ^= 1;
	for (e = 0; e < ENGINES; e++) {
		burst[e][i].restore = i % 3;
		if (i % 5 == 1 && burst[e][i].len)
			data[e][i][burst[e][i].len - 1] ^= 0x40;
		if (i % 5 == 3)
			icvs[e][i][icv_len - 1] ^= 1;
		forged = i % 5 == 2 || i % 5 == 3 || (i % 5 == 1 && burst[e][i].len);
	}
	memcpy(was[i], data[0][i], burst[0][i].len);
	return forged;
}

/* Bursts of packets of all lengths: the engines agree, and find out what is forged. */
static void test_engines_agree(void **unused)
{
	struct fw_crypto_key *keys[ENGINES];
	bool forged[FW_CRYPTO_BURST];
	unsigned int round, e, i;
	uint8_t key[32];
	size_t icv_len;

	(void)unused;
	for (round = 0; round < 27; round++) {
		icv_len = 8 + 4 * (round / 3 % 3);
		test_fill(key, sizeof(key));
		burst_make(round);
		for (e = 0; e < ENGINES; e++) {
			keys[e] = key_make(engines[e], key, 16 + 8 * (round % 3), 0, key, icv_len);
			assert_non_null(keys[e]);
			engines[e]->encrypt(keys[e], burst[e], FW_CRYPTO_BURST);
		}
		for (i = 0; i < FW_CRYPTO_BURST; i++) {
			for (e = 0; e < ENGINES; e++) {
				check(engines[e]->name, burst[e][i].ok);
				check(engines[e]->name, burst[e][i].len < 16 || memcmp(data[e][i], was[i], burst[e][i].len));
				check(engines[e]->name, !memcmp(data[e][i], data[0][i], burst[e][i].len));
				check(engines[e]->name, !memcmp(icvs[e][i], icvs[0][i], 16));
			}
			forged[i] = burst_forge(i, icv_len);
		}
		for (e = 0; e < ENGINES; e++) {
			engines[e]->decrypt(keys[e], burst[e], FW_CRYPTO_BURST);
			engines[e]->key_free(keys[e]);
		}
		for (i = 0; i < FW_CRYPTO_BURST; i++) {
			for (e = 0; e < ENGINES; e++) {
				check_eq(engines[e]->name, burst[e][i].ok, !forged[i]);
				if (!forged[i])
					check(engines[e]->name, !memcmp(data[e][i], data[0][i], burst[e][i].len));
				else if (burst[e][i].restore)
					check(engines[e]->name, !memcmp(data[e][i], was[i], burst[e][i].len));
			}
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),	cmocka_unit_test(test_selftest),      cmocka_unit_test(test_rfc4106),
		cmocka_unit_test(test_lengths), cmocka_unit_test(test_engines_agree),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
