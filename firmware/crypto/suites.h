/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engines' suites; crypto.c chooses among them.
 */
#ifndef FW_CRYPTO_SUITES_H
#define FW_CRYPTO_SUITES_H

#include "crypto/crypto.h"

#define FW_GCM_SALT_LEN 4
#define FW_GCM_IV_LEN 8
#define FW_GCM_NONCE_LEN 12
#define FW_GCM_ICV_MAX 16

/* AES-GCM for ESP, RFC 4106, by OpenSSL. */
extern const struct fw_crypto_ops fw_openssl_gcm;

/* The same by intel-ipsec-mb's single-buffer functions. */
extern const struct fw_crypto_ops fw_ipsec_mb_gcm;

/**
 * fw_ipsec_mb_init() - set up the library for this CPU; once
 *
 * Return: 0, -ENOMEM, or -ENODEV if the CPU lacks what it needs or its own self-test fails.
 */
int fw_ipsec_mb_init(void);

/**
 * fw_gcm_lens_ok() - key and ICV lengths that RFC 4106 knows
 * @key_len: bytes of the key
 * @auth_key_len: bytes of a key that a combined suite doesn't have
 * @icv_len: bytes of the ICV
 *
 * Return: true if they are.
 */
static inline bool fw_gcm_lens_ok(size_t key_len, size_t auth_key_len, size_t icv_len)
{
	return (key_len == 16 || key_len == 24 || key_len == 32) && !auth_key_len &&
	       (icv_len == 8 || icv_len == 12 || icv_len == 16);
}

/**
 * fw_crypto_selftest_suite() - known answers of one engine's suite
 * @ops: suite
 *
 * Return: 0, or -EIO.
 */
int fw_crypto_selftest_suite(const struct fw_crypto_ops *ops);

#endif
