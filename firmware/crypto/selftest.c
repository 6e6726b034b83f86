// SPDX-License-Identifier: BSD-3-Clause
/*
 * Known answers of each algorithm.
 *
 * A cipher is tried with its text, an authentication with a message from ESP header to ICV; where
 * the two are separate, the latter with the NULL cipher.
 */
#include <errno.h>
#include <string.h>

#include "cordon/ipsec.h"
#include "crypto/suites.h"

#define MESSAGE_MAX 160
#define HEAD_LEN 8

/**
 * struct known_answer - a vector, in hexadecimal
 * @cipher: enum cordon_cipher
 * @auth: enum cordon_auth; for a cipher without authentication any does
 * @key: cipher key
 * @auth_key: authentication key
 * @salt: salt
 * @iv: IV
 * @aad: additional data
 * @plain: plain text
 * @text: cipher text, NULL: it's the plain text
 * @head: what lies before the IV, NULL: not part of the vector
 * @icv: ICV, NULL: not part of the vector
 */
struct known_answer {
	uint8_t cipher;
	uint8_t auth;
	const char *key;
	const char *auth_key;
	const char *salt;
	const char *iv;
	const char *aad;
	const char *plain;
	const char *text;
	const char *head;
	const char *icv;
};

#define GCM_KEY "feffe9928665731c6d6a8f9467308308"
#define GCM_PLAIN                                                                       \
	"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809" \
	"532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define HI_KEY "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"
/* "Hi There" */
#define HI "4869205468657265"

#define CBC_PLAIN "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"

