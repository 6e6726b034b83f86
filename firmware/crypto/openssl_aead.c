// SPDX-License-Identifier: BSD-3-Clause
/*
 * Combined suites by OpenSSL's EVP: where there is no intel-ipsec-mb, for what that isn't used for,
 * and beside it in the tests.
 */
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "cordon/ipsec.h"
#include "crypto/suites.h"

/* The greatest packet that is restored when it turns out to be forged. */
#define RESTORE_MAX 65536

/**
 * struct fw_crypto_key - key
 * @ops: suite
 * @enc: context that holds the expanded key
 * @dec: the same
 * @icv_len: bytes of the ICV
 * @salt_len: bytes of @salt
 * @salt: first bytes of each nonce
 */
struct fw_crypto_key {
	const struct fw_crypto_ops *ops;
	EVP_CIPHER_CTX *enc;
	EVP_CIPHER_CTX *dec;
	int icv_len;
	unsigned int salt_len;
	uint8_t salt[FW_AEAD_SALT_MAX];
};

/* CCM wipes what it has decrypted when the ICV is wrong. */
static _Thread_local uint8_t saved[RESTORE_MAX];

static bool is_ccm(const struct fw_crypto_key *key)
{
	return key->ops->cipher == CORDON_CIPHER_AES_CCM;
}

static const EVP_CIPHER *evp_cipher(uint8_t cipher, size_t key_len)
{
	if (cipher == CORDON_CIPHER_CHACHA20_POLY1305)
		return EVP_chacha20_poly1305();
	if (cipher == CORDON_CIPHER_AES_CCM)
		return key_len == 16 ? EVP_aes_128_ccm() :
		       key_len == 24 ? EVP_aes_192_ccm() :
				       EVP_aes_256_ccm();
	return key_len == 16 ? EVP_aes_128_gcm() :
	       key_len == 24 ? EVP_aes_192_gcm() :
			       EVP_aes_256_gcm();
}

static void aead_key_free(struct fw_crypto_key *key)
{
	if (!key)
		return;
	/* Wipes what it frees. */
	EVP_CIPHER_CTX_free(key->enc);
	EVP_CIPHER_CTX_free(key->dec);
	OPENSSL_cleanse(key, sizeof(*key));
	free(key);
}

static EVP_CIPHER_CTX *context_make(const struct fw_crypto_key *key,
				    const struct fw_crypto_secret *secret, bool encrypt)
{
	const EVP_CIPHER *cipher = evp_cipher(key->ops->cipher, secret->key_len);
	int nonce_len = (int)key->salt_len + FW_AEAD_IV_LEN;
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	if (!ctx)
		return NULL;
	if (EVP_CipherInit_ex(ctx, cipher, NULL, NULL, NULL, encrypt) == 1 &&
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, nonce_len, NULL) == 1 &&
	    (!is_ccm(key) ||
	     EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, key->icv_len, NULL) == 1) &&
	    EVP_CipherInit_ex(ctx, NULL, NULL, secret->key, NULL, encrypt) == 1)
		return ctx;
	EVP_CIPHER_CTX_free(ctx);
	return NULL;
}

static struct fw_crypto_key *aead_key_alloc(const struct fw_crypto_ops *ops,
					    const struct fw_crypto_secret *secret)
{
	struct fw_crypto_key *k;

	if (!fw_crypto_lens_ok(ops, secret))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;

	k->ops = ops;
	k->icv_len = (int)secret->icv_len;
	k->salt_len = fw_crypto_salt_len(ops->cipher);
	memcpy(k->salt, secret->salt, k->salt_len);
	k->enc = context_make(k, secret, true);
	k->dec = context_make(k, secret, false);
	if (!k->enc || !k->dec) {
		aead_key_free(k);
		return NULL;
	}
	return k;
}

