// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: IPsec offload, algorithms.
 *
 * One table says what an algorithm is called by the stack and by the card, and what of it could be
 * offloaded; the card says what it takes of that. SAs are judged, commands are filled and the
 * limits are published from these two and nothing else.
 *
 * What isn't in the table is left to the stack on purpose, 3DES and MD5 among it.
 *
 * An extack message has room for 80 characters.
 */

#include <linux/bitops.h>
#include <linux/seq_file.h>
#include <net/xfrm.h>

#include "cordon_ipsec.h"

/* The longest list of lengths or names. */
#define SUITE_LIST_SIZE 48

/* What a refusal of a name leaves of a message's 80 characters for the name and the list. */
#define SUITE_NAME_ROOM (80 - (int)sizeof("cordon:  not supported, allowed: "))

/* As in struct cordon_algorithm, for keys and ICVs. */
#define SUITE_BYTES(len) BIT_ULL((len) - 1)
#define SUITE_KEYS_AES (SUITE_BYTES(16) | SUITE_BYTES(24) | SUITE_BYTES(32))
#define SUITE_KEYS_ANY GENMASK_ULL(CORDON_KEY_MAX - 1, 0)

enum suite_kind {
	SUITE_AEAD,
	SUITE_CIPHER,
	SUITE_AUTH,
};

/**
 * struct suite_algorithm - an algorithm
 * @name: the stack's name
 * @label: a shorter one, for messages
 * @geniv: the stack's IV generator, NULL if there is no IV
 * @key_bytes: bit n - 1: a key of n bytes, without salt
 * @icv_bytes: bit n - 1: an ICV of n bytes
 * @kind: whether it does both, encrypts, or authenticates
 * @id: enum cordon_cipher, with SUITE_AUTH enum cordon_auth
 * @salt_len: bytes of the salt that follow the key
 */
struct suite_algorithm {
	const char *name;
	const char *label;
	const char *geniv;
	u64 key_bytes;
	u32 icv_bytes;
	enum suite_kind kind;
	u8 id;
	u8 salt_len;
};

static const struct suite_algorithm algorithms[] = {
	{
		.name = "rfc4106(gcm(aes))",
		.label = "gcm",
		.geniv = "seqiv",
		.key_bytes = SUITE_KEYS_AES,
		.icv_bytes = SUITE_BYTES(8) | SUITE_BYTES(12) | SUITE_BYTES(16),
		.kind = SUITE_AEAD,
		.id = CORDON_CIPHER_AES_GCM,
		.salt_len = 4,
	}, {
		.name = "rfc4543(gcm(aes))",
		.label = "gmac",
		.geniv = "seqiv",
		.key_bytes = SUITE_KEYS_AES,
		.icv_bytes = SUITE_BYTES(16),
		.kind = SUITE_AEAD,
		.id = CORDON_CIPHER_AES_GMAC,
		.salt_len = 4,
	}, {
		.name = "rfc4309(ccm(aes))",
		.label = "ccm",
		.geniv = "seqiv",
		.key_bytes = SUITE_KEYS_AES,
		.icv_bytes = SUITE_BYTES(8) | SUITE_BYTES(12) | SUITE_BYTES(16),
		.kind = SUITE_AEAD,
		.id = CORDON_CIPHER_AES_CCM,
		.salt_len = 3,
	}, {
		.name = "rfc7539esp(chacha20,poly1305)",
		.label = "chacha20",
		.geniv = "seqiv",
		.key_bytes = SUITE_BYTES(32),
		.icv_bytes = SUITE_BYTES(16),
		.kind = SUITE_AEAD,
		.id = CORDON_CIPHER_CHACHA20_POLY1305,
		.salt_len = 4,
	}, {
		.name = "cbc(aes)",
		.label = "cbc",
		.geniv = "echainiv",
		.key_bytes = SUITE_KEYS_AES,
		.kind = SUITE_CIPHER,
		.id = CORDON_CIPHER_AES_CBC,
	}, {
		.name = "rfc3686(ctr(aes))",
		.label = "ctr",
		.geniv = "seqiv",
		.key_bytes = SUITE_KEYS_AES,
		.kind = SUITE_CIPHER,
		.id = CORDON_CIPHER_AES_CTR,
		.salt_len = 4,
	}, {
		.name = "ecb(cipher_null)",
		.label = "null",
		.kind = SUITE_CIPHER,
		.id = CORDON_CIPHER_NULL,
	}, {
		.name = "hmac(sha1)",
		.label = "sha1",
		.key_bytes = SUITE_KEYS_ANY,
		.icv_bytes = SUITE_BYTES(12),
		.kind = SUITE_AUTH,
		.id = CORDON_AUTH_HMAC_SHA1,
	}, {
		.name = "hmac(sha256)",
		.label = "sha256",
		.key_bytes = SUITE_KEYS_ANY,
		.icv_bytes = SUITE_BYTES(12) | SUITE_BYTES(16),
		.kind = SUITE_AUTH,
		.id = CORDON_AUTH_HMAC_SHA256,
	}, {
		.name = "hmac(sha384)",
		.label = "sha384",
		.key_bytes = SUITE_KEYS_ANY,
		.icv_bytes = SUITE_BYTES(24),
		.kind = SUITE_AUTH,
		.id = CORDON_AUTH_HMAC_SHA384,
	}, {
		.name = "hmac(sha512)",
		.label = "sha512",
		.key_bytes = SUITE_KEYS_ANY,
		.icv_bytes = SUITE_BYTES(32),
		.kind = SUITE_AUTH,
		.id = CORDON_AUTH_HMAC_SHA512,
	}, {
		.name = "xcbc(aes)",
		.label = "xcbc",
		.key_bytes = SUITE_BYTES(16),
		.icv_bytes = SUITE_BYTES(12),
		.kind = SUITE_AUTH,
		.id = CORDON_AUTH_AES_XCBC,
	}, {
		.name = "cmac(aes)",
		.label = "cmac",
		.key_bytes = SUITE_BYTES(16),
		.icv_bytes = SUITE_BYTES(12),
		.kind = SUITE_AUTH,
		.id = CORDON_AUTH_AES_CMAC,
	},
};

