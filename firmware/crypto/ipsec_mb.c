// SPDX-License-Identifier: BSD-3-Clause
/*
 * intel-ipsec-mb. AES-GCM goes through the single-buffer functions, which keep all state with the
 * caller: they are faster than the job interface for this suite and need no manager for each
 * thread.
 */
#ifdef HAVE_IPSEC_MB

#include "crypto/suites.h"

#include <errno.h>
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "cordon/ipsec.h"

/**
 * struct fw_crypto_key - expanded key
 * @gcm: round keys and powers of the hash key
 * @enc: function for the key's length
 * @dec: the same
 * @icv_len: bytes of the ICV
 * @salt: first bytes of each nonce
 */
struct fw_crypto_key {
	struct gcm_key_data gcm;
	aes_gcm_enc_dec_t enc;
	aes_gcm_enc_dec_t dec;
	size_t icv_len;
	uint8_t salt[FW_AEAD_SALT_MAX];
};

/* Made once before there are threads, only read behind that. */
static IMB_MGR *manager;

int fw_ipsec_mb_init(void)
{
	IMB_ARCH arch;

	manager = alloc_mb_mgr(0);
	if (!manager)
		return -ENOMEM;
	init_mb_mgr_auto(manager, &arch);
	if (imb_get_errno(manager) || !(manager->features & IMB_FEATURE_AESNI)) {
		free_mb_mgr(manager);
		manager = NULL;
		return -ENODEV;
	}
	return 0;
}

static struct fw_crypto_key *gcm_key_alloc(const struct fw_crypto_ops *ops,
					   const struct fw_crypto_secret *secret)
{
	const uint8_t *key = secret->key;
	struct fw_crypto_key *k;

	if (!fw_crypto_lens_ok(ops, secret))
		return NULL;
	k = aligned_alloc(_Alignof(struct fw_crypto_key), sizeof(*k));
	if (!k)
		return NULL;

	memset(k, 0, sizeof(*k));
	switch (secret->key_len) {
	case 16:
		IMB_AES128_GCM_PRE(manager, key, &k->gcm);
		k->enc = manager->gcm128_enc;
		k->dec = manager->gcm128_dec;
		break;
	case 24:
		IMB_AES192_GCM_PRE(manager, key, &k->gcm);
		k->enc = manager->gcm192_enc;
		k->dec = manager->gcm192_dec;
		break;
	default:
		IMB_AES256_GCM_PRE(manager, key, &k->gcm);
		k->enc = manager->gcm256_enc;
		k->dec = manager->gcm256_dec;
		break;
	}
	k->icv_len = secret->icv_len;
	memcpy(k->salt, secret->salt, sizeof(k->salt));
	return k;
}

static void gcm_key_free(struct fw_crypto_key *key)
{
	if (!key)
		return;
	OPENSSL_cleanse(key, sizeof(*key));
	free(key);
}

static void gcm_encrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	struct gcm_context_data ctx;
	uint8_t nonce[FW_AEAD_NONCE_MAX];
	uint32_t i;

	memcpy(nonce, key->salt, sizeof(key->salt));
	for (i = 0; i < count; i++) {
		memcpy(nonce + FW_AEAD_SALT_MAX, ops[i].iv, FW_AEAD_IV_LEN);
		key->enc(&key->gcm, &ctx, ops[i].data, ops[i].data, ops[i].len, nonce, ops[i].aad,
			 ops[i].aad_len, ops[i].icv, key->icv_len);
		ops[i].ok = true;
	}
	OPENSSL_cleanse(&ctx, sizeof(ctx));
}

static void gcm_decrypt(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count)
{
	struct gcm_context_data ctx;
	uint8_t nonce[FW_AEAD_NONCE_MAX];
	uint8_t icv[FW_AEAD_ICV_MAX];
	uint32_t i;

	memcpy(nonce, key->salt, sizeof(key->salt));
	for (i = 0; i < count; i++) {
		memcpy(nonce + FW_AEAD_SALT_MAX, ops[i].iv, FW_AEAD_IV_LEN);
		key->dec(&key->gcm, &ctx, ops[i].data, ops[i].data, ops[i].len, nonce, ops[i].aad,
			 ops[i].aad_len, icv, key->icv_len);
		ops[i].ok = !CRYPTO_memcmp(icv, ops[i].icv, key->icv_len);
		/* The cipher is a key stream: applied again, it gives back what it was given. */
		if (!ops[i].ok && ops[i].restore)
			key->enc(&key->gcm, &ctx, ops[i].data, ops[i].data, ops[i].len, nonce,
				 ops[i].aad, ops[i].aad_len, icv, key->icv_len);
	}
	/* What is left of a forged packet's right ICV is nobody's to see. */
	OPENSSL_cleanse(icv, sizeof(icv));
	OPENSSL_cleanse(&ctx, sizeof(ctx));
}

const struct fw_crypto_ops fw_ipsec_mb_gcm = {
	.cipher = CORDON_CIPHER_AES_GCM,
	.auth = CORDON_AUTH_NONE,
	.name = "aes-gcm (ipsec-mb)",
	.iv_len = FW_AEAD_IV_LEN,
	.block = 4,
	.key_alloc = gcm_key_alloc,
	.key_free = gcm_key_free,
	.iv = fw_crypto_iv_number,
	.encrypt = gcm_encrypt,
	.decrypt = gcm_decrypt,
};

#endif