/* Nonce, and what is authenticated but not encrypted. */
static bool begin(const struct fw_crypto_key *key, EVP_CIPHER_CTX *ctx, const struct fw_crypto_op *op)
{
	uint8_t nonce[FW_AEAD_NONCE_MAX];
	int len;

	if (op->len > INT_MAX)
		return false;
	memcpy(nonce, key->salt, key->salt_len);
	memcpy(nonce + key->salt_len, op->iv, FW_AEAD_IV_LEN);
	if (EVP_CipherInit_ex(ctx, NULL, NULL, NULL, nonce, -1) != 1)
		return false;
	/* The length goes into CCM's first block. */
	if (is_ccm(key) && EVP_CipherUpdate(ctx, NULL, &len, NULL, (int)op->len) != 1)
		return false;
	return EVP_CipherUpdate(ctx, NULL, &len, op->aad, (int)op->aad_len) == 1;
}

/* RFC 4543 3.3: all is additional data, the IV too. */
static bool body(const struct fw_crypto_key *key, EVP_CIPHER_CTX *ctx, struct fw_crypto_op *op)
{
	int len;

	if (key->ops->cipher == CORDON_CIPHER_AES_GMAC)
		return EVP_CipherUpdate(ctx, NULL, &len, op->iv, FW_AEAD_IV_LEN) == 1 &&
		       EVP_CipherUpdate(ctx, NULL, &len, op->data, (int)op->len) == 1;
	return EVP_CipherUpdate(ctx, op->data, &len, op->data, (int)op->len) == 1;
}

static bool encrypt_one(const struct fw_crypto_key *key, struct fw_crypto_op *op, uint8_t *icv)
{
	uint8_t rest[16];
	int len;

	return begin(key, key->enc, op) && body(key, key->enc, op) &&
	       EVP_CipherFinal_ex(key->enc, rest, &len) == 1 &&
	       EVP_CIPHER_CTX_ctrl(key->enc, EVP_CTRL_AEAD_GET_TAG, key->icv_len, icv) == 1;
}

static bool decrypt_one(const struct fw_crypto_key *key, struct fw_crypto_op *op)
{
	uint8_t rest[16];
	int len;

	if (EVP_CIPHER_CTX_ctrl(key->dec, EVP_CTRL_AEAD_SET_TAG, key->icv_len, op->icv) != 1 ||
	    !begin(key, key->dec, op) || !body(key, key->dec, op))
		return false;
	/* CCM has verified by now. */
	return is_ccm(key) || EVP_CipherFinal_ex(key->dec, rest, &len) == 1;
}

static void aead_encrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		ops[i].ok = encrypt_one(key, &ops[i], ops[i].icv);
}

static void aead_decrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		bool restore = ops[i].restore && ops[i].len <= sizeof(saved);

		if (restore)
			memcpy(saved, ops[i].data, ops[i].len);
		ops[i].ok = decrypt_one(key, &ops[i]);
		if (!ops[i].ok && restore)
			memcpy(ops[i].data, saved, ops[i].len);
	}
}

#define AEAD(cipher_, name_)                                                            \
	{                                                                               \
		.cipher = CORDON_CIPHER_##cipher_, .auth = CORDON_AUTH_NONE,            \
		.name = name_ " (openssl)", .iv_len = FW_AEAD_IV_LEN, .block = 4,       \
		.key_alloc = aead_key_alloc, .key_free = aead_key_free,                 \
		.iv = fw_crypto_iv_number, .encrypt = aead_encrypt, .decrypt = aead_decrypt, \
	}

const struct fw_crypto_ops fw_openssl_aead[] = {
	AEAD(AES_GCM, "aes-gcm"),
	AEAD(AES_GMAC, "aes-gmac"),
	AEAD(AES_CCM, "aes-ccm"),
	AEAD(CHACHA20_POLY1305, "chacha20-poly1305"),
};

const unsigned int fw_openssl_aead_cnt = sizeof(fw_openssl_aead) / sizeof(fw_openssl_aead[0]);
