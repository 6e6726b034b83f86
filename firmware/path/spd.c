// SPDX-License-Identifier: BSD-3-Clause
/*
 * Policies for packets from the wire: one array of all IN and FORWARD policies, sorted by what
 * matches first, which is searched from its front. What was found for a flow is remembered in a
 * table that every change of the array makes invalid, so that established flows don't pay for the
 * number of policies. By handle, policies of all directions are found in a tree of the C library.
 */
#include "path/spd.h"

#include <endian.h>
#include <search.h>
#include <stdlib.h>

#include "path/cfg.h"
#include "path/iphdr.h"
#include "path/parse.h"

#define CACHE_LEN 4096
/* So few policies are searched as fast as the cache. */
#define CACHE_POLICIES_MIN 4

#define PORT_IKE 500

#define ICMPV6_ROUTER_SOLICITATION 133
#define ICMPV6_REDIRECT 137

/**
 * struct policy - policy of any direction
 * @handle: handle
 * @cfg: as it was added
 */
struct policy {
	uint32_t handle;
	struct cordon_policy_cfg cfg;
};

/**
 * struct sorted - a policy in the sorted array
 * @saddr: first 32 bits of its selector's source
 * @saddr_mask: those of them that count
 * @daddr: of its destination
 * @daddr_mask: the same
 * @policy: policy
 *
 * Most policies don't fit a packet by these bits already, and the array is read from end to end.
 */
struct sorted {
	uint32_t saddr;
	uint32_t saddr_mask;
	uint32_t daddr;
	uint32_t daddr_mask;
	struct policy *policy;
};

/**
 * struct flow - all that selectors look at
 * @saddr: source, IPv4 in the first four bytes, the rest zero
 * @daddr: destination
 * @if_id: interface id
 * @sport: source port, type, or upper half of a key
 * @dport: destination port, code, or lower half of a key
 * @family: 4 or 6
 * @proto: protocol
 * @portless: a later fragment: ports aren't compared
 */
struct flow {
	uint8_t saddr[16];
	uint8_t daddr[16];
	uint32_t if_id;
	uint16_t sport;
	uint16_t dport;
	uint8_t family;
	uint8_t proto;
	uint8_t portless;
	uint8_t zero;
};

/* Whether a packet will be forwarded isn't known: each is judged by both directions. */
enum way {
	WAY_IN,
	WAY_FORWARD,
	WAYS,
};

/**
 * struct matches - what was found
 * @policies: first policy that matches, NULL if none
 */
struct matches {
	const struct policy *policies[WAYS];
};

/**
 * struct cached - what was found for a flow
 * @flow: flow
 * @matches: what was found
 * @generation: of the array when it was searched, 0 = unused
 */
struct cached {
	struct flow flow;
	struct matches matches;
	uint64_t generation;
};

/**
 * struct fw_spd - SPD
 * @by_handle: tree of all policies, for tsearch()
 * @count: policies in it
 * @sorted: IN and FORWARD policies, first match first
 * @sorted_count: policies in it
 * @ways: of these, those of each direction
 * @sorted_size: room in it
 * @generation: counts changes of @sorted
 * @cache: what was found
 */
struct fw_spd {
	void *by_handle;
	uint32_t count;
	struct sorted *sorted;
	uint32_t sorted_count;
	uint32_t ways[WAYS];
	uint32_t sorted_size;
	uint64_t generation;
	struct cached cache[CACHE_LEN];
};

static bool prefix_matches(const uint8_t *a, const uint8_t *b, uint8_t bits)
{
	unsigned int bytes = bits / 8;

	if (memcmp(a, b, bytes))
		return false;
	return !(bits % 8) || !((a[bytes] ^ b[bytes]) >> (8 - bits % 8));
}

/*
 * Ports, or what Linux takes for them: ICMP type and code, the halves of a GRE key. What isn't
 * there is zero.
 */
static void flow_ports(struct flow *f, const struct fw_pkt *p)
{
	const uint8_t *l4 = fw_pkt_data(p) + p->l4;
	uint16_t flags;
	uint32_t key;

	f->portless = p->is_fragment && !p->is_first_fragment;
	if (!p->l4)
		return;
	switch (p->l4_proto) {
	case FW_PROTO_TCP:
	case FW_PROTO_UDP:
	case FW_PROTO_UDPLITE:
	case FW_PROTO_SCTP:
		f->sport = fw_get_be16(l4);
		f->dport = fw_get_be16(l4 + 2);
		break;
	case FW_PROTO_ICMP:
	case FW_PROTO_ICMPV6:
		f->sport = l4[0];
		f->dport = l4[1];
		break;
	case FW_PROTO_GRE:
		/* The key, if bit 2 says there is one, follows a checksum, if bit 0 does. */
		flags = fw_get_be16(l4);
		key = flags & 0x8000 ? 8 : 4;
		if (flags & 0x2000 && p->len - p->l4 >= key + 4) {
			f->sport = fw_get_be16(l4 + key);
			f->dport = fw_get_be16(l4 + key + 2);
		}
		break;
	}
}

