// SPDX-License-Identifier: BSD-3-Clause
/*
 * Project Wycheproof's AES-GCM vectors through each engine.
 */
#include <jansson.h>
#include <stdio.h>

#include "crypto/suites.h"
#include "tests/test.h"

#define DATA_MAX 4096

/* What is expected of the file, so that a test that reads nothing fails. */
#define VECTORS 197

static const struct fw_crypto_ops *const engines[] = {
	&fw_openssl_gcm,
#ifdef HAVE_IPSEC_MB
	&fw_ipsec_mb_gcm,
#endif
};

static size_t bytes(const json_t *test, const char *name, uint8_t *to)
{
	const char *hex = json_string_value(json_object_get(test, name));

	assert_non_null(hex);
	assert_true(strlen(hex) / 2 <= DATA_MAX);
	return test_hex(hex, to);
}

static void run(const struct fw_crypto_ops *ops, const json_t *test)
{
	static uint8_t key[DATA_MAX], iv[DATA_MAX], aad[DATA_MAX], msg[DATA_MAX], ct[DATA_MAX], tag[DATA_MAX], data[DATA_MAX];
	bool valid = !strcmp(json_string_value(json_object_get(test, "result")), "valid");
	size_t key_len = bytes(test, "key", key);
	uint8_t made[16];
	struct fw_crypto_op op = { .data = data, .iv = iv + 4, .aad = aad, .icv = made };
	struct fw_crypto_key *k;
	char desc[64];

	snprintf(desc, sizeof(desc), "%s, tcId %lld", ops->name, (long long)json_integer_value(json_object_get(test, "tcId")));
	check_eq(desc, bytes(test, "iv", iv), 12);
	op.aad_len = (uint32_t)bytes(test, "aad", aad);
	op.len = (uint32_t)bytes(test, "msg", msg);
	check_eq(desc, bytes(test, "ct", ct), op.len);
	check_eq(desc, bytes(test, "tag", tag), 16);
	k = ops->key_alloc(key, key_len, NULL, 0, iv, 16);
	check(desc, k);

	memcpy(data, msg, op.len);
	ops->encrypt(k, &op, 1);
	check(desc, op.ok);
	check(desc, !memcmp(data, ct, op.len));
	check_eq(desc, !memcmp(made, tag, 16), valid);

	op.icv = tag;
	memcpy(data, ct, op.len);
	ops->decrypt(k, &op, 1);
	check_eq(desc, op.ok, valid);
	check(desc, !valid || !memcmp(data, msg, op.len));
	ops->key_free(k);
}

static void test_aes_gcm(void **unused)
{
	json_t *file = json_load_file(TEST_DATA "/wycheproof/aes_gcm_test.json", 0, NULL);
	json_t *group, *test;
	size_t i, j, e;
	int count = 0;

	(void)unused;
	assert_non_null(file);
	json_array_foreach(json_object_get(file, "testGroups"), i, group) {
		if (json_integer_value(json_object_get(group, "ivSize")) != 96)
			continue;
		json_array_foreach(json_object_get(group, "tests"), j, test) {
			for (e = 0; e < ARRAY_CNT(engines); e++)
				run(engines[e], test);
			count++;
		}
	}
	assert_int_equal(count, VECTORS);
	json_decref(file);
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
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
