// SPDX-License-Identifier: BSD-3-Clause
/*
 * A cipher and an authentication, by OpenSSL: encrypt, then authenticate (RFC 4303 3.3.2). On the way
 * in nothing is decrypted that wasn't verified.
 */
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "cordon/ipsec.h"
#include "crypto/suites.h"
#include "path/bytes.h"

#define BLOCK 16
/* RFC 3686 3 and 4. */
#define CTR_NONCE_LEN 4
#define CTR_IV_LEN 8
/* SPI, number, and an IV before what is encrypted; half a number and a block's rest behind it. */
#define MESSAGE_MAX (65536 + 64)

/**
 * struct fw_crypto_key - key
 * @ops: suite
 * @enc: cipher, NULL without
 * @dec: the same
 * @iv: what makes CBC's IVs, NULL without
 * @mac: authentication
 * @xcbc: K2 and K3 of XCBC, RFC 3566 4
 * @icv_len: bytes of the ICV
 * @nonce: CTR's
 */
struct fw_crypto_key {
	const struct fw_crypto_ops *ops;
	EVP_CIPHER_CTX *enc;
	EVP_CIPHER_CTX *dec;
	EVP_CIPHER_CTX *iv;
	EVP_MAC_CTX *mac;
	EVP_CIPHER_CTX *xcbc_mac;
	uint8_t xcbc[2][BLOCK];
	size_t icv_len;
	uint8_t nonce[CTR_NONCE_LEN];
};

static _Thread_local uint8_t message[MESSAGE_MAX];

static void pair_key_free(struct fw_crypto_key *key)
{
	if (!key)
		return;
	/* These wipe what they free. */
	EVP_CIPHER_CTX_free(key->enc);
	EVP_CIPHER_CTX_free(key->dec);
	EVP_CIPHER_CTX_free(key->iv);
	EVP_CIPHER_CTX_free(key->xcbc_mac);
	EVP_MAC_CTX_free(key->mac);
	OPENSSL_cleanse(key, sizeof(*key));
	free(key);
}

static EVP_CIPHER_CTX *context_make(const EVP_CIPHER *cipher, const uint8_t *key, bool encrypt)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	if (!ctx)
		return NULL;
	if (EVP_CipherInit_ex(ctx, cipher, NULL, key, NULL, encrypt) == 1 &&
	    EVP_CIPHER_CTX_set_padding(ctx, 0) == 1)
		return ctx;
	EVP_CIPHER_CTX_free(ctx);
	return NULL;
}

static const EVP_CIPHER *evp_cipher(uint8_t cipher, size_t key_len)
{
	if (cipher == CORDON_CIPHER_AES_CBC)
		return key_len == 16 ? EVP_aes_128_cbc() :
		       key_len == 24 ? EVP_aes_192_cbc() :
				       EVP_aes_256_cbc();
	return key_len == 16 ? EVP_aes_128_ctr() :
	       key_len == 24 ? EVP_aes_192_ctr() :
			       EVP_aes_256_ctr();
}

static bool cipher_init(struct fw_crypto_key *k, const struct fw_crypto_secret *secret)
{
	uint8_t random[BLOCK];

	if (k->ops->cipher == CORDON_CIPHER_NULL)
		return true;
	k->enc = context_make(evp_cipher(k->ops->cipher, secret->key_len), secret->key, true);
	k->dec = context_make(evp_cipher(k->ops->cipher, secret->key_len), secret->key, false);
	if (!k->enc || !k->dec)
		return false;
	if (k->ops->cipher == CORDON_CIPHER_AES_CTR) {
		memcpy(k->nonce, secret->salt, sizeof(k->nonce));
		return true;
	}
	if (RAND_bytes(random, sizeof(random)) != 1)
		return false;
	k->iv = context_make(EVP_aes_128_ecb(), random, true);
	OPENSSL_cleanse(random, sizeof(random));
	return k->iv;
}

static bool mac_start(struct fw_crypto_key *k, const struct fw_crypto_secret *secret,
		      const char *name, const char *param, char *value)
{
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(param, value, 0),
				      OSSL_PARAM_construct_end() };
	EVP_MAC *mac = EVP_MAC_fetch(NULL, name, NULL);

	if (mac)
		k->mac = EVP_MAC_CTX_new(mac);
	EVP_MAC_free(mac);
	return k->mac && EVP_MAC_init(k->mac, secret->auth_key, secret->auth_key_len, params) == 1;
}