static void flow_make(struct flow *f, const struct fw_pkt *p, uint32_t if_id)
{
	const uint8_t *ip = fw_pkt_data(p) + p->l3;

	memset(f, 0, sizeof(*f));
	f->if_id = if_id;
	f->family = p->family;
	f->proto = p->l4_proto;
	if (p->family == CORDON_FAMILY_INET) {
		memcpy(f->saddr, ip + 12, 4);
		memcpy(f->daddr, ip + 16, 4);
	} else {
		memcpy(f->saddr, ip + 8, 16);
		memcpy(f->daddr, ip + 24, 16);
	}
	flow_ports(f, p);
}

static bool selector_matches(const struct cordon_selector *sel, const struct flow *f)
{
	if (sel->family != CORDON_FAMILY_ANY && sel->family != f->family)
		return false;
	if (sel->protocol && sel->protocol != f->proto)
		return false;
	if (!prefix_matches(sel->saddr, f->saddr, sel->saddr_prefix) ||
	    !prefix_matches(sel->daddr, f->daddr, sel->daddr_prefix))
		return false;
	if (f->portless)
		return true;
	return !((f->sport ^ be16toh(sel->sport)) & be16toh(sel->sport_mask)) &&
	       !((f->dport ^ be16toh(sel->dport)) & be16toh(sel->dport_mask));
}

bool fw_selector_match(const struct cordon_selector *sel, const struct fw_pkt *p)
{
	struct flow f;

	if (!p->family)
		return false;
	flow_make(&f, p, 0);
	return selector_matches(sel, &f);
}

bool fw_selector_check(const struct cordon_selector *sel)
{
	uint8_t bits;

	if (sel->reserved)
		return false;
	switch (sel->family) {
	case CORDON_FAMILY_ANY:
		bits = 0;
		break;
	case CORDON_FAMILY_INET:
		bits = 32;
		break;
	case CORDON_FAMILY_INET6:
		bits = 128;
		break;
	default:
		return false;
	}
	return sel->saddr_prefix <= bits && sel->daddr_prefix <= bits;
}

struct fw_spd *fw_spd_alloc(void)
{
	struct fw_spd *spd = calloc(1, sizeof(*spd));

	if (spd)
		spd->generation = 1;
	return spd;
}

void fw_spd_free(struct fw_spd *spd)
{
	if (!spd)
		return;
	fw_spd_flush(spd);
	free(spd->sorted);
	free(spd);
}

static int compare_index(const void *a, const void *b)
{
	uint32_t left = ((const struct policy *)a)->handle & CORDON_HANDLE_INDEX;
	uint32_t right = ((const struct policy *)b)->handle & CORDON_HANDLE_INDEX;

	return left < right ? -1 : left > right;
}

/* Does @a match before @b? Handles settle what priority and age leave open. */
static bool is_before(const struct policy *a, const struct policy *b)
{
	if (a->cfg.priority != b->cfg.priority)
		return le32toh(a->cfg.priority) < le32toh(b->cfg.priority);
	if (a->cfg.order != b->cfg.order)
		return le64toh(a->cfg.order) < le64toh(b->cfg.order);
	return a->handle < b->handle;
}

static bool is_inbound(const struct policy *pol)
{
	return pol->cfg.direction != CORDON_DIRECTION_OUT;
}

static enum way way_of(const struct policy *pol)
{
	return pol->cfg.direction == CORDON_DIRECTION_FORWARD ? WAY_FORWARD : WAY_IN;
}

