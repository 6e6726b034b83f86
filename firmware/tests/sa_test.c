// SPDX-License-Identifier: BSD-3-Clause
#include "path/sa.c"

#include "tests/sa.h"

static const struct cordon_cap_ipsec caps = {
	.sa_max = 1024,
	.policy_max = 16,
	.modes = 1u << CORDON_MODE_TRANSPORT | 1u << CORDON_MODE_TUNNEL,
	.offloads = 1u << CORDON_OFFLOAD_CRYPTO | 1u << CORDON_OFFLOAD_PACKET,
	.sa_flags = CORDON_SA_ESN | CORDON_SA_ENCAP | CORDON_SA_NO_ECN,
	.replay_window_max = 4096,
	.families = 1u << CORDON_FAMILY_INET | 1u << CORDON_FAMILY_INET6,
	.ciphers = {
		[CORDON_CIPHER_AES_CBC] = { .present = 1, .key_bytes = 1ull << 15 },
		[CORDON_CIPHER_AES_GCM] = { .present = 1, .key_bytes = 1ull << 15 | 1ull << 31, .icv_bytes = 1u << 15, .salt_len = 4 },
	},
	.auths = {
		[CORDON_AUTH_HMAC_SHA256] = { .present = 1, .key_bytes = ~0ull, .icv_bytes = 1u << 11 | 1u << 15 },
	},
};

static const struct sa_spec out_spec = {
	.direction = CORDON_DIRECTION_OUT, .offload = CORDON_OFFLOAD_PACKET, .mode = CORDON_MODE_TUNNEL, .family = 4, .window = 0,
};

static const struct sa_spec in_spec = {
	.direction = CORDON_DIRECTION_IN, .offload = CORDON_OFFLOAD_PACKET, .mode = CORDON_MODE_TRANSPORT, .family = 6, .window = 64,
};

/* One thing changed in a good configuration. */
struct row {
	const char *desc;
	size_t offset;
	size_t size;
	uint64_t value;
	bool in;
	uint16_t status;
	uint16_t param;
	uint64_t min;
	uint64_t max;
};

#define FIELD(member) offsetof(struct cordon_sa_cfg, member), sizeof(((struct cordon_sa_cfg *)NULL)->member)
#define GOOD CORDON_CMD_STATUS_OK
#define INVALID CORDON_CMD_STATUS_INVALID
#define UNSUPPORTED CORDON_CMD_STATUS_UNSUPPORTED