static const char *const kind_names[] = {
	[SUITE_AEAD] = "aead",
	[SUITE_CIPHER] = "enc",
	[SUITE_AUTH] = "auth",
};

/**
 * struct suite_limits - what is taken of an algorithm now
 * @key_bytes: bit n - 1: a key of n bytes, without salt
 * @icv_bytes: bit n - 1: an ICV of n bytes
 * @present: the algorithm is taken at all
 */
struct suite_limits {
	u64 key_bytes;
	u32 icv_bytes;
	bool present;
};

/* A card that understands an algorithm otherwise than the stack does doesn't have it. */
static struct suite_limits get_limits(const struct cordon_caps_ipsec *caps,
				      const struct suite_algorithm *alg)
{
	const struct cordon_caps_algorithm *cap;
	struct suite_limits limits;

	cap = alg->kind == SUITE_AUTH ? &caps->auths[alg->id] : &caps->ciphers[alg->id];
	limits.key_bytes = alg->key_bytes & cap->key_bytes;
	limits.icv_bytes = alg->icv_bytes & cap->icv_bytes;
	limits.present = cap->present && cap->salt_len == alg->salt_len &&
			 !limits.key_bytes == !alg->key_bytes &&
			 !limits.icv_bytes == !alg->icv_bytes;

	return limits;
}

static const struct suite_algorithm *find_algorithm(enum suite_kind kind, const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(algorithms); i++)
		if (algorithms[i].kind == kind && !strcmp(algorithms[i].name, name))
			return &algorithms[i];

	return NULL;
}

/* Labels of what is taken. */
static const char *list_labels(char *buf, size_t size, const struct cordon_caps_ipsec *caps,
			       enum suite_kind kind)
{
	size_t i, len = 0;

	for (i = 0; i < ARRAY_SIZE(algorithms); i++)
		if (algorithms[i].kind == kind && get_limits(caps, &algorithms[i]).present)
			len += scnprintf(buf + len, size - len, "%s%s", len ? " " : "",
					 algorithms[i].label);
	if (!len)
		scnprintf(buf, size, "none");

	return buf;
}

/* Lengths in bits, "128 192 256"; of more than two that follow each other, "8-512". */
static const char *list_bits(char *buf, size_t size, u64 bytes, u32 salt_len)
{
	u32 first, last, low, high;
	size_t len = 0;

	for (first = 1; first <= 64; first = last + 1) {
		last = first;
		if (!(bytes & SUITE_BYTES(first)))
			continue;
		while (last < 64 && bytes & SUITE_BYTES(last + 1))
			last++;
		low = (first + salt_len) * BITS_PER_BYTE;
		high = (last + salt_len) * BITS_PER_BYTE;
		len += scnprintf(buf + len, size - len, "%s%u", len ? " " : "", low);
		if (last != first)
			len += scnprintf(buf + len, size - len, "%c%u",
					 last == first + 1 ? ' ' : '-', high);
	}

	return len ? buf : "none";
}

