// SPDX-License-Identifier: BSD-3-Clause
/*
 * Project Wycheproof's vectors through each engine.
 */
#include <jansson.h>
#include <stdio.h>

#include "cordon/ipsec.h"
#include "crypto/suites.h"
#include "tests/test.h"

#define DATA_MAX 4096

static size_t bytes(const json_t *test, const char *name, uint8_t *to)
{
	const char *hex = json_string_value(json_object_get(test, name));

	assert_non_null(hex);
	assert_true(strlen(hex) / 2 <= DATA_MAX);
	return test_hex(hex, to);
}

/*
 * A vector of a combined suite. Salt and IV are the nonce; a suite with other lengths of them has vectors that aren't for it.
 */
static void run(const struct fw_crypto_ops *ops, unsigned int salt_len, const json_t *test)
{
	static uint8_t key[DATA_MAX], iv[DATA_MAX], aad[DATA_MAX], msg[DATA_MAX], ct[DATA_MAX], tag[DATA_MAX], data[DATA_MAX];
	bool valid = !strcmp(json_string_value(json_object_get(test, "result")), "valid");
	struct fw_crypto_secret secret = { .key = key, .key_len = bytes(test, "key", key), .salt = iv, .icv_len = 16 };
	uint8_t made[16];
	struct fw_crypto_op op = { .data = data, .iv = iv + salt_len, .aad = aad, .icv = made };
	struct fw_crypto_key *k;
	char desc[64];

	snprintf(desc, sizeof(desc), "%s, tcId %lld", ops->name, (long long)json_integer_value(json_object_get(test, "tcId")));
	check_eq(desc, bytes(test, "iv", iv), salt_len + 8);
	op.aad_len = (uint32_t)bytes(test, "aad", aad);
	op.len = (uint32_t)bytes(test, "msg", msg);
	check_eq(desc, bytes(test, "ct", ct), op.len);
	check_eq(desc, bytes(test, "tag", tag), 16);
	k = ops->key_alloc(ops, &secret);
	check(desc, k);

	memcpy(data, msg, op.len);
	ops->encrypt(k, &op, 1);
	check(desc, op.ok);
	check(desc, !memcmp(data, ct, op.len));
	check_eq(desc, !memcmp(made, tag, 16), valid);

	op.icv = tag;
	memcpy(data, ct, op.len);
	op.restore = true;
	ops->decrypt(k, &op, 1);
	check_eq(desc, op.ok, valid);
	check(desc, !memcmp(data, valid ? msg : ct, op.len));
	ops->key_free(k);
}

/* An HMAC is one over an ESP header and what follows; the vector's message has to be that long. */
static bool run_hmac(const struct fw_crypto_ops *ops, size_t icv_len, const json_t *test)
{
	static uint8_t key[DATA_MAX], msg[DATA_MAX + FW_CRYPTO_ICV_MAX], tag[DATA_MAX];
	bool valid = !strcmp(json_string_value(json_object_get(test, "result")), "valid");
	struct fw_crypto_secret secret = { .auth_key = key, .auth_key_len = bytes(test, "key", key), .icv_len = icv_len };
	size_t len = bytes(test, "msg", msg);
	struct fw_crypto_op op = { .head = msg, .iv = msg + 8, .data = msg + 8, .len = (uint32_t)len - 8, .icv = tag };
	struct fw_crypto_key *k;
	char desc[64];

	if (len < 8 || secret.auth_key_len > 64)
		return false;
	snprintf(desc, sizeof(desc), "%s, tcId %lld", ops->name, (long long)json_integer_value(json_object_get(test, "tcId")));
	bytes(test, "tag", tag);
	k = ops->key_alloc(ops, &secret);
	check(desc, k);
	ops->decrypt(k, &op, 1);
	check_eq(desc, op.ok, valid);
	ops->key_free(k);
	return true;
}

static const struct fw_crypto_ops *const gcm[] = {
	&fw_openssl_aead[0],
#ifdef HAVE_IPSEC_MB
	&fw_ipsec_mb_gcm,
#endif
};

/* How many there are is known, so that a test that reads nothing fails. */
static void run_file(const char *name, uint8_t cipher, unsigned int salt_len, int expected)
{
	const struct fw_crypto_ops *one = fw_crypto_find(cipher, CORDON_AUTH_NONE);
	const struct fw_crypto_ops *const *engines = cipher == CORDON_CIPHER_AES_GCM ? gcm : &one;
	size_t engine_cnt = cipher == CORDON_CIPHER_AES_GCM ? ARRAY_CNT(gcm) : 1;
	json_t *file = json_load_file(name, 0, NULL);
	json_t *group, *test;
	size_t i, j, e;
	int count = 0;

	assert_non_null(file);
	json_array_foreach(json_object_get(file, "testGroups"), i, group) {
		if (json_integer_value(json_object_get(group, "ivSize")) != 8 * (salt_len + 8) ||
		    json_integer_value(json_object_get(group, "tagSize")) != 128)
			continue;
		json_array_foreach(json_object_get(group, "tests"), j, test) {
			for (e = 0; e < engine_cnt; e++)
				run(engines[e], salt_len, test);
			count++;
		}
	}
	assert_int_equal(count, expected);
	json_decref(file);
}

static void test_aes_gcm(void **unused)
{
	(void)unused;
	run_file(TEST_DATA "/wycheproof/aes_gcm_test.json", CORDON_CIPHER_AES_GCM, 4, 197);
}

static void test_aes_ccm(void **unused)
{
	(void)unused;
	run_file(TEST_DATA "/wycheproof/aes_ccm_test.json", CORDON_CIPHER_AES_CCM, 3, 18);
}

static void test_chacha20_poly1305(void **unused)
{
	(void)unused;
	run_file(TEST_DATA "/wycheproof/chacha20_poly1305_test.json", CORDON_CIPHER_CHACHA20_POLY1305, 4, 316);
}

static void test_hmac(void **unused)
{
	static const struct {
		const char *file;
		uint8_t auth;
		size_t icv_len;
		int expected;
	} rows[] = {
		{ TEST_DATA "/wycheproof/hmac_sha256_test.json", CORDON_AUTH_HMAC_SHA256, 16, 48 },
		{ TEST_DATA "/wycheproof/hmac_sha384_test.json", CORDON_AUTH_HMAC_SHA384, 24, 48 },
		{ TEST_DATA "/wycheproof/hmac_sha512_test.json", CORDON_AUTH_HMAC_SHA512, 32, 48 },
	};
	json_t *file, *group, *test;
	size_t i, j, row;
	int count;

	(void)unused;
	for (row = 0; row < ARRAY_CNT(rows); row++) {
		file = json_load_file(rows[row].file, 0, NULL);
		assert_non_null(file);
		count = 0;
		json_array_foreach(json_object_get(file, "testGroups"), i, group) {
			/* A longer tag begins with the ICV, but where it is forged may be behind that. */
			if (json_integer_value(json_object_get(group, "tagSize")) != (json_int_t)(8 * rows[row].icv_len))
				continue;
			json_array_foreach(json_object_get(group, "tests"), j, test)
				count += run_hmac(fw_crypto_find(CORDON_CIPHER_NULL, rows[row].auth), rows[row].icv_len, test);
		}
		assert_int_equal(count, rows[row].expected);
		json_decref(file);
	}
}

static int start(void **unused)
{
	(void)unused;
	return fw_crypto_init();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aes_gcm),
		cmocka_unit_test(test_aes_ccm),
		cmocka_unit_test(test_chacha20_poly1305),
		cmocka_unit_test(test_hmac),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
