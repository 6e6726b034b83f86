/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of one SA on their way to the crypto engine and back. Lives on the stack of who processes
 * a burst.
 */
#ifndef FW_PATH_ESP_BURST_H
#define FW_PATH_ESP_BURST_H

#include "path/iphdr.h"
#include "path/sa.h"

#define FW_ESP_AAD_MAX 12

/**
 * struct fw_esp_burst - packets of one SA
 * @count: packets
 * @ops: one for each
 * @aad: its additional data
 * @seqs: its number
 * @pkts: packets
 */
struct fw_esp_burst {
	uint32_t count;
	struct fw_crypto_op ops[FW_CRYPTO_BURST];
	uint8_t aad[FW_CRYPTO_BURST][FW_ESP_AAD_MAX];
	uint64_t seqs[FW_CRYPTO_BURST];
	struct fw_pkt *pkts[FW_CRYPTO_BURST];
};

/**
 * fw_esp_burst_add() - add a packet
 * @b: burst, not full
 * @p: packet with @sa; @esp is the offset of a whole ESP header and IV
 * @seq: its number
 * @len: bytes between IV and ICV
 *
 * Return: the operation, for what else there is to set.
 */
static inline struct fw_crypto_op *fw_esp_burst_add(struct fw_esp_burst *b, struct fw_pkt *p,
						    uint64_t seq, uint32_t len)
{
	struct fw_crypto_op *op = &b->ops[b->count];
	uint8_t *esp = fw_pkt_data(p) + p->esp;
	uint8_t *aad = b->aad[b->count];

	/* RFC 4106 5 and its like: SPI and sequence number, with ESN all 64 bits of it. */
	memcpy(aad, esp, 4);
	if (le32toh(p->sa->cfg.flags) & CORDON_SA_ESN) {
		fw_put_be64(aad + 4, seq);
		op->aad_len = 12;
	} else {
		fw_put_be32(aad + 4, (uint32_t)seq);
		op->aad_len = 8;
	}
	op->aad = aad;
	op->head = esp;
	op->iv = esp + FW_ESP_LEN;
	op->data = esp + FW_ESP_LEN + p->sa->ops->iv_len;
	op->len = len;
	op->icv = op->data + len;
	op->restore = false;
	op->ok = false;
	b->seqs[b->count] = seq;
	b->pkts[b->count] = p;
	b->count++;
	return op;
}

/** fw_esp_drop() - the packet goes no further: say why, and count it for its SA */
static inline void fw_esp_drop(struct fw_pkt *p, enum cordon_result result)
{
	p->result = result;
	fw_sa_drop(p->sa, result);
}

/** fw_esp_overhead() - bytes of ESP header and IV, and of a UDP header before them */
static inline uint32_t fw_esp_overhead(const struct fw_sa *sa)
{
	return (le32toh(sa->cfg.flags) & CORDON_SA_ENCAP ? FW_UDP_LEN : 0) + FW_ESP_LEN +
	       sa->ops->iv_len;
}

#endif
