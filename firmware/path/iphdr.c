// SPDX-License-Identifier: BSD-3-Clause
#include "path/iphdr.h"

#include "path/csum.h"

#define ECN_MASK 0x03
#define ECN_ECT0 0x02
#define ECN_CE 0x03
/* RFC 8200 5: what each link carries without fragmentation. */
#define IPV6_MIN_MTU 1280

void fw_iphdr_set_ipv4(uint8_t *ip, unsigned int offset, uint16_t value)
{
	uint32_t sum = (uint16_t)~fw_get_be16(ip + 10);

	sum += (uint16_t)~fw_get_be16(ip + offset);
	sum += value;
	fw_put_be16(ip + offset, value);
	fw_put_be16(ip + 10, fw_csum_fold(sum));
}

static uint8_t encap_dsfield(uint8_t inner, uint32_t flags)
{
	uint8_t dscp = flags & CORDON_SA_NO_DSCP ? 0 : inner & ~ECN_MASK;
	uint8_t ecn = inner & ECN_MASK;

	if (ecn == ECN_CE)
		ecn = ECN_ECT0;
	if (flags & CORDON_SA_NO_ECN)
		ecn = 0;
	return dscp | ecn;
}

static uint16_t encap_df(const uint8_t *inner, const struct fw_outer *outer)
{
	if (outer->flags & CORDON_SA_NO_PMTU_DISC)
		return 0;
	if (outer->inner_family == CORDON_FAMILY_INET)
		return fw_get_be16(inner + 6) & FW_IPV4_DF;
	return outer->inner_len <= IPV6_MIN_MTU ? 0 : FW_IPV4_DF;
}

static void encap_ipv4(uint8_t *ip, const uint8_t *inner, const struct fw_outer *outer)
{
	uint16_t df = encap_df(inner, outer);

	ip[0] = 0x45;
	ip[1] = encap_dsfield(fw_iphdr_dsfield(inner, outer->inner_family), outer->flags);
	fw_put_be16(ip + 2, (uint16_t)outer->len);
	fw_put_be16(ip + 4, df ? 0 : outer->id);
	fw_put_be16(ip + 6, df);
	ip[8] = outer->hop_limit;
	ip[9] = outer->proto;
	fw_put_be16(ip + 10, 0);
	memcpy(ip + 12, outer->saddr, 4);
	memcpy(ip + 16, outer->daddr, 4);
	fw_put_be16(ip + 10, fw_csum_fold(fw_csum_add(ip, FW_IPV4_LEN, 0)));
}

static void encap_ipv6(uint8_t *ip, const uint8_t *inner, const struct fw_outer *outer)
{
	uint8_t dsfield = encap_dsfield(fw_iphdr_dsfield(inner, outer->inner_family), outer->flags);
	uint32_t label =
		outer->inner_family == CORDON_FAMILY_INET6 ? fw_get_be32(inner) & 0xfffff : 0;

	fw_put_be32(ip, 6u << 28 | (uint32_t)dsfield << 20 | label);
	fw_put_be16(ip + 4, (uint16_t)(outer->len - FW_IPV6_LEN));
	ip[6] = outer->proto;
	ip[7] = outer->hop_limit;
	memcpy(ip + 8, outer->saddr, 16);
	memcpy(ip + 24, outer->daddr, 16);
}

void fw_iphdr_encap(uint8_t *ip, const uint8_t *inner, const struct fw_outer *outer)
{
	if (outer->family == CORDON_FAMILY_INET)
		encap_ipv4(ip, inner, outer);
	else
		encap_ipv6(ip, inner, outer);
}

static void translate_ipv4(uint8_t *ip, const uint8_t *from, bool from_ipv4,
			   const struct fw_outer *to)
{
	ip[0] = 0x45;
	fw_put_be16(ip + 2, (uint16_t)to->len);
	if (from_ipv4)
		memcpy(ip + 4, from + 4, 4);
	else
		fw_put_be32(ip + 4, FW_IPV4_DF);
	ip[9] = to->proto;
	fw_put_be16(ip + 10, 0);
	memcpy(ip + 12, to->saddr, 4);
	memcpy(ip + 16, to->daddr, 4);
}

void fw_iphdr_translate(uint8_t *ip, const uint8_t *from, uint8_t from_family,
			const struct fw_outer *to)
{
	bool from_ipv4 = from_family == CORDON_FAMILY_INET;
	uint8_t hop_limit = from[from_ipv4 ? 8 : 7];
	uint8_t dsfield = fw_iphdr_dsfield(from, from_family);
	uint32_t label = from_ipv4 ? 0 : fw_get_be32(from) & 0xfffff;

	if (to->family == CORDON_FAMILY_INET) {
		ip[1] = dsfield;
		ip[8] = hop_limit;
		translate_ipv4(ip, from, from_ipv4, to);
		fw_put_be16(ip + 10, fw_csum_fold(fw_csum_add(ip, FW_IPV4_LEN, 0)));
		return;
	}
	fw_put_be32(ip, 6u << 28 | (uint32_t)dsfield << 20 | label);
	fw_put_be16(ip + 4, (uint16_t)(to->len - FW_IPV6_LEN));
	ip[6] = to->proto;
	ip[7] = hop_limit;
	memcpy(ip + 8, to->saddr, 16);
	memcpy(ip + 24, to->daddr, 16);
}

void fw_iphdr_decap(uint8_t *inner, uint8_t family, uint8_t outer, uint32_t flags)
{
	uint8_t was = fw_iphdr_dsfield(inner, family);
	uint8_t now = was;

	if (flags & CORDON_SA_DECAP_DSCP)
		now = (now & ECN_MASK) | (outer & ~ECN_MASK);
	if (!(flags & CORDON_SA_NO_ECN) && (outer & ECN_MASK) == ECN_CE && (was & ECN_MASK))
		now |= ECN_CE;
	if (now == was)
		return;
	if (family == CORDON_FAMILY_INET)
		fw_iphdr_set_ipv4(inner, 0, (uint16_t)(inner[0] << 8 | now));
	else
		fw_put_be16(inner, (uint16_t)((fw_get_be16(inner) & 0xf00f) | now << 4));
}