static const struct known_answer answers[] = {
	/* McGrew, Viega: The Galois/Counter Mode of Operation, appendix B, cases 4, 10, 16. */
	{ .cipher = CORDON_CIPHER_AES_GCM, .key = GCM_KEY, .salt = "cafebabe",
	  .iv = "facedbaddecaf888", .aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2",
	  .plain = GCM_PLAIN,
	  .text = "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b254"
		  "66931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
	  .icv = "5bc94fbc3221a5db94fae95ae7121a47" },
	{ .cipher = CORDON_CIPHER_AES_GCM, .key = GCM_KEY "feffe9928665731c",
	  .salt = "cafebabe", .iv = "facedbaddecaf888",
	  .aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2", .plain = GCM_PLAIN,
	  .text = "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c1"
		  "44c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
	  .icv = "2519498e80f1478f37ba55bd6d27618c" },
	{ .cipher = CORDON_CIPHER_AES_GCM, .key = GCM_KEY GCM_KEY, .salt = "cafebabe",
	  .iv = "facedbaddecaf888", .aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2",
	  .plain = GCM_PLAIN,
	  .text = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590d"
		  "bb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
	  .icv = "76fc6ece0f4e1768cddf8853bb2d551b" },
	/* Made with Python's cryptography: nothing is encrypted, the IV is authenticated too. */
	{ .cipher = CORDON_CIPHER_AES_GMAC, .key = GCM_KEY, .salt = "cafebabe",
	  .iv = "facedbaddecaf888", .aad = "0000100100000005",
	  .plain = "d9313225f88406e5a55909c5aff5269a86a7a953",
	  .icv = "3b37d23a3ea994f220fbfa72d3d6ecb3" },
	/* Wycheproof, aes_ccm_test.json, 264. */
	{ .cipher = CORDON_CIPHER_AES_CCM, .key = "1d286e525ec2864d9ea6e7adfbdc4970",
	  .salt = "1ad448", .iv = "79f1947abd503dce", .aad = "1db0eaaaa1e2c848",
	  .plain = "7b40e6c987692d0202cb6f44b423c267dd",
	  .text = "84f91f9d35b998598e50feb34dcaa0d260",
	  .icv = "ae4e38cc4b730944bc459df85a536f4e" },
	/* RFC 8439 2.8.2. */
	{ .cipher = CORDON_CIPHER_CHACHA20_POLY1305,
	  .key = "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
	  .salt = "07000000", .iv = "4041424344454647", .aad = "50515253c0c1c2c3c4c5c6c7",
	  .plain = "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f6620"
		   "2739393a204966204920636f756c64206f6666657220796f75206f6e6c79206f6e652074697020"
		   "666f7220746865206675747572652c2073756e73637265656e20776f756c642062652069742e",
	  .text = "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9"
		  "671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328"
		  "091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116",
	  .icv = "1ae10b594f09e26a7e902ecbd0600691" },
	/* RFC 3602 4, case 1. */
	{ .cipher = CORDON_CIPHER_AES_CBC, .key = "06a9214036b8a15b512e03d534120006",
	  .iv = "3dafba429d9eb430b422da802c9fac41", .plain = "53696e676c6520626c6f636b206d7367",
	  .text = "e353779c1079aeb82708942dbe77181a" },
	/* NIST SP 800-38A F.2.3, F.2.5. */
	{ .cipher = CORDON_CIPHER_AES_CBC,
	  .key = "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
	  .iv = "000102030405060708090a0b0c0d0e0f", .plain = CBC_PLAIN,
	  .text = "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a" },
	{ .cipher = CORDON_CIPHER_AES_CBC,
	  .key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
	  .iv = "000102030405060708090a0b0c0d0e0f", .plain = CBC_PLAIN,
	  .text = "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d" },
	/* RFC 3686 6, vectors 1, 4, 7. */
	{ .cipher = CORDON_CIPHER_AES_CTR, .key = "ae6852f8121067cc4bf7a5765577f39e",
	  .salt = "00000030", .iv = "0000000000000000",
	  .plain = "53696e676c6520626c6f636b206d7367",
	  .text = "e4095d4fb7a7b3792d6175a3261311b8" },
	{ .cipher = CORDON_CIPHER_AES_CTR, .key = "16af5b145fc9f579c175f93e3bfb0eed863d06ccfdb78515",
	  .salt = "00000048", .iv = "36733c147d6d93cb",
	  .plain = "53696e676c6520626c6f636b206d7367",
	  .text = "4b55384fe259c9c84e7935a003cbe928" },
	{ .cipher = CORDON_CIPHER_AES_CTR,
	  .key = "776beff2851db06f4c8a0542c8696f6c6a81af1eec96b4d37fc1d689e6c1c104",
	  .salt = "00000060", .iv = "db5672c97aa8f0b2",
	  .plain = "53696e676c6520626c6f636b206d7367",
	  .text = "145ad01dbf824ec7560863dc71e3e0c0" },
	/* RFC 2202 3, RFC 4231 4.2. */
	{ .auth = CORDON_AUTH_HMAC_SHA1, .auth_key = HI_KEY, .head = HI,
	  .icv = "b617318655057264e28bc0b6" },
	{ .auth = CORDON_AUTH_HMAC_SHA256, .auth_key = HI_KEY, .head = HI,
	  .icv = "b0344c61d8db38535ca8afce" },
	{ .auth = CORDON_AUTH_HMAC_SHA256, .auth_key = HI_KEY, .head = HI,
	  .icv = "b0344c61d8db38535ca8afceaf0bf12b" },
	{ .auth = CORDON_AUTH_HMAC_SHA384, .auth_key = HI_KEY, .head = HI,
	  .icv = "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec6" },
	{ .auth = CORDON_AUTH_HMAC_SHA512, .auth_key = HI_KEY, .head = HI,
	  .icv = "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde" },
	/* RFC 3566 4.6, case 3. */
	{ .auth = CORDON_AUTH_AES_XCBC, .auth_key = "000102030405060708090a0b0c0d0e0f",
	  .head = "0001020304050607", .plain = "08090a0b0c0d0e0f",
	  .icv = "d2a246fa349b68a79998a439" },
	/* RFC 4493 4, example 2. */
	{ .auth = CORDON_AUTH_AES_CMAC, .auth_key = "2b7e151628aed2a6abf7158809cf4f3c",
	  .head = "6bc1bee22e409f96", .plain = "e93d7e117393172a",
	  .icv = "070a16b46b4d4144f79bdd9d" },
};