/* RFC 3566 4: three keys of one. */
static bool xcbc_start(struct fw_crypto_key *k, const struct fw_crypto_secret *secret)
{
	EVP_CIPHER_CTX *ctx = context_make(EVP_aes_128_ecb(), secret->auth_key, true);
	uint8_t keys[3][BLOCK];
	bool ok;
	int len;

	memset(keys[0], 1, BLOCK);
	memset(keys[1], 2, BLOCK);
	memset(keys[2], 3, BLOCK);
	ok = ctx && EVP_CipherUpdate(ctx, keys[0], &len, keys[0], sizeof(keys)) == 1;
	EVP_CIPHER_CTX_free(ctx);
	if (ok) {
		memcpy(k->xcbc, keys[1], sizeof(k->xcbc));
		k->xcbc_mac = context_make(EVP_aes_128_cbc(), keys[0], true);
	}
	OPENSSL_cleanse(keys, sizeof(keys));
	return k->xcbc_mac;
}

static bool auth_init(struct fw_crypto_key *k, const struct fw_crypto_secret *secret)
{
	static char digests[][8] = { [CORDON_AUTH_HMAC_SHA1] = "SHA1",
				     [CORDON_AUTH_HMAC_SHA256] = "SHA256",
				     [CORDON_AUTH_HMAC_SHA384] = "SHA384",
				     [CORDON_AUTH_HMAC_SHA512] = "SHA512" };
	static char aes[] = "AES-128-CBC";

	switch (k->ops->auth) {
	case CORDON_AUTH_AES_XCBC:
		return xcbc_start(k, secret);
	case CORDON_AUTH_AES_CMAC:
		return mac_start(k, secret, "CMAC", OSSL_MAC_PARAM_CIPHER, aes);
	default:
		return mac_start(k, secret, "HMAC", OSSL_MAC_PARAM_DIGEST, digests[k->ops->auth]);
	}
}

static struct fw_crypto_key *pair_key_alloc(const struct fw_crypto_ops *ops,
					    const struct fw_crypto_secret *secret)
{
	struct fw_crypto_key *k;

	if (!fw_crypto_lens_ok(ops, secret))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->ops = ops;
	k->icv_len = secret->icv_len;
	if (!cipher_init(k, secret) || !auth_init(k, secret)) {
		pair_key_free(k);
		return NULL;
	}
	return k;
}

/* From the ESP header to the ICV; with ESN the number's upper half, which isn't sent, behind that. */
static size_t message_make(const struct fw_crypto_op *op)
{
	size_t len = (size_t)(op->data - op->head) + op->len;

	if (len > MESSAGE_MAX - 32)
		return 0;
	memcpy(message, op->head, len);
	if (op->aad_len == 12) {
		memcpy(message + len, op->aad + 4, 4);
		len += 4;
	}
	return len;
}

static bool xcbc(const struct fw_crypto_key *key, size_t size, uint8_t *icv)
{
	static const uint8_t zero[BLOCK];
	size_t last = size ? (size - 1) / BLOCK * BLOCK : 0;
	bool whole = size && size % BLOCK == 0;
	unsigned int i;
	int len;

	if (!whole) {
		message[size] = 0x80;
		memset(message + size + 1, 0, last + BLOCK - size - 1);
	}
	for (i = 0; i < BLOCK; i++)
		message[last + i] ^= key->xcbc[whole ? 0 : 1][i];
	if (EVP_CipherInit_ex(key->xcbc_mac, NULL, NULL, NULL, zero, -1) != 1 ||
	    EVP_CipherUpdate(key->xcbc_mac, message, &len, message, (int)(last + BLOCK)) != 1)
		return false;
	memcpy(icv, message + last, BLOCK);
	return true;
}

/* @icv: EVP_MAX_MD_SIZE bytes */
static bool authenticate(const struct fw_crypto_key *key, const struct fw_crypto_op *op, uint8_t *icv)
{
	size_t size = message_make(op);
	size_t len;

	if (!size)
		return false;
	if (key->xcbc_mac)
		return xcbc(key, size, icv);
	return EVP_MAC_init(key->mac, NULL, 0, NULL) == 1 &&
	       EVP_MAC_update(key->mac, message, size) == 1 &&
	       EVP_MAC_final(key->mac, icv, &len, EVP_MAX_MD_SIZE) == 1;
}