/* Return: where @pol is, or belongs. */
static uint32_t sorted_find(const struct fw_spd *spd, const struct policy *pol)
{
	uint32_t low = 0;
	uint32_t high = spd->sorted_count;
	uint32_t middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (is_before(spd->sorted[middle].policy, pol))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool sorted_grow(struct fw_spd *spd)
{
	uint32_t size = spd->sorted_size ? spd->sorted_size * 2 : 64;
	struct sorted *sorted;

	if (spd->sorted_count < spd->sorted_size)
		return true;
	sorted = reallocarray(spd->sorted, size, sizeof(*sorted));
	if (!sorted)
		return false;
	spd->sorted = sorted;
	spd->sorted_size = size;
	return true;
}

static uint32_t prefix_mask(uint8_t bits)
{
	if (bits >= 32)
		return UINT32_MAX;
	return bits ? UINT32_MAX << (32 - bits) : 0;
}

static void sorted_add(struct fw_spd *spd, struct policy *pol)
{
	const struct cordon_selector *sel = &pol->cfg.selector;
	uint32_t at = sorted_find(spd, pol);

	memmove(&spd->sorted[at + 1], &spd->sorted[at],
		(spd->sorted_count - at) * sizeof(spd->sorted[0]));
	spd->sorted[at] = (struct sorted){
		.saddr = fw_get_be32(sel->saddr),
		.saddr_mask = prefix_mask(sel->saddr_prefix),
		.daddr = fw_get_be32(sel->daddr),
		.daddr_mask = prefix_mask(sel->daddr_prefix),
		.policy = pol,
	};
	spd->sorted_count++;
	spd->ways[way_of(pol)]++;
	spd->generation++;
}

static void sorted_del(struct fw_spd *spd, const struct policy *pol)
{
	uint32_t at = sorted_find(spd, pol);

	spd->sorted_count--;
	spd->ways[way_of(pol)]--;
	memmove(&spd->sorted[at], &spd->sorted[at + 1],
		(spd->sorted_count - at) * sizeof(spd->sorted[0]));
	spd->generation++;
}

static uint16_t check_template(const struct cordon_policy_cfg *cfg,
			       struct cordon_cmd_completion *done)
{
	if (!(cfg->flags & CORDON_POLICY_TEMPLATE)) {
		if (cfg->flags & CORDON_POLICY_OPTIONAL)
			return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_FLAGS,
					     CORDON_POLICY_TEMPLATE | CORDON_POLICY_OPTIONAL, 0);
		return CORDON_CMD_STATUS_OK;
	}
	if (cfg->template_mode < CORDON_MODE_TRANSPORT || cfg->template_mode > CORDON_MODE_BEET)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_MODE,
				     CORDON_MODE_TRANSPORT, CORDON_MODE_BEET);
	if (cfg->template_mode != CORDON_MODE_TRANSPORT &&
	    cfg->template_family != CORDON_FAMILY_INET &&
	    cfg->template_family != CORDON_FAMILY_INET6)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_FAMILY,
				     CORDON_FAMILY_INET, CORDON_FAMILY_INET6);
	return CORDON_CMD_STATUS_OK;
}

static uint16_t check_policy(const struct cordon_policy_cfg *cfg,
			     struct cordon_cmd_completion *done)
{
	static const uint8_t zero[sizeof(cfg->reserved)];
	uint8_t flags = CORDON_POLICY_TEMPLATE | CORDON_POLICY_OPTIONAL;

	if (memcmp(cfg->reserved, zero, sizeof(zero)))
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_RESERVED, 0, 0);
	if (cfg->direction < CORDON_DIRECTION_OUT || cfg->direction > CORDON_DIRECTION_FORWARD)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_DIRECTION,
				     CORDON_DIRECTION_OUT, CORDON_DIRECTION_FORWARD);
	if (cfg->action != CORDON_ACTION_ALLOW && cfg->action != CORDON_ACTION_BLOCK)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_ACTION,
				     CORDON_ACTION_ALLOW, CORDON_ACTION_BLOCK);
	if (cfg->flags & ~flags)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_FLAGS, flags,
				     flags);
	/* A policy is of one family, as in the kernel. */
	if (!fw_selector_check(&cfg->selector) || cfg->selector.family == CORDON_FAMILY_ANY)
		return fw_cfg_refuse(done, CORDON_CMD_STATUS_INVALID, CORDON_PARAM_SELECTOR, 0, 0);
	return check_template(cfg, done);
}

uint16_t fw_spd_add(struct fw_spd *spd, const struct cordon_policy_cfg *cfg,
		    struct cordon_cmd_completion *done)
{
	uint16_t status = check_policy(cfg, done);
	struct policy *pol;
	void *node;

	if (status)
		return status;
	if (!sorted_grow(spd))
		return CORDON_CMD_STATUS_NO_MEMORY;
	pol = malloc(sizeof(*pol));
	if (!pol)
		return CORDON_CMD_STATUS_NO_MEMORY;
	pol->handle = le32toh(cfg->handle);
	pol->cfg = *cfg;

