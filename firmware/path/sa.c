// SPDX-License-Identifier: BSD-3-Clause
#include "path/sa.h"

#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>

#include "path/cfg.h"
#include "path/iphdr.h"
#include "path/spd.h"
#include "path/state.h"

uint32_t fw_sa_bitmap_words(uint32_t window)
{
	uint32_t words = 2;

	while (words * 64 < window + 64)
		words *= 2;
	return words;
}

uint32_t fw_sa_state_size(uint32_t window)
{
	return (uint32_t)sizeof(struct cordon_sa_state) + 8 * fw_sa_bitmap_words(window);
}

bool fw_next_hop_check(const struct cordon_next_hop *next_hop)
{
	return next_hop->valid <= 1 && !next_hop->reserved &&
	       (!next_hop->valid || next_hop->hop_limit);
}

/* The block of an SA without a window needs no bitmap. */
static uint32_t state_size(const struct cordon_sa_cfg *cfg)
{
	if (cfg->direction == CORDON_DIRECTION_IN && cfg->offload == CORDON_OFFLOAD_PACKET)
		return fw_sa_state_size(le32toh(cfg->replay_window));
	return sizeof(struct cordon_sa_state);
}

/* Is @value, 1 to 31, a bit of @mask? What may be is the range of the bits. */
static uint16_t check_enum(uint8_t value, uint32_t mask, uint16_t param,
			   struct cordon_cmd_completion *done)
{
	uint16_t status = CORDON_CMD_STATUS_UNSUPPORTED;

	if (value && value < 32 && mask & 1u << value)
		return CORDON_CMD_STATUS_OK;
	if (!mask)
		return fw_cfg_refuse(done, status, param, 0, 0);
	return fw_cfg_refuse(done, status, param, (uint64_t)__builtin_ctz(mask),
			     31u - (uint64_t)__builtin_clz(mask));
}

/* Is @len, in bytes, in @mask? The allowed range is told in bits. */
static uint16_t check_length(uint8_t len, uint64_t mask, uint16_t param,
			     struct cordon_cmd_completion *done)
{
	uint64_t min = mask ? 8 * ((uint64_t)__builtin_ctzll(mask) + 1) : 0;
	uint64_t max = mask ? 8 * (64 - (uint64_t)__builtin_clzll(mask)) : 0;

	if (len ? len <= 64 && mask & 1ull << (len - 1) : !mask)
		return CORDON_CMD_STATUS_OK;
	return fw_cfg_refuse(done, CORDON_CMD_STATUS_UNSUPPORTED, param, min, max);
}

static uint32_t present(const struct cordon_algorithm *algorithms, unsigned int count)
{
	uint32_t mask = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		if (algorithms[i].present)
			mask |= 1u << i;
	return mask;
}

/* A cipher that authenticates goes with no other authentication, any other needs one. */
static uint16_t check_auth(const struct cordon_sa_cfg *cfg, const struct cordon_cap_ipsec *caps,
			   bool combined, struct cordon_cmd_completion *done)
{
	if (!combined)
		return check_enum(cfg->auth, present(caps->auths, CORDON_AUTH_CNT),
				  CORDON_PARAM_AUTH, done);
	if (cfg->auth != CORDON_AUTH_NONE)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_AUTH,
				     CORDON_AUTH_NONE, CORDON_AUTH_NONE);
	return CORDON_CMD_STATUS_OK;
}

static uint16_t check_suite(const struct cordon_sa_cfg *cfg, const struct cordon_cap_ipsec *caps,
			    struct cordon_cmd_completion *done)
{
	uint16_t status = check_enum(cfg->cipher, present(caps->ciphers, CORDON_CIPHER_CNT),
				     CORDON_PARAM_CIPHER, done);
	const struct cordon_algorithm *cipher, *auth;

