// SPDX-License-Identifier: BSD-3-Clause
#include "path/segment.h"

#include <assert.h>
#include <errno.h>

#include "path/csum.h"
#include "path/iphdr.h"

#define TCP_FIN_PSH 0x09
#define TCP_CWR 0x80

int fw_segment_init(struct fw_segment *s, const struct fw_pkt *src, uint32_t header_len,
		    uint32_t mss, bool fixed_id)
{
	const uint8_t *l4 = fw_pkt_data(src) + src->l4;
	uint32_t l4_len;

	if (!src->l4 || src->is_fragment)
		return -EINVAL;
	if (src->l4_proto == FW_PROTO_TCP)
		l4_len = (l4[12] >> 4) * 4u;
	else if (src->l4_proto == FW_PROTO_UDP)
		l4_len = FW_UDP_LEN;
	else
		return -EINVAL;
	if (src->l4_proto == FW_PROTO_TCP && l4_len < 20)
		return -EINVAL;
	if (header_len != src->l4 + l4_len || header_len >= src->len)
		return -EINVAL;
	if (!mss || header_len > FW_PKT_FRAME_MAX || mss > FW_PKT_FRAME_MAX - header_len)
		return -EINVAL;

	*s = (struct fw_segment){
		.src = src, .header_len = header_len, .mss = mss, .fixed_id = fixed_id
	};
	return (int)((src->len - header_len + mss - 1) / mss);
}

static void segment_ip(const struct fw_segment *s, struct fw_pkt *dst)
{
	uint8_t *ip = fw_pkt_data(dst) + dst->l3;

	dst->l3_len = dst->len - dst->l3;
	if (dst->family == CORDON_FAMILY_INET6) {
		fw_put_be16(ip + 4, (uint16_t)(dst->l3_len - FW_IPV6_LEN));
		return;
	}
	fw_put_be16(ip + 2, (uint16_t)dst->l3_len);
	if (!s->fixed_id)
		fw_put_be16(ip + 4, (uint16_t)(fw_get_be16(ip + 4) + s->index));
	fw_put_be16(ip + 10, 0);
	fw_put_be16(ip + 10, fw_csum_fold(fw_csum_add(ip, (size_t)(ip[0] & 15) * 4, 0)));
}

static void segment_tcp(const struct fw_segment *s, uint8_t *tcp, bool last)
{
	fw_put_be32(tcp + 4, fw_get_be32(tcp + 4) + s->offset);
	if (!last)
		tcp[13] &= (uint8_t)~TCP_FIN_PSH;
	/* CWR answers one ECE: it's said once, RFC 3168 6.1.2. */
	if (s->index)
		tcp[13] &= (uint8_t)~TCP_CWR;
}

static void segment_csum(struct fw_pkt *dst)
{
	uint8_t *ip = fw_pkt_data(dst) + dst->l3;
	uint8_t *l4 = fw_pkt_data(dst) + dst->l4;
	uint32_t at = dst->l4_proto == FW_PROTO_TCP ? 16 : 6;
	uint32_t len = dst->len - dst->l4;
	uint64_t sum = fw_csum_pseudo(ip, dst->family, dst->l4_proto, len);
	uint16_t csum;

	fw_put_be16(l4 + at, 0);
	csum = fw_csum_fold(fw_csum_add(l4, len, sum));
	if (!csum && dst->l4_proto == FW_PROTO_UDP)
		csum = 0xffff;
	fw_put_be16(l4 + at, csum);
}

bool fw_segment_next(struct fw_segment *s, struct fw_pkt *dst)
{
	const struct fw_pkt *src = s->src;
	uint32_t left = src->len - s->header_len - s->offset;
	uint32_t payload = FW_MIN(left, s->mss);
	struct fw_pkt to = *dst;

	if (!left)
		return false;

	*dst = *src;
	dst->buf = to.buf;
	dst->size = to.size;
	dst->off = to.off;
	dst->len = s->header_len + payload;
	assert(dst->off <= dst->size && dst->len <= dst->size - dst->off);
	memcpy(fw_pkt_data(dst), fw_pkt_data(src), s->header_len);
	memcpy(fw_pkt_data(dst) + s->header_len, fw_pkt_data(src) + s->header_len + s->offset,
	       payload);

	segment_ip(s, dst);
	if (dst->l4_proto == FW_PROTO_TCP)
		segment_tcp(s, fw_pkt_data(dst) + dst->l4, payload == left);
	else
		fw_put_be16(fw_pkt_data(dst) + dst->l4 + 4, (uint16_t)(FW_UDP_LEN + payload));
	segment_csum(dst);

	s->offset += payload;
	s->index++;
	return true;
}