	node = tsearch(pol, &spd->by_handle, compare_index);
	if (!node) {
		free(pol);
		return CORDON_CMD_STATUS_NO_MEMORY;
	}
	if (*(struct policy **)node != pol) {
		free(pol);
		done->param = htole16(CORDON_PARAM_HANDLE);
		return CORDON_CMD_STATUS_EXISTS;
	}
	spd->count++;
	if (is_inbound(pol))
		sorted_add(spd, pol);
	return CORDON_CMD_STATUS_OK;
}

uint16_t fw_spd_del(struct fw_spd *spd, uint32_t handle)
{
	struct policy key = { .handle = handle };
	void *node = tfind(&key, &spd->by_handle, compare_index);
	struct policy *pol;

	if (!node)
		return CORDON_CMD_STATUS_NOT_FOUND;
	pol = *(struct policy **)node;
	if (pol->handle != handle)
		return CORDON_CMD_STATUS_NOT_FOUND;

	tdelete(pol, &spd->by_handle, compare_index);
	if (is_inbound(pol))
		sorted_del(spd, pol);
	spd->count--;
	free(pol);
	return CORDON_CMD_STATUS_OK;
}

void fw_spd_flush(struct fw_spd *spd)
{
	tdestroy(spd->by_handle, free);
	spd->by_handle = NULL;
	spd->count = 0;
	spd->sorted_count = 0;
	memset(spd->ways, 0, sizeof(spd->ways));
	spd->generation++;
}

uint32_t fw_spd_count(const struct fw_spd *spd)
{
	return spd->count;
}

static struct matches search(const struct fw_spd *spd, const struct flow *f)
{
	uint32_t left = (spd->ways[WAY_IN] > 0) + (spd->ways[WAY_FORWARD] > 0);
	struct matches matches = { 0 };
	uint32_t saddr = fw_get_be32(f->saddr);
	uint32_t daddr = fw_get_be32(f->daddr);
	const struct policy *pol;
	const struct sorted *e;
	enum way way;
	uint32_t i;

	for (i = 0; i < spd->sorted_count && left; i++) {
		e = &spd->sorted[i];
		if ((saddr ^ e->saddr) & e->saddr_mask || (daddr ^ e->daddr) & e->daddr_mask)
			continue;
		pol = e->policy;
		way = way_of(pol);
		if (matches.policies[way] || le32toh(pol->cfg.if_id) != f->if_id ||
		    !selector_matches(&pol->cfg.selector, f))
			continue;
		matches.policies[way] = pol;
		left--;
	}
	return matches;
}

/*
 * Any spread will do: who makes flows collide only makes them be searched for, which new flows are
 * anyway.
 */
static uint32_t flow_hash(const struct flow *f)
{
	uint64_t words[sizeof(*f) / 8 + 1] = { 0 };
	uint64_t hash = 0;
	size_t i;

	memcpy(words, f, sizeof(*f));
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull + (hash >> 29);
	return (uint32_t)(hash >> 32) % CACHE_LEN;
}

static struct matches find(struct fw_spd *spd, const struct fw_pkt *p, uint32_t if_id)
{
	struct cached *slot;
	struct flow f;

	flow_make(&f, p, if_id);
	if (spd->sorted_count < CACHE_POLICIES_MIN)
		return search(spd, &f);

	slot = &spd->cache[flow_hash(&f)];
	if (slot->generation != spd->generation || memcmp(&slot->flow, &f, sizeof(f))) {
		slot->flow = f;
		slot->matches = search(spd, &f);
		slot->generation = spd->generation;
	}
	return slot->matches;
}

/*
 * UDP to a key manager: port 500; port 4500 with four zero bytes (RFC 3948 2.2), one of 0xff (2.3),
 * or ESP (2.1), which isn't clear text. The source port is the sender's choice and says nothing.
 */
static bool is_ike(const struct fw_pkt *p)
{
	const uint8_t *udp = fw_pkt_data(p) + p->l4;
	uint16_t dport = fw_get_be16(udp + 2);
	uint16_t len = fw_get_be16(udp + 4);
	uint32_t room = p->len - p->l4;

	if (dport == PORT_IKE)
		return true;
	if (dport != FW_PORT_NAT_T)
		return false;
	if (len == FW_UDP_LEN + 1)
		return room > FW_UDP_LEN && udp[FW_UDP_LEN] == 0xff;
	if (len < FW_UDP_LEN + 4 || room < FW_UDP_LEN + 4)
		return false;
	if (!fw_get_be32(udp + FW_UDP_LEN))
		return true;
	return len > FW_UDP_LEN + FW_ESP_LEN && room > FW_UDP_LEN + FW_ESP_LEN;
}