	if (status)
		return status;
	cipher = &caps->ciphers[cfg->cipher];
	status = check_auth(cfg, caps, cipher->icv_bytes, done);
	if (status)
		return status;
	auth = &caps->auths[cfg->auth];
	status = check_length(cfg->key_len, le64toh(cipher->key_bytes), CORDON_PARAM_KEY_LENGTH,
			      done);
	if (!status)
		status = check_length(cfg->auth_key_len, le64toh(auth->key_bytes),
				      CORDON_PARAM_KEY_LENGTH, done);
	if (!status)
		status = check_length(cfg->icv_len, le32toh(cipher->icv_bytes | auth->icv_bytes),
				      CORDON_PARAM_ICV_LENGTH, done);
	return status;
}

static uint16_t check_window(const struct cordon_sa_cfg *cfg, const struct cordon_cap_ipsec *caps,
			     struct cordon_cmd_completion *done)
{
	uint32_t window = le32toh(cfg->replay_window);
	uint32_t max = le32toh(caps->replay_window_max);
	bool guess = cfg->direction == CORDON_DIRECTION_IN &&
		     cfg->offload == CORDON_OFFLOAD_CRYPTO && le32toh(cfg->flags) & CORDON_SA_ESN;

	if (max > CORDON_REPLAY_WINDOW_MAX)
		max = CORDON_REPLAY_WINDOW_MAX;
	/* Card and host must guess upper halves alike, so the card must know the host's window. */
	if (guess && !window)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_REPLAY_WINDOW, 1,
				     max);
	if (cfg->direction == CORDON_DIRECTION_IN && window > max)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_UNSUPPORTED,
				     CORDON_PARAM_REPLAY_WINDOW, guess, max);
	return CORDON_CMD_STATUS_OK;
}

static uint16_t check_encap(const struct cordon_sa_cfg *cfg, struct cordon_cmd_completion *done)
{
	if (!(le32toh(cfg->flags) & CORDON_SA_ENCAP)) {
		if (cfg->encap_sport || cfg->encap_dport)
			return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_ENCAP, 0,
					     0);
		return CORDON_CMD_STATUS_OK;
	}
	/* Only this port is looked at for ESP. */
	if (cfg->direction == CORDON_DIRECTION_IN && be16toh(cfg->encap_dport) != FW_PORT_NAT_T)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_UNSUPPORTED, CORDON_PARAM_ENCAP,
				     FW_PORT_NAT_T, FW_PORT_NAT_T);
	/*
	 * UDP over IPv6 has a checksum over the ciphertext, and in crypto mode the header is the
	 * host's.
	 */
	if (cfg->offload == CORDON_OFFLOAD_CRYPTO && cfg->family == CORDON_FAMILY_INET6)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_UNSUPPORTED, CORDON_PARAM_ENCAP, 0, 0);
	return CORDON_CMD_STATUS_OK;
}

static uint16_t check_kind(const struct cordon_sa_cfg *cfg, const struct cordon_cap_ipsec *caps,
			   struct cordon_cmd_completion *done)
{
	uint32_t flags = le32toh(caps->sa_flags);
	uint16_t status;

	if (cfg->reserved[0] || cfg->reserved[1] || cfg->reserved[2])
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	if ((le32toh(cfg->handle) & CORDON_HANDLE_INDEX) >= le32toh(caps->sa_max))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_HANDLE, 0,
				     (uint64_t)le32toh(caps->sa_max) - 1);
	if (le32toh(cfg->flags) & ~flags)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_UNSUPPORTED, CORDON_PARAM_FLAGS, flags,
				     flags);
	if (cfg->direction != CORDON_DIRECTION_OUT && cfg->direction != CORDON_DIRECTION_IN)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_DIRECTION,
				     CORDON_DIRECTION_OUT, CORDON_DIRECTION_IN);
	status = check_enum(cfg->offload, le32toh(caps->offloads), CORDON_PARAM_OFFLOAD, done);
	if (!status)
		status = check_enum(cfg->mode, le32toh(caps->modes), CORDON_PARAM_MODE, done);
	if (!status)
		status = check_enum(cfg->family, le32toh(caps->families), CORDON_PARAM_FAMILY,
				    done);
	return status;
}