static bool crypt(const struct fw_crypto_key *key, EVP_CIPHER_CTX *ctx, struct fw_crypto_op *op)
{
	uint8_t block[BLOCK];
	int len;

	if (!ctx)
		return true;
	if (op->len > INT_MAX || op->len % key->ops->block)
		return false;
	if (key->ops->cipher == CORDON_CIPHER_AES_CTR) {
		memcpy(block, key->nonce, CTR_NONCE_LEN);
		memcpy(block + CTR_NONCE_LEN, op->iv, CTR_IV_LEN);
		fw_put_be32(block + CTR_NONCE_LEN + CTR_IV_LEN, 1);
	} else {
		memcpy(block, op->iv, BLOCK);
	}
	return EVP_CipherInit_ex(ctx, NULL, NULL, NULL, block, -1) == 1 &&
	       EVP_CipherUpdate(ctx, op->data, &len, op->data, (int)op->len) == 1;
}

static void pair_encrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	uint8_t icv[EVP_MAX_MD_SIZE];
	uint32_t i;

	for (i = 0; i < count; i++) {
		ops[i].ok = crypt(key, key->enc, &ops[i]) && authenticate(key, &ops[i], icv);
		if (ops[i].ok)
			memcpy(ops[i].icv, icv, key->icv_len);
	}
}

static void pair_decrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	uint8_t icv[EVP_MAX_MD_SIZE];
	uint32_t i;

	for (i = 0; i < count; i++)
		ops[i].ok = authenticate(key, &ops[i], icv) &&
			    !CRYPTO_memcmp(icv, ops[i].icv, key->icv_len) &&
			    crypt(key, key->dec, &ops[i]);
	/* What is left of a forged packet's right ICV is nobody's to see. */
	OPENSSL_cleanse(icv, sizeof(icv));
}

/*
 * The number, encrypted under a key that nobody has: never the same twice, and not to be foreseen
 * (RFC 3602 3).
 */
static bool cbc_iv(const struct fw_crypto_key *key, uint64_t seq, uint8_t *iv)
{
	uint8_t block[BLOCK] = { 0 };
	int len;

	fw_put_be64(block, seq);
	return EVP_CipherUpdate(key->iv, iv, &len, block, BLOCK) == 1;
}

static bool no_iv(const struct fw_crypto_key *key, uint64_t seq, uint8_t *iv)
{
	(void)key;
	(void)seq;
	(void)iv;
	return true;
}

#define PAIR(cipher_, auth_, name_, iv_len_, block_, iv_)                                    \
	{                                                                                    \
		.cipher = CORDON_CIPHER_##cipher_, .auth = CORDON_AUTH_##auth_,              \
		.name = name_ " (openssl)", .iv_len = (iv_len_), .block = (block_),          \
		.key_alloc = pair_key_alloc, .key_free = pair_key_free, .iv = (iv_),         \
		.encrypt = pair_encrypt, .decrypt = pair_decrypt,                            \
	}
#define PAIRS(auth_, name_)                                                  \
	PAIR(NULL, auth_, "null, " name_, 0, 4, no_iv),                      \
	PAIR(AES_CBC, auth_, "aes-cbc, " name_, BLOCK, BLOCK, cbc_iv),       \
	PAIR(AES_CTR, auth_, "aes-ctr, " name_, CTR_IV_LEN, 4, fw_crypto_iv_number)

const struct fw_crypto_ops fw_openssl_pair[] = {
	PAIRS(HMAC_SHA1, "hmac-sha1"),
	PAIRS(HMAC_SHA256, "hmac-sha256"),
	PAIRS(HMAC_SHA384, "hmac-sha384"),
	PAIRS(HMAC_SHA512, "hmac-sha512"),
	PAIRS(AES_XCBC, "aes-xcbc"),
	PAIRS(AES_CMAC, "aes-cmac"),
};

const unsigned int fw_openssl_pair_cnt = sizeof(fw_openssl_pair) / sizeof(fw_openssl_pair[0]);