static unsigned int nibble(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Return: bytes. */
static size_t unhex(const char *text, uint8_t *to)
{
	size_t n = 0;

	for (; text && *text; text += 2)
		to[n++] = (uint8_t)(nibble(text[0]) << 4 | nibble(text[1]));
	return n;
}

/* An answer for the cipher; or for the authentication alone, which the NULL cipher shows. */
static bool is_about(const struct known_answer *ka, const struct fw_crypto_ops *ops)
{
	if (ka->cipher)
		return ka->cipher == ops->cipher;
	return ops->cipher == CORDON_CIPHER_NULL && ka->auth == ops->auth;
}

/* Bytes of any ICV that the suite has, for vectors without one. */
static void fill_auth(struct fw_crypto_secret *secret, uint8_t auth)
{
	static const uint8_t lens[] = { [CORDON_AUTH_HMAC_SHA1] = 12, [CORDON_AUTH_HMAC_SHA256] = 16,
					[CORDON_AUTH_HMAC_SHA384] = 24, [CORDON_AUTH_HMAC_SHA512] = 32,
					[CORDON_AUTH_AES_XCBC] = 12, [CORDON_AUTH_AES_CMAC] = 12 };

	if (secret->icv_len || !auth)
		return;
	secret->auth_key_len = 16;
	secret->icv_len = lens[auth];
}

static bool run(const struct fw_crypto_ops *ops, const struct fw_crypto_key *key,
		const struct known_answer *ka)
{
	uint8_t buf[MESSAGE_MAX + 64] = { 0 };
	uint8_t aad[24], plain[MESSAGE_MAX], text[MESSAGE_MAX], icv[FW_CRYPTO_ICV_MAX];
	size_t len = unhex(ka->plain, plain), icv_len = unhex(ka->icv, icv);
	struct fw_crypto_op op = { .head = buf, .iv = buf + HEAD_LEN, .aad = aad };

	if (!ka->text)
		memcpy(text, plain, len);
	else if (unhex(ka->text, text) != len)
		return false;
	unhex(ka->head, buf);
	op.data = buf + HEAD_LEN + unhex(ka->iv, buf + HEAD_LEN);
	op.len = (uint32_t)len;
	op.icv = op.data + len;
	op.aad_len = (uint32_t)unhex(ka->aad, aad);

	memcpy(op.data, plain, len);
	ops->encrypt(key, &op, 1);
	if (!op.ok || memcmp(op.data, text, len) || memcmp(op.icv, icv, icv_len))
		return false;
	ops->decrypt(key, &op, 1);
	if (!op.ok || memcmp(op.data, plain, len))
		return false;

	/* An engine that takes everything for genuine must not pass. */
	memcpy(op.data, text, len);
	op.icv[0] ^= 1;
	op.ok = true;
	ops->decrypt(key, &op, 1);
	return !op.ok;
}

static bool answer_is_right(const struct fw_crypto_ops *ops, const struct known_answer *ka)
{
	uint8_t key_bytes[64], auth_key[64] = { 0 }, salt[FW_AEAD_SALT_MAX], icv[FW_CRYPTO_ICV_MAX];
	struct fw_crypto_secret secret = {
		.key = key_bytes,
		.key_len = unhex(ka->key, key_bytes),
		.auth_key = auth_key,
		.auth_key_len = unhex(ka->auth_key, auth_key),
		.salt = salt,
		.icv_len = unhex(ka->icv, icv),
	};
	struct fw_crypto_key *key;
	bool right;

	unhex(ka->salt, salt);
	fill_auth(&secret, ops->auth);
	key = ops->key_alloc(ops, &secret);
	if (!key)
		return false;
	right = run(ops, key, ka);
	ops->key_free(key);
	return right;
}

int fw_crypto_selftest_suite(const struct fw_crypto_ops *ops)
{
	unsigned int known = 0;
	size_t i;

	for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		if (!is_about(&answers[i], ops))
			continue;
		if (!answer_is_right(ops, &answers[i]))
			return -EIO;
		known++;
	}
	return known ? 0 : -EIO;
}