/* Is there a bit in @bytes for a length of @bits? */
static bool has_bits(u64 bytes, u32 bits)
{
	return bits && bits % BITS_PER_BYTE == 0 && bits <= 64 * BITS_PER_BYTE &&
	       bytes & SUITE_BYTES(bits / BITS_PER_BYTE);
}

static int check_name(const struct cordon_caps_ipsec *caps, enum suite_kind kind, const char *name,
		      struct netlink_ext_ack *extack)
{
	const struct suite_algorithm *alg = find_algorithm(kind, name);
	char list[SUITE_LIST_SIZE];

	if (alg && get_limits(caps, alg).present)
		return 0;

	/* Rather the end of a long name is missing than that of the list. */
	list_labels(list, sizeof(list), caps, kind);
	NL_SET_ERR_MSG_FMT_MOD(extack, "%.*s not supported, allowed: %s",
			       SUITE_NAME_ROOM - (int)strlen(list), name, list);

	return -EOPNOTSUPP;
}

static int check_key(const struct suite_algorithm *alg, const struct suite_limits *limits, u32 bits,
		     struct netlink_ext_ack *extack)
{
	u32 salt_bits = alg->salt_len * BITS_PER_BYTE;
	char list[SUITE_LIST_SIZE];

	if (!limits->key_bytes && !bits)
		return 0;
	if (bits >= salt_bits && has_bits(limits->key_bytes, bits - salt_bits))
		return 0;

	NL_SET_ERR_MSG_FMT_MOD(extack, "%s key of %u bits not supported, allowed: %s%s", alg->label,
			       bits,
			       list_bits(list, sizeof(list), limits->key_bytes, alg->salt_len),
			       salt_bits ? " (with salt)" : "");

	return -EOPNOTSUPP;
}

static int check_icv(const struct suite_algorithm *alg, const struct suite_limits *limits, u32 bits,
		     struct netlink_ext_ack *extack)
{
	char list[SUITE_LIST_SIZE];

	if (has_bits(limits->icv_bytes, bits))
		return 0;

	NL_SET_ERR_MSG_FMT_MOD(extack, "%s ICV of %u bits not supported, allowed: %s", alg->label,
			       bits, list_bits(list, sizeof(list), limits->icv_bytes, 0));

	return -EOPNOTSUPP;
}

/* In crypto mode the stack's own IVs stand beside those of the card. */
static int check_geniv(const struct suite_algorithm *alg, const struct xfrm_state *x,
		       struct netlink_ext_ack *extack)
{
	if (x->geniv == alg->geniv ||
	    (x->geniv && alg->geniv && !strcmp(x->geniv, alg->geniv)))
		return 0;

	NL_SET_ERR_MSG_FMT_MOD(extack, "IV generator %.16s not supported, allowed: %s",
			       x->geniv ?: "none", alg->geniv ?: "none");

	return -EOPNOTSUPP;
}

static int check_aead(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
		      struct netlink_ext_ack *extack)
{
	const struct suite_algorithm *alg;
	struct suite_limits limits;
	int err;

	if (x->ealg || x->aalg) {
		NL_SET_ERR_MSG_MOD(extack, "aead beside enc or auth not supported, allowed: alone");
		return -EOPNOTSUPP;
	}

	err = check_name(caps, SUITE_AEAD, x->aead->alg_name, extack);
	if (err)
		return err;
	alg = find_algorithm(SUITE_AEAD, x->aead->alg_name);
	limits = get_limits(caps, alg);
	err = check_key(alg, &limits, x->aead->alg_key_len, extack);
	if (err)
		return err;
	err = check_icv(alg, &limits, x->aead->alg_icv_len, extack);
	if (err)
		return err;

	return check_geniv(alg, x, extack);
}

static int check_cipher(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
			struct netlink_ext_ack *extack)
{
	const struct suite_algorithm *alg;
	struct suite_limits limits;
	char list[SUITE_LIST_SIZE];
	int err;

	if (!x->ealg) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "enc missing, allowed: %s",
				       list_labels(list, sizeof(list), caps, SUITE_CIPHER));
		return -EOPNOTSUPP;
	}

	err = check_name(caps, SUITE_CIPHER, x->ealg->alg_name, extack);
	if (err)
		return err;
	alg = find_algorithm(SUITE_CIPHER, x->ealg->alg_name);
	limits = get_limits(caps, alg);
	err = check_key(alg, &limits, x->ealg->alg_key_len, extack);
	if (err)
		return err;

	return check_geniv(alg, x, extack);
}

