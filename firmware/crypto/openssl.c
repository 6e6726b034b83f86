// SPDX-License-Identifier: BSD-3-Clause
/*
 * OpenSSL's EVP: where there is no intel-ipsec-mb, and beside it in the tests.
 */
#include "crypto/suites.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "cordon/ipsec.h"

/**
 * struct fw_crypto_key - key
 * @enc: context that holds the expanded key
 * @dec: the same
 * @icv_len: bytes of the ICV
 * @salt: first bytes of each nonce
 */
struct fw_crypto_key {
	EVP_CIPHER_CTX *enc;
	EVP_CIPHER_CTX *dec;
	int icv_len;
	uint8_t salt[FW_GCM_SALT_LEN];
};

static const EVP_CIPHER *gcm_cipher(size_t key_len)
{
	switch (key_len) {
	case 16:
		return EVP_aes_128_gcm();
	case 24:
		return EVP_aes_192_gcm();
	default:
		return EVP_aes_256_gcm();
	}
}

static void gcm_key_free(struct fw_crypto_key *key)
{
	if (!key)
		return;
	/* Wipes what it frees. */
	EVP_CIPHER_CTX_free(key->enc);
	EVP_CIPHER_CTX_free(key->dec);
	OPENSSL_cleanse(key, sizeof(*key));
	free(key);
}

static struct fw_crypto_key *gcm_key_alloc(const uint8_t *key, size_t key_len,
					   const uint8_t *auth_key, size_t auth_key_len,
					   const uint8_t *salt, size_t icv_len)
{
	struct fw_crypto_key *k;

	(void)auth_key;
	if (!fw_gcm_lens_ok(key_len, auth_key_len, icv_len))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;

	k->icv_len = (int)icv_len;
	memcpy(k->salt, salt, FW_GCM_SALT_LEN);
	k->enc = EVP_CIPHER_CTX_new();
	k->dec = EVP_CIPHER_CTX_new();
	if (!k->enc || !k->dec)
		goto err_free;
	if (EVP_EncryptInit_ex(k->enc, gcm_cipher(key_len), NULL, key, NULL) != 1)
		goto err_free;
	if (EVP_DecryptInit_ex(k->dec, gcm_cipher(key_len), NULL, key, NULL) != 1)
		goto err_free;
	return k;

err_free:
	gcm_key_free(k);
	return NULL;
}

static void nonce_make(const struct fw_crypto_key *key, const struct fw_crypto_op *op,
		       uint8_t *nonce)
{
	memcpy(nonce, key->salt, FW_GCM_SALT_LEN);
	memcpy(nonce + FW_GCM_SALT_LEN, op->iv, FW_GCM_IV_LEN);
}

static bool encrypt_one(const struct fw_crypto_key *key, struct fw_crypto_op *op, uint8_t *icv)
{
	uint8_t nonce[FW_GCM_NONCE_LEN];
	int len;

	nonce_make(key, op, nonce);
	return op->len <= INT_MAX && EVP_EncryptInit_ex(key->enc, NULL, NULL, NULL, nonce) == 1 &&
	       EVP_EncryptUpdate(key->enc, NULL, &len, op->aad, (int)op->aad_len) == 1 &&
	       EVP_EncryptUpdate(key->enc, op->data, &len, op->data, (int)op->len) == 1 &&
	       EVP_EncryptFinal_ex(key->enc, op->data + len, &len) == 1 &&
	       EVP_CIPHER_CTX_ctrl(key->enc, EVP_CTRL_AEAD_GET_TAG, key->icv_len, icv) == 1;
}

static bool decrypt_one(const struct fw_crypto_key *key, struct fw_crypto_op *op)
{
	uint8_t nonce[FW_GCM_NONCE_LEN];
	int len;

	nonce_make(key, op, nonce);
	return op->len <= INT_MAX && EVP_DecryptInit_ex(key->dec, NULL, NULL, NULL, nonce) == 1 &&
	       EVP_CIPHER_CTX_ctrl(key->dec, EVP_CTRL_AEAD_SET_TAG, key->icv_len, op->icv) == 1 &&
	       EVP_DecryptUpdate(key->dec, NULL, &len, op->aad, (int)op->aad_len) == 1 &&
	       EVP_DecryptUpdate(key->dec, op->data, &len, op->data, (int)op->len) == 1 &&
	       EVP_DecryptFinal_ex(key->dec, op->data + len, &len) == 1;
}

static void gcm_encrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		ops[i].ok = encrypt_one(key, &ops[i], ops[i].icv);
}

static void gcm_decrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	uint8_t icv[FW_GCM_ICV_MAX];
	uint32_t i;

	for (i = 0; i < count; i++) {
		ops[i].ok = decrypt_one(key, &ops[i]);
		/* The cipher is a key stream: applied again, it gives back what it was given. */
		if (!ops[i].ok && ops[i].restore)
			encrypt_one(key, &ops[i], icv);
	}
	OPENSSL_cleanse(icv, sizeof(icv));
}

const struct fw_crypto_ops fw_openssl_gcm = {
	.suite = CORDON_SUITE_AES_GCM,
	.name = "aes-gcm (openssl)",
	.iv_len = FW_GCM_IV_LEN,
	.salt_len = FW_GCM_SALT_LEN,
	.block = 4,
	.key_alloc = gcm_key_alloc,
	.key_free = gcm_key_free,
	.encrypt = gcm_encrypt,
	.decrypt = gcm_decrypt,
};