/* What comes in clear whatever the policies say. */
static bool is_exempt(const struct fw_pkt *p)
{
	const uint8_t *l4 = fw_pkt_data(p) + p->l4;

	switch (p->l4_proto) {
	case FW_PROTO_ESP:
	case FW_PROTO_AH:
	case FW_PROTO_IPCOMP:
		/* Not clear: what is inside is judged when it comes out. */
		return true;
	case FW_PROTO_ICMPV6:
		/* Neighbour discovery is never fragmented, RFC 6980. */
		return p->l4 && !p->is_fragment && p->family == CORDON_FAMILY_INET6 &&
		       l4[0] >= ICMPV6_ROUTER_SOLICITATION && l4[0] <= ICMPV6_REDIRECT;
	case FW_PROTO_UDP:
		return p->l4 && is_ike(p);
	default:
		return false;
	}
}

static enum cordon_result judge_clear(const struct policy *pol)
{
	if (!pol)
		return CORDON_RESULT_OK;
	if (pol->cfg.action == CORDON_ACTION_BLOCK)
		return CORDON_RESULT_POLICY_BLOCK;
	if (!(pol->cfg.flags & CORDON_POLICY_TEMPLATE) || pol->cfg.flags & CORDON_POLICY_OPTIONAL)
		return CORDON_RESULT_OK;
	return CORDON_RESULT_POLICY_TEMPLATE;
}

/* Both ways have to be open to it. */
enum cordon_result fw_spd_check_clear(struct fw_spd *spd, const struct fw_pkt *p)
{
	enum cordon_result result;
	struct matches matches;

	if (!spd->sorted_count || !p->family || is_exempt(p))
		return CORDON_RESULT_OK;
	matches = find(spd, p, 0);
	result = judge_clear(matches.policies[WAY_IN]);
	return result ? result : judge_clear(matches.policies[WAY_FORWARD]);
}

static bool address_fits(const uint8_t *wanted, const uint8_t *has, uint8_t family)
{
	static const uint8_t any[16];
	size_t len = family == CORDON_FAMILY_INET ? 4 : 16;

	return !memcmp(wanted, any, len) || !memcmp(wanted, has, len);
}

static bool template_fits(const struct cordon_policy_cfg *pol, const struct cordon_sa_cfg *sa)
{
	if (pol->template_mode != sa->mode)
		return false;
	if (pol->template_reqid && pol->template_reqid != sa->reqid)
		return false;
	if (pol->template_spi && pol->template_spi != sa->spi)
		return false;
	if (sa->mode == CORDON_MODE_TRANSPORT)
		return true;
	return pol->template_family == sa->family &&
	       address_fits(pol->template_saddr, sa->saddr, sa->family) &&
	       address_fits(pol->template_daddr, sa->daddr, sa->family);
}

static enum cordon_result judge_decrypted(const struct policy *pol, const struct cordon_sa_cfg *sa)
{
	bool transport = sa->mode == CORDON_MODE_TRANSPORT;

	if (!pol)
		return transport ? CORDON_RESULT_OK : CORDON_RESULT_POLICY_NONE;
	if (pol->cfg.action == CORDON_ACTION_BLOCK)
		return CORDON_RESULT_POLICY_BLOCK;
	if (pol->cfg.flags & CORDON_POLICY_TEMPLATE && template_fits(&pol->cfg, sa))
		return CORDON_RESULT_OK;
	/* Linux lets a transport SA through where the policy wants none, or only would like one. */
	if (transport &&
	    (!(pol->cfg.flags & CORDON_POLICY_TEMPLATE) || pol->cfg.flags & CORDON_POLICY_OPTIONAL))
		return CORDON_RESULT_OK;
	return CORDON_RESULT_POLICY_TEMPLATE;
}

/* An SA's peer is who he says, so one way that is open to him is enough; the stack knows which it is. */
enum cordon_result fw_spd_check_decrypted(struct fw_spd *spd, const struct fw_pkt *p)
{
	const struct cordon_sa_cfg *sa = &p->sa->cfg;
	const struct policy *in, *forward;
	struct matches matches = { 0 };
	enum cordon_result result;

	if (p->family)
		matches = find(spd, p, le32toh(sa->if_id));
	in = matches.policies[WAY_IN];
	forward = matches.policies[WAY_FORWARD];
	result = judge_decrypted(in ? in : forward, sa);
	if (in && forward && judge_decrypted(forward, sa) == CORDON_RESULT_OK)
		return CORDON_RESULT_OK;
	return result;
}
