// SPDX-License-Identifier: BSD-3-Clause
/*
 * Which suites there are, what they take, and which engine does which.
 *
 * The two tables of limits are the truth: the capabilities that the driver gets are made of them,
 * SAs are judged by those, and engines take exactly what they say.
 */
#include "crypto/crypto.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "cordon/ipsec.h"
#include "crypto/suites.h"
#include "path/bytes.h"

#define BYTES(n) (1ull << ((n) - 1))
#define AES_KEYS (BYTES(16) | BYTES(24) | BYTES(32))
#define AEAD_ICVS (BYTES(8) | BYTES(12) | BYTES(16))
/* RFC 2104 takes keys of any length; more than a block is no stronger. */
#define HMAC_KEYS (~0ull)

/**
 * struct limits - lengths that an algorithm takes
 * @keys: bit n - 1: a key of n bytes
 * @icvs: bit n - 1: an ICV of n bytes
 * @salt_len: bytes of the salt
 * @present: there is such an algorithm
 */
struct limits {
	uint64_t keys;
	uint64_t icvs;
	uint8_t salt_len;
	bool present;
};

static const struct limits ciphers[CORDON_CIPHER_CNT] = {
	[CORDON_CIPHER_NULL] = { 0, 0, 0, true },
	[CORDON_CIPHER_AES_CBC] = { AES_KEYS, 0, 0, true },
	[CORDON_CIPHER_AES_CTR] = { AES_KEYS, 0, 4, true },
	[CORDON_CIPHER_AES_GCM] = { AES_KEYS, AEAD_ICVS, 4, true },
	[CORDON_CIPHER_AES_GMAC] = { AES_KEYS, BYTES(16), 4, true },
	[CORDON_CIPHER_AES_CCM] = { AES_KEYS, AEAD_ICVS, 3, true },
	[CORDON_CIPHER_CHACHA20_POLY1305] = { BYTES(32), BYTES(16), 4, true },
};

static const struct limits auths[CORDON_AUTH_CNT] = {
	[CORDON_AUTH_HMAC_SHA1] = { HMAC_KEYS, BYTES(12), 0, true },
	[CORDON_AUTH_HMAC_SHA256] = { HMAC_KEYS, BYTES(12) | BYTES(16), 0, true },
	[CORDON_AUTH_HMAC_SHA384] = { HMAC_KEYS, BYTES(24), 0, true },
	[CORDON_AUTH_HMAC_SHA512] = { HMAC_KEYS, BYTES(32), 0, true },
	[CORDON_AUTH_AES_XCBC] = { BYTES(16), BYTES(12), 0, true },
	[CORDON_AUTH_AES_CMAC] = { BYTES(16), BYTES(12), 0, true },
};

static const struct fw_crypto_ops *suites[CORDON_CIPHER_CNT][CORDON_AUTH_CNT];

static bool has_length(uint64_t mask, size_t len)
{
	return len && len <= 64 ? mask & BYTES(len) : !len && !mask;
}

bool fw_crypto_lens_ok(const struct fw_crypto_ops *ops, const struct fw_crypto_secret *secret)
{
	const struct limits *cipher = &ciphers[ops->cipher];
	const struct limits *auth = &auths[ops->auth];

	return has_length(cipher->keys, secret->key_len) &&
	       has_length(auth->keys, secret->auth_key_len) &&
	       has_length(cipher->icvs | auth->icvs, secret->icv_len);
}

unsigned int fw_crypto_salt_len(uint8_t cipher)
{
	return ciphers[cipher].salt_len;
}

static void limits_write(struct cordon_algorithm *to, const struct limits *from, unsigned int count)
{
	unsigned int i;

	memset(to, 0, count * sizeof(*to));
	for (i = 0; i < count; i++) {
		to[i].key_bytes = htole64(from[i].keys);
		to[i].icv_bytes = htole32((uint32_t)from[i].icvs);
		to[i].present = from[i].present;
		to[i].salt_len = from[i].salt_len;
	}
}

void fw_crypto_limits(struct cordon_algorithm *cipher_records, struct cordon_algorithm *auth_records)
{
	limits_write(cipher_records, ciphers, CORDON_CIPHER_CNT);
	limits_write(auth_records, auths, CORDON_AUTH_CNT);
}

bool fw_crypto_iv_number(const struct fw_crypto_key *key, uint64_t seq, uint8_t *iv)
{
	(void)key;
	fw_put_be64(iv, seq);
	return true;
}

const struct fw_crypto_ops *fw_crypto_find(uint8_t cipher, uint8_t auth)
{
	return cipher < CORDON_CIPHER_CNT && auth < CORDON_AUTH_CNT ? suites[cipher][auth] : NULL;
}

static int use(const struct fw_crypto_ops *ops)
{
	if (fw_crypto_selftest_suite(ops))
		return -ENODEV;
	suites[ops->cipher][ops->auth] = ops;
	return 0;
}

int fw_crypto_init(void)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < fw_openssl_aead_cnt && !ret; i++)
		ret = use(&fw_openssl_aead[i]);
	for (i = 0; i < fw_openssl_pair_cnt && !ret; i++)
		ret = use(&fw_openssl_pair[i]);
#ifdef HAVE_IPSEC_MB
	if (!ret && !fw_ipsec_mb_init())
		ret = use(&fw_ipsec_mb_gcm);
#endif
	return ret;
}

int fw_crypto_selftest(void)
{
	unsigned int i, j;

	for (i = 0; i < CORDON_CIPHER_CNT; i++)
		for (j = 0; j < CORDON_AUTH_CNT; j++)
			if (suites[i][j] && fw_crypto_selftest_suite(suites[i][j]))
				return -EIO;
	return 0;
}