static const struct row rows[] = {
	{ "greatest index", FIELD(handle), 0xff0003ff, false, GOOD, 0, 0, 0 },
	{ "index too great", FIELD(handle), 0x400, false, INVALID, CORDON_PARAM_HANDLE, 0, 1023 },
	{ "reserved", FIELD(reserved), 1, false, INVALID, CORDON_PARAM_RESERVED, 0, 0 },
	{ "flag that isn't offered", FIELD(flags), CORDON_SA_NO_DSCP, false, UNSUPPORTED, CORDON_PARAM_FLAGS, 7, 7 },
	{ "flag that doesn't exist", FIELD(flags), 1u << 31, false, UNSUPPORTED, CORDON_PARAM_FLAGS, 7, 7 },
	{ "flags", FIELD(flags), CORDON_SA_ESN | CORDON_SA_NO_ECN, false, GOOD, 0, 0, 0 },
	{ "SPI 0", FIELD(spi), 0, false, INVALID, CORDON_PARAM_SPI, 1, UINT32_MAX },
	{ "direction 0", FIELD(direction), 0, false, INVALID, CORDON_PARAM_DIRECTION, 1, 2 },
	{ "direction forward", FIELD(direction), 3, false, INVALID, CORDON_PARAM_DIRECTION, 1, 2 },
	{ "offload 0", FIELD(offload), 0, false, UNSUPPORTED, CORDON_PARAM_OFFLOAD, 1, 2 },
	{ "offload 3", FIELD(offload), 3, false, UNSUPPORTED, CORDON_PARAM_OFFLOAD, 1, 2 },
	{ "mode BEET", FIELD(mode), CORDON_MODE_BEET, false, UNSUPPORTED, CORDON_PARAM_MODE, 1, 2 },
	{ "mode 255", FIELD(mode), 255, false, UNSUPPORTED, CORDON_PARAM_MODE, 1, 2 },
	{ "family 5", FIELD(family), 5, false, UNSUPPORTED, CORDON_PARAM_FAMILY, 4, 6 },
	{ "no cipher", FIELD(cipher), 0, false, UNSUPPORTED, CORDON_PARAM_CIPHER, 2, 4 },
	{ "cipher 3", FIELD(cipher), 3, false, UNSUPPORTED, CORDON_PARAM_CIPHER, 2, 4 },
	{ "cipher 33", FIELD(cipher), 33, false, UNSUPPORTED, CORDON_PARAM_CIPHER, 2, 4 },
	{ "cipher without authentication", FIELD(cipher), CORDON_CIPHER_AES_CBC, false, UNSUPPORTED, CORDON_PARAM_AUTH, 2, 2 },
	{ "two authentications", FIELD(auth), CORDON_AUTH_HMAC_SHA256, false, INVALID, CORDON_PARAM_AUTH, 0, 0 },
	{ "ICV of 12", FIELD(icv_len), 12, false, UNSUPPORTED, CORDON_PARAM_ICV_LENGTH, 128, 128 },
	{ "ICV of 48", FIELD(icv_len), 48, false, UNSUPPORTED, CORDON_PARAM_ICV_LENGTH, 128, 128 },
	{ "key of 32", FIELD(key_len), 32, false, GOOD, 0, 0, 0 },
	{ "key of 24", FIELD(key_len), 24, false, UNSUPPORTED, CORDON_PARAM_KEY_LENGTH, 128, 256 },
	{ "key of 20", FIELD(key_len), 20, false, UNSUPPORTED, CORDON_PARAM_KEY_LENGTH, 128, 256 },
	{ "key of 255", FIELD(key_len), 255, false, UNSUPPORTED, CORDON_PARAM_KEY_LENGTH, 128, 256 },
	{ "two keys", FIELD(auth_key_len), 20, false, UNSUPPORTED, CORDON_PARAM_KEY_LENGTH, 0, 0 },
	{ "no window", FIELD(replay_window), 0, true, GOOD, 0, 0, 0 },
	{ "window too great", FIELD(replay_window), 4097, true, UNSUPPORTED, CORDON_PARAM_REPLAY_WINDOW, 0, 4096 },
	{ "window far too great", FIELD(replay_window), UINT32_MAX, true, UNSUPPORTED, CORDON_PARAM_REPLAY_WINDOW, 0, 4096 },
	{ "window greater than the block", FIELD(replay_window), 65, true, INVALID, CORDON_PARAM_STATE,
	  sizeof(struct cordon_sa_state) + 32, UINT32_MAX },
	{ "ports without encapsulation", FIELD(encap_sport), 17, false, INVALID, CORDON_PARAM_ENCAP, 0, 0 },
	{ "block not aligned", FIELD(state_addr), 0x1020, false, INVALID, CORDON_PARAM_STATE, sizeof(struct cordon_sa_state), UINT32_MAX },
	{ "block without bitmap", FIELD(state_len), sizeof(struct cordon_sa_state) + 15, true, INVALID, CORDON_PARAM_STATE,
	  sizeof(struct cordon_sa_state) + 16, UINT32_MAX },
	{ "OUT block without bitmap", FIELD(state_len), sizeof(struct cordon_sa_state), false, GOOD, 0, 0, 0 },
	{ "OUT block too short", FIELD(state_len), sizeof(struct cordon_sa_state) - 1, false, INVALID, CORDON_PARAM_STATE,
	  sizeof(struct cordon_sa_state), UINT32_MAX },
	{ "selector", FIELD(selector.family), 7, false, INVALID, CORDON_PARAM_SELECTOR, 0, 0 },
	{ "next hop without hop limit", FIELD(next_hop.hop_limit), 0, false, INVALID, CORDON_PARAM_NONE, 0, 0 },
	{ "next hop half valid", FIELD(next_hop.valid), 2, false, INVALID, CORDON_PARAM_NONE, 0, 0 },
};

static void test_check(void **unused)
{
	struct cordon_cmd_completion done;
	struct cordon_sa_cfg cfg;
	const struct row *r;

	(void)unused;
	for (r = rows; r < rows + ARRAY_CNT(rows); r++) {
		memset(&done, 0, sizeof(done));
		sa_cfg(&cfg, r->in ? &in_spec : &out_spec);
		check_eq(r->desc, fw_sa_check(&cfg, &caps, &done), GOOD);
		memcpy((uint8_t *)&cfg + r->offset, &r->value, r->size);
		check_eq(r->desc, fw_sa_check(&cfg, &caps, &done), r->status);
		check_eq(r->desc, done.param, r->param);
		check_eq(r->desc, done.min, r->min);
		check_eq(r->desc, done.max, r->max);
	}
}