static int check_auth(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
		      struct netlink_ext_ack *extack)
{
	const struct suite_algorithm *alg;
	struct suite_limits limits;
	char list[SUITE_LIST_SIZE];
	int err;

	/* RFC 4303 1: confidentiality without integrity can be undone by who changes packets. */
	if (!x->aalg) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "auth missing, allowed: %s",
				       list_labels(list, sizeof(list), caps, SUITE_AUTH));
		return -EOPNOTSUPP;
	}

	err = check_name(caps, SUITE_AUTH, x->aalg->alg_name, extack);
	if (err)
		return err;
	alg = find_algorithm(SUITE_AUTH, x->aalg->alg_name);
	limits = get_limits(caps, alg);
	err = check_key(alg, &limits, x->aalg->alg_key_len, extack);
	if (err)
		return err;

	return check_icv(alg, &limits, x->aalg->alg_trunc_len, extack);
}

/**
 * cordon_ipsec_suite_check() - judge the algorithms of an SA
 * @caps: what the card takes
 * @x: SA
 * @extack: says what is refused, and what would be allowed
 *
 * Context: process.
 * Return: 0, -EOPNOTSUPP.
 */
int cordon_ipsec_suite_check(const struct cordon_caps_ipsec *caps, const struct xfrm_state *x,
			     struct netlink_ext_ack *extack)
{
	int err;

	if (x->calg) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "compression %.20s not supported, allowed: none",
				       x->calg->alg_name);
		return -EOPNOTSUPP;
	}
	if (x->aead)
		return check_aead(caps, x, extack);

	err = check_cipher(caps, x, extack);
	if (err)
		return err;

	return check_auth(caps, x, extack);
}

/* The salt follows the key (RFC 4106 8.1, RFC 3686 5.1). */
static void fill_cipher(struct cordon_sa_cfg *cfg, const struct suite_algorithm *alg,
			const char *key, u32 bits)
{
	cfg->cipher = alg->id;
	cfg->key_len = bits / BITS_PER_BYTE - alg->salt_len;
	memcpy(cfg->key, key, cfg->key_len);
	memcpy(cfg->salt, key + cfg->key_len, alg->salt_len);
}

/**
 * cordon_ipsec_suite_fill() - algorithms and keys of an SA, for the card
 * @cfg: where to write, zeroed
 * @x: SA that cordon_ipsec_suite_check() has passed
 *
 * Context: any.
 */
void cordon_ipsec_suite_fill(struct cordon_sa_cfg *cfg, const struct xfrm_state *x)
{
	if (x->aead) {
		cfg->auth = CORDON_AUTH_NONE;
		cfg->icv_len = x->aead->alg_icv_len / BITS_PER_BYTE;
		fill_cipher(cfg, find_algorithm(SUITE_AEAD, x->aead->alg_name), x->aead->alg_key,
			    x->aead->alg_key_len);
		return;
	}

	fill_cipher(cfg, find_algorithm(SUITE_CIPHER, x->ealg->alg_name), x->ealg->alg_key,
		    x->ealg->alg_key_len);
	cfg->auth = find_algorithm(SUITE_AUTH, x->aalg->alg_name)->id;
	cfg->icv_len = x->aalg->alg_trunc_len / BITS_PER_BYTE;
	cfg->auth_key_len = x->aalg->alg_key_len / BITS_PER_BYTE;
	memcpy(cfg->auth_key, x->aalg->alg_key, cfg->auth_key_len);
}

/**
 * cordon_ipsec_suite_show() - print which algorithms, keys and ICVs are taken
 * @file: where to print
 * @caps: what the card takes
 *
 * Context: process.
 */
void cordon_ipsec_suite_show(struct seq_file *file, const struct cordon_caps_ipsec *caps)
{
	char list[SUITE_LIST_SIZE];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(algorithms); i++) {
		const struct suite_algorithm *alg = &algorithms[i];
		struct suite_limits limits = get_limits(caps, alg);

		if (!limits.present)
			continue;
		seq_printf(file, "%s %s: key %s", kind_names[alg->kind], alg->name,
			   limits.key_bytes ? list_bits(list, sizeof(list), limits.key_bytes,
							alg->salt_len) : "0");
		if (limits.icv_bytes)
			seq_printf(file, " icv %s",
				   list_bits(list, sizeof(list), limits.icv_bytes, 0));
		seq_putc(file, '\n');
	}
}
