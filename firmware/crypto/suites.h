/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engines' suites; crypto.c chooses among them.
 */
#ifndef FW_CRYPTO_SUITES_H
#define FW_CRYPTO_SUITES_H

#include "crypto/crypto.h"

#define FW_AEAD_IV_LEN 8
#define FW_AEAD_ICV_MAX 16
#define FW_AEAD_SALT_MAX 4
#define FW_AEAD_NONCE_MAX 12

/* Combined suites by OpenSSL: AES-GCM, AES-GMAC, AES-CCM, ChaCha20-Poly1305. */
extern const struct fw_crypto_ops fw_openssl_aead[];
extern const unsigned int fw_openssl_aead_cnt;

/* Ciphers with an authentication of its own, by OpenSSL: each with each. */
extern const struct fw_crypto_ops fw_openssl_pair[];
extern const unsigned int fw_openssl_pair_cnt;

/* AES-GCM by intel-ipsec-mb's single-buffer functions. */
extern const struct fw_crypto_ops fw_ipsec_mb_gcm;

/**
 * fw_ipsec_mb_init() - set up the library for this CPU; once
 *
 * Return: 0, -ENOMEM, or -ENODEV if the CPU lacks what it needs or its own self-test fails.
 */
int fw_ipsec_mb_init(void);

/**
 * fw_crypto_lens_ok() - does a suite take keys and an ICV of such lengths
 * @ops: suite
 * @secret: keys
 *
 * Return: true if it does.
 */
bool fw_crypto_lens_ok(const struct fw_crypto_ops *ops, const struct fw_crypto_secret *secret);

/**
 * fw_crypto_salt_len() - bytes of a cipher's salt
 * @cipher: enum cordon_cipher
 *
 * Return: bytes.
 */
unsigned int fw_crypto_salt_len(uint8_t cipher);

/**
 * fw_crypto_iv_number() - the IV of counter modes: the number, most significant byte first
 * @key: not used
 * @seq: number
 * @iv: 8 bytes
 *
 * Return: true.
 */
bool fw_crypto_iv_number(const struct fw_crypto_key *key, uint64_t seq, uint8_t *iv);

/**
 * fw_crypto_selftest_suite() - known answers of one engine's suite
 * @ops: suite
 *
 * Return: 0, or -EIO.
 */
int fw_crypto_selftest_suite(const struct fw_crypto_ops *ops);

#endif