static void test_check_together(void **unused)
{
	struct cordon_cap_ipsec none = caps;
	struct cordon_cmd_completion done = { 0 };
	struct cordon_sa_cfg cfg;

	(void)unused;
	sa_cfg(&cfg, &in_spec);
	cfg.offload = CORDON_OFFLOAD_CRYPTO;
	cfg.replay_window = 0;
	cfg.state_len = sizeof(struct cordon_sa_state);
	check_eq("crypto without a window", fw_sa_check(&cfg, &caps, &done), GOOD);
	cfg.flags = CORDON_SA_ESN;
	check_eq("crypto with ESN needs it", fw_sa_check(&cfg, &caps, &done), INVALID);
	check_eq("crypto with ESN needs it", done.param, CORDON_PARAM_REPLAY_WINDOW);
	check_eq("crypto with ESN needs it", done.min, 1);
	cfg.replay_window = 4096;
	check_eq("but no bitmap", fw_sa_check(&cfg, &caps, &done), GOOD);
	cfg.flags = CORDON_SA_ENCAP;
	cfg.encap_dport = htobe16(4500);
	check_eq("crypto, UDP, IPv6", fw_sa_check(&cfg, &caps, &done), UNSUPPORTED);
	check_eq("crypto, UDP, IPv6", done.param, CORDON_PARAM_ENCAP);
	cfg.family = CORDON_FAMILY_INET;
	check_eq("crypto, UDP, IPv4", fw_sa_check(&cfg, &caps, &done), GOOD);
	cfg.encap_dport = htobe16(4501);
	check_eq("IN, other port", fw_sa_check(&cfg, &caps, &done), UNSUPPORTED);
	check_eq("IN, other port", done.param, CORDON_PARAM_ENCAP);
	check_eq("IN, other port", done.min, 4500);
	check_eq("IN, other port", done.max, 4500);
	sa_cfg(&cfg, &out_spec);
	cfg.flags = CORDON_SA_ENCAP;
	cfg.encap_dport = htobe16(4501);
	check_eq("OUT, other port", fw_sa_check(&cfg, &caps, &done), GOOD);

	sa_cfg(&cfg, &out_spec);
	none.offloads = 0;
	check_eq("nothing is offered", fw_sa_check(&cfg, &none, &done), UNSUPPORTED);
	check_eq("nothing is offered", done.param, CORDON_PARAM_OFFLOAD);
	check_eq("nothing is offered", done.max, 0);
	none.offloads = caps.offloads;
	none.ciphers[CORDON_CIPHER_AES_GCM].key_bytes = 1ull << 31;
	check_eq("only 256 bits", fw_sa_check(&cfg, &none, &done), UNSUPPORTED);
	check_eq("only 256 bits", done.min, 256);
	none.ciphers[CORDON_CIPHER_AES_GCM].key_bytes = 1ull << 23;
	check_eq("no key length", fw_sa_check(&cfg, &none, &done), UNSUPPORTED);
	check_eq("no key length", done.max, 192);

	sa_cfg(&cfg, &out_spec);
	cfg.cipher = CORDON_CIPHER_AES_CBC;
	cfg.auth = CORDON_AUTH_HMAC_SHA256;
	check_eq("no authentication key", fw_sa_check(&cfg, &caps, &done), UNSUPPORTED);
	check_eq("no authentication key", done.param, CORDON_PARAM_KEY_LENGTH);
	check_eq("no authentication key", done.max, 512);
	cfg.auth_key_len = 64;
	check_eq("two algorithms", fw_sa_check(&cfg, &caps, &done), GOOD);
	cfg.icv_len = 12;
	check_eq("the shorter ICV", fw_sa_check(&cfg, &caps, &done), GOOD);
	cfg.icv_len = 14;
	check_eq("another ICV", fw_sa_check(&cfg, &caps, &done), UNSUPPORTED);
	check_eq("another ICV", done.min, 96);
	cfg.auth_key_len = 65;
	check_eq("too long a key", fw_sa_check(&cfg, &caps, &done), UNSUPPORTED);
}