/* In BEET mode inner headers are made with the addresses of the selector. */
static bool has_inner_addresses(const struct cordon_sa_cfg *cfg)
{
	const struct cordon_selector *sel = &cfg->selector;
	uint8_t prefix = sel->family == CORDON_FAMILY_INET ? 32 : 128;

	if (cfg->mode != CORDON_MODE_BEET || cfg->offload != CORDON_OFFLOAD_PACKET)
		return true;
	return sel->family != CORDON_FAMILY_ANY && sel->saddr_prefix == prefix &&
	       sel->daddr_prefix == prefix;
}

uint16_t fw_sa_check(const struct cordon_sa_cfg *cfg, const struct cordon_cap_ipsec *caps,
		     struct cordon_cmd_completion *done)
{
	uint16_t status = check_kind(cfg, caps, done);

	if (!status)
		status = check_suite(cfg, caps, done);
	if (!status)
		status = check_window(cfg, caps, done);
	if (!status)
		status = check_encap(cfg, done);
	if (status)
		return status;

	if (!cfg->spi)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_SPI, 1,
				     UINT32_MAX);
	if (le64toh(cfg->state_addr) % 64 || le32toh(cfg->state_len) < state_size(cfg))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_STATE,
				     state_size(cfg), UINT32_MAX);
	if (!fw_selector_check(&cfg->selector))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_SELECTOR, 0, 0);
	if (!has_inner_addresses(cfg))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_UNSUPPORTED, CORDON_PARAM_SELECTOR, 0, 0);
	if (!fw_next_hop_check(&cfg->next_hop))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_NONE, 0, 0);
	return CORDON_CMD_STATUS_OK;
}

int fw_sa_init(struct fw_sa *sa, const struct cordon_sa_cfg *cfg)
{
	const struct fw_crypto_ops *ops = fw_crypto_find(cfg->cipher, cfg->auth);
	const struct fw_crypto_secret secret = {
		.key = cfg->key,
		.key_len = cfg->key_len,
		.auth_key = cfg->auth_key,
		.auth_key_len = cfg->auth_key_len,
		.salt = cfg->salt,
		.icv_len = cfg->icv_len,
	};

	if (!ops)
		return -EOPNOTSUPP;
	if (cfg->key_len > sizeof(cfg->key) || cfg->auth_key_len > sizeof(cfg->auth_key))
		return -EOPNOTSUPP;
	sa->crypto = ops->key_alloc(ops, &secret);
	if (!sa->crypto)
		return -ENOMEM;

	sa->ops = ops;
	sa->cfg = *cfg;
	OPENSSL_cleanse(sa->cfg.key, sizeof(sa->cfg.key));
	OPENSSL_cleanse(sa->cfg.auth_key, sizeof(sa->cfg.auth_key));
	OPENSSL_cleanse(sa->cfg.salt, sizeof(sa->cfg.salt));
	sa->words_mask = fw_sa_bitmap_words(le32toh(cfg->replay_window)) - 1;
	sa->next_hop = cfg->next_hop;
	sa->ip_id = &sa->own_ip_id;
	return 0;
}

void fw_sa_exit(struct fw_sa *sa)
{
	if (sa->ops)
		sa->ops->key_free(sa->crypto);
	OPENSSL_cleanse(sa, sizeof(*sa));
}

void fw_sa_drop(struct fw_sa *sa, enum cordon_result result)
{
	if (sa)
		fw_state_drop(sa, result);
}

void fw_sa_raise(struct fw_sa *sa, uint32_t flag, uint16_t type)
{
	if (fw_state_mark(sa, flag) && sa->event)
		sa->event(sa, type, 0);
}

bool fw_sa_expired(struct fw_sa *sa)
{
	if (!fw_state_is_expired(sa))
		return false;
	fw_sa_raise(sa, CORDON_SA_STATE_HARD, CORDON_EVENT_SA_HARD);
	return true;
}

void fw_sa_used(struct fw_sa *sa, uint32_t len)
{
	bool soft = fw_state_count(sa, len);

	fw_sa_raise(sa, CORDON_SA_STATE_USED, CORDON_EVENT_SA_FIRST_USE);
	if (soft)
		fw_sa_raise(sa, CORDON_SA_STATE_SOFT, CORDON_EVENT_SA_SOFT);
}
