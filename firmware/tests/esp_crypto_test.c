// SPDX-License-Identifier: BSD-3-Clause
/*
 * ESP in crypto mode against plain OpenSSL.
 */
#include "tests/esp.h"

static const struct sa_spec crypto_shapes[] = {
	{ "crypto 4", OUT, CRYPTO, TRANSPORT, 4, 4, 16, 16, 0, 64, 0 },
	{ "crypto 6", OUT, CRYPTO, TUNNEL, 6, 6, 32, 16, 0, 64, 0 },
	{ "crypto 4 ESN", OUT, CRYPTO, TUNNEL, 4, 4, 16, 16, CORDON_SA_ESN, 64, 0xffffffffull - 100 },
	{ "crypto 6 ESN", OUT, CRYPTO, TRANSPORT, 6, 6, 24, 12, CORDON_SA_ESN, 64, 0x1ffffffffull - 100 },
	{ "crypto 4 UDP", OUT, CRYPTO, TRANSPORT, 4, 4, 16, 8, CORDON_SA_ENCAP, 64, 0 },
};

/* A whole ESP packet as the stack makes it: text in clear, junk for IV and ICV. */
static void make_crypto(const struct sa_spec *spec, uint64_t seq, uint32_t len)
{
	static uint8_t text[9000];

	test_fill(text, len);
	sa_seal(spec, pkt, seq, text, len);
	memcpy(fw_pkt_data(pkt) + pkt->esp + 16, text, len);
	memset(fw_pkt_data(pkt) + pkt->esp + 8, 0xdd, 8);
	memset(fw_pkt_data(pkt) + pkt->esp + 16 + len, 0xdd, pkt->len - pkt->esp - 16 - len);
}

static void test_crypto(void **unused)
{
	const struct sa_spec *spec;
	struct fw_sa *sa, *peer;
	uint64_t seq;
	uint32_t len;

	(void)unused;
	for (spec = crypto_shapes; spec < crypto_shapes + ARRAY_CNT(crypto_shapes); spec++) {
		sa = sa_make(spec);
		peer = peer_of(spec);
		for (len = 4; len < 800; len += 4) {
			uint32_t icv_len = spec->icv_len;
			uint8_t *esp;

			seq = spec->seq + len / 4;
			make_crypto(spec, seq, len);
			save();
			pkt->sa = sa;
			fw_esp_out_crypto(&pkt, &seq, 1);
			check_eq(spec->desc, pkt->result, CORDON_RESULT_OK);
			check_eq(spec->desc, pkt->len, copy->len);
			esp = fw_pkt_data(pkt) + pkt->esp;
			check(spec->desc, !memcmp(fw_pkt_data(pkt), fw_pkt_data(copy), pkt->esp + 8));
			check_eq(spec->desc, fw_get_be32(esp + 8), seq >> 32);
			check_eq(spec->desc, fw_get_be32(esp + 12), (uint32_t)seq);
			check(spec->desc, memcmp(esp + 16, fw_pkt_data(copy) + copy->esp + 16, len));
			check(spec->desc, sa_crypt(spec, false, esp, len, seq));
			check(spec->desc, !memcmp(esp + 16, fw_pkt_data(copy) + copy->esp + 16, len));
			check(spec->desc, sa_crypt(spec, true, esp, len, seq));

			/* Forged: as it came. */
			esp[16 + len - 1] ^= 0x80;
			save();
			check_eq(spec->desc, in(peer), CORDON_RESULT_AUTH_FAILED);
			check_eq(spec->desc, pkt->flags, CORDON_RX_SA_CRYPTO);
			check(spec->desc, pkt->len == copy->len && !memcmp(fw_pkt_data(pkt), fw_pkt_data(copy), pkt->len));
			esp[16 + len - 1] ^= 0x80;

			save();
			sa_crypt(spec, false, fw_pkt_data(copy) + copy->esp, len, seq);
			check_eq(spec->desc, in(peer), CORDON_RESULT_OK);
			check_eq(spec->desc, pkt->flags, CORDON_RX_SA_CRYPTO);
			/* Nothing is removed: decrypted text between what was there. */
			check(spec->desc, pkt->len == copy->len && !memcmp(fw_pkt_data(pkt), fw_pkt_data(copy), pkt->len - icv_len));
			check_eq(spec->desc, peer->state->seq, spec->flags & CORDON_SA_ESN ? seq : 0);
		}
		/* The host counts. */
		check_eq(spec->desc, sa->state->packets + peer->state->packets, 0);
		check_eq(spec->desc, sa_events(sa)->first_use + sa_events(peer)->first_use, 0);
		sa_free(sa);
		sa_free(peer);
	}
}

static void test_crypto_refused(void **unused)
{
	const struct sa_spec *spec = &crypto_shapes[0];
	struct fw_sa *sa = sa_make(spec);
	struct fw_sa *peer = peer_of(&crypto_shapes[2]);
	uint64_t seq = 7;
	uint32_t cut;

	(void)unused;
	for (cut = 0; cut < 60; cut++) {
		make_crypto(spec, seq, 20);
		pkt->len -= cut;
		pkt->sa = sa;
		fw_esp_out_crypto(&pkt, &seq, 1);
		check_eq("cut short", pkt->result, cut % 4 == 0 && cut <= 16 ? CORDON_RESULT_OK : CORDON_RESULT_SA_MISMATCH);
	}
	make_crypto(spec, seq + 1, 20);
	pkt->sa = sa;
	fw_esp_out_crypto(&pkt, &seq, 1);
	check_eq("other number", pkt->result, CORDON_RESULT_SA_MISMATCH);
	make_crypto(spec, seq, 20);
	fw_pkt_data(pkt)[pkt->esp] ^= 1;
	pkt->sa = sa;
	fw_esp_out_crypto(&pkt, &seq, 1);
	check_eq("other SPI", pkt->result, CORDON_RESULT_SA_MISMATCH);
	make_crypto(spec, seq, 20);
	pkt->sa = sa;
	pkt->esp = 0;
	fw_esp_out_crypto(&pkt, &seq, 1);
	check_eq("no ESP", pkt->result, CORDON_RESULT_SA_MISMATCH);
	pkt->sa = NULL;
	fw_esp_out_crypto(&pkt, &seq, 1);
	check_eq("no SA", pkt->result, CORDON_RESULT_SA_GONE);
	sa->cfg.direction = IN;
	make_crypto(spec, seq, 20);
	pkt->sa = sa;
	fw_esp_out_crypto(&pkt, &seq, 1);
	check_eq("IN SA", pkt->result, CORDON_RESULT_SA_MISMATCH);

	/* IN: what the card can't do goes up as it came. */
	sa_seal(&crypto_shapes[2], pkt, 9, "0123456789ab\x01\x02\x02\x06", 16);
	pkt->len--;
	save();
	check_eq("cut short", in(peer), CORDON_RESULT_OK);
	check_eq("cut short", pkt->flags, 0);
	check("cut short", !memcmp(fw_pkt_data(pkt), fw_pkt_data(copy), pkt->len));
	free(peer->state);
	peer->state = NULL;
	sa_seal(&crypto_shapes[2], pkt, 9, "0123456789ab\x01\x02\x02\x06", 16);
	check_eq("no state block for ESN", in(peer), CORDON_RESULT_OK);
	check_eq("no state block for ESN", pkt->flags, 0);
	sa_free(sa);
	sa_free(peer);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crypto),
		cmocka_unit_test(test_crypto_refused),
	};

	return cmocka_run_group_tests(tests, esp_start, esp_stop);
}