static void test_sizes(void **unused)
{
	static const struct {
		uint32_t window;
		uint32_t words;
	} sizes[] = { { 0, 2 }, { 1, 2 }, { 64, 2 }, { 65, 4 }, { 192, 4 }, { 193, 8 }, { 4032, 64 }, { 4033, 128 }, { 4096, 128 } };
	unsigned int i;

	(void)unused;
	for (i = 0; i < ARRAY_CNT(sizes); i++) {
		assert_int_equal(fw_sa_bitmap_words(sizes[i].window), sizes[i].words);
		assert_int_equal(fw_sa_state_size(sizes[i].window), sizeof(struct cordon_sa_state) + 8 * sizes[i].words);
	}
}

/* Keys don't stay behind in what is kept of the configuration. */
static void test_init(void **unused)
{
	static const uint8_t zero[CORDON_KEY_MAX];
	struct cordon_sa_cfg cfg;
	struct fw_sa sa = { 0 };

	(void)unused;
	sa_cfg(&cfg, &in_spec);
	memset(cfg.auth_key, 7, sizeof(cfg.auth_key));
	assert_int_equal(fw_sa_init(&sa, &cfg), 0);
	assert_non_null(sa.crypto);
	assert_memory_equal(sa.cfg.key, zero, sizeof(sa.cfg.key));
	assert_memory_equal(sa.cfg.auth_key, zero, sizeof(sa.cfg.auth_key));
	assert_memory_equal(sa.cfg.salt, zero, sizeof(sa.cfg.salt));
	assert_int_equal(sa.words_mask, 1);
	assert_memory_equal(&sa.next_hop, &cfg.next_hop, sizeof(sa.next_hop));
	fw_sa_exit(&sa);
	assert_null(sa.crypto);
	fw_sa_exit(&sa);

	cfg.cipher = 9;
	assert_int_equal(fw_sa_init(&sa, &cfg), -EOPNOTSUPP);
	cfg.cipher = CORDON_CIPHER_AES_GCM;
	cfg.key_len = 65;
	assert_int_equal(fw_sa_init(&sa, &cfg), -EOPNOTSUPP);
	fw_sa_exit(&sa);
}

static void test_drop(void **unused)
{
	struct fw_sa *sa = sa_make(&in_spec);
	void *state = sa->state;

	(void)unused;
	fw_sa_drop(NULL, CORDON_RESULT_REPLAY);
	fw_sa_drop(sa, CORDON_RESULT_POLICY_BLOCK);
	fw_sa_drop(sa, CORDON_RESULT_OK);
	assert_int_equal(sa_drops(sa, CORDON_RESULT_POLICY_BLOCK), 1);
	sa->state = NULL;
	fw_sa_drop(sa, CORDON_RESULT_POLICY_BLOCK);
	sa->state = state;
	assert_int_equal(sa_drops(sa, CORDON_RESULT_POLICY_BLOCK), 1);
	sa_free(sa);
}

/* Events come once, as the block remembers; and it may forget. */
static void test_events(void **unused)
{
	struct fw_sa *sa = sa_make(&in_spec);
	unsigned int i;

	(void)unused;
	sa->state->soft_packets = 2;
	sa->state->hard_packets = 3;
	for (i = 0; i < 3; i++) {
		assert_false(fw_sa_expired(sa));
		fw_sa_used(sa, 10);
	}
	assert_true(fw_sa_expired(sa));
	assert_true(fw_sa_expired(sa));
	assert_int_equal(sa_events(sa)->first_use, 1);
	assert_int_equal(sa_events(sa)->soft, 1);
	assert_int_equal(sa_events(sa)->hard, 1);
	assert_int_equal(sa->state->packets, 3);
	assert_int_equal(sa->state->bytes, 30);
	assert_int_equal(sa->state->flags, CORDON_SA_STATE_USED | CORDON_SA_STATE_SOFT | CORDON_SA_STATE_HARD);
	sa->state->hard_packets = 4;
	assert_false(fw_sa_expired(sa));
	sa->state->hard_bytes = 30;
	assert_true(fw_sa_expired(sa));
	sa->event = NULL;
	sa->state->flags = 0;
	fw_sa_used(sa, 1);
	assert_true(fw_sa_expired(sa));
	sa_free(sa);
}

static int start(void **unused)
{
	(void)unused;
	return fw_crypto_init();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check), cmocka_unit_test(test_check_together), cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_init),  cmocka_unit_test(test_events),
		cmocka_unit_test(test_drop),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
