/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Suites: a cipher that authenticates, or a cipher and an authentication. One table of operations
 * for each; the data path calls them for bursts and never asks which suite it is.
 */
#ifndef FW_CRYPTO_H
#define FW_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FW_CRYPTO_BURST 64
#define FW_CRYPTO_ICV_MAX 32

struct cordon_algorithm;
struct fw_crypto_key;

/**
 * struct fw_crypto_op - one packet
 * @data: first byte that is encrypted or decrypted, in place
 * @len: bytes of it
 * @head: where authentication begins, the ESP header: @iv and @data follow it without a gap. Used by
 *	suites that authenticate with an algorithm of its own
 * @iv: the explicit IV; the suite adds the salt
 * @aad: additional authenticated data: SPI and number
 * @aad_len: bytes of it (8, or 12 with ESN)
 * @icv: where the ICV is written or read
 * @restore: decrypt: when the ICV is wrong, @data is as it was
 * @ok: encrypt: it was done; decrypt: the ICV is right
 */
struct fw_crypto_op {
	uint8_t *data;
	uint32_t len;
	uint32_t aad_len;
	const uint8_t *head;
	const uint8_t *iv;
	const uint8_t *aad;
	uint8_t *icv;
	bool restore;
	bool ok;
};

/**
 * struct fw_crypto_secret - what a key is made of
 * @key: cipher key
 * @key_len: bytes of it
 * @auth_key: authentication key
 * @auth_key_len: bytes of it
 * @salt: salt, as many bytes as the suite has
 * @icv_len: bytes of the ICV
 */
struct fw_crypto_secret {
	const uint8_t *key;
	size_t key_len;
	const uint8_t *auth_key;
	size_t auth_key_len;
	const uint8_t *salt;
	size_t icv_len;
};

/**
 * struct fw_crypto_ops - a suite
 * @cipher: enum cordon_cipher
 * @auth: enum cordon_auth
 * @name: for messages
 * @iv_len: bytes of the IV in the packet
 * @block: payload and trailer are padded to a multiple of it (4 or more)
 * @key_alloc: expand a key; Return: NULL if out of memory or the lengths are wrong
 * @key_free: wipe and free, NULL is fine
 * @iv: make the IV of packet @seq, @iv_len bytes that never come twice under the key. Counter modes
 *	take the number itself; CBC's can't be foreseen by who doesn't have the key. Return: false if
 *	there is none, and the packet must not be sent
 * @encrypt: encrypt a burst of up to FW_CRYPTO_BURST packets, all of one key
 * @decrypt: verify and decrypt a burst; tags are compared in constant time. When the ICV is wrong,
 *	@ok is false and @data may hold anything, unless @restore is set
 *
 * A key is used by one thread at a time.
 */
struct fw_crypto_ops {
	uint8_t cipher;
	uint8_t auth;
	const char *name;
	uint8_t iv_len;
	uint8_t block;
	struct fw_crypto_key *(*key_alloc)(const struct fw_crypto_ops *ops,
					   const struct fw_crypto_secret *secret);
	void (*key_free)(struct fw_crypto_key *key);
	bool (*iv)(const struct fw_crypto_key *key, uint64_t seq, uint8_t *iv);
	void (*encrypt)(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count);
	void (*decrypt)(const struct fw_crypto_key *key, struct fw_crypto_op *ops, uint32_t count);
};

/**
 * fw_crypto_find() - operations of a suite
 * @cipher: enum cordon_cipher
 * @auth: enum cordon_auth
 *
 * Return: NULL if the suite isn't there.
 */
const struct fw_crypto_ops *fw_crypto_find(uint8_t cipher, uint8_t auth);

/**
 * fw_crypto_limits() - what is there of each algorithm, for the capabilities
 * @ciphers: CORDON_CIPHER_CNT records to fill, by enum cordon_cipher
 * @auths: CORDON_AUTH_CNT records to fill, by enum cordon_auth
 */
void fw_crypto_limits(struct cordon_algorithm *ciphers, struct cordon_algorithm *auths);

/**
 * fw_crypto_init() - set up the engines; once, before anything else here
 *
 * Return: 0, or -ENODEV if an engine fails its known answers.
 */
int fw_crypto_init(void);

/**
 * fw_crypto_selftest() - known answers of each suite
 *
 * Return: 0, or -EIO.
 */
int fw_crypto_selftest(void);

#endif
