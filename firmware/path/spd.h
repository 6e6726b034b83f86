/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The SPD for packets that came from the wire.
 */
#ifndef FW_PATH_SPD_H
#define FW_PATH_SPD_H

#include "cordon/ipsec.h"
#include "path/sa.h"

struct fw_spd;

/**
 * fw_selector_match() - does the packet match the selector, as xfrm_selector_match() would say
 * @sel: selector
 * @p: parsed packet
 *
 * A non-first fragment has no ports: it matches on addresses and protocol alone.
 *
 * Return: true if it does.
 */
bool fw_selector_match(const struct cordon_selector *sel, const struct fw_pkt *p);

/** fw_selector_check() - is the selector well-formed; Return: true if it is */
bool fw_selector_check(const struct cordon_selector *sel);

/** fw_spd_alloc() - an empty SPD; Return: NULL if out of memory */
struct fw_spd *fw_spd_alloc(void);

/** fw_spd_free() - free it and its policies */
void fw_spd_free(struct fw_spd *spd);

/**
 * fw_spd_add() - add a policy
 * @spd: SPD
 * @cfg: policy, a private copy
 * @done: param is set on refusal
 *
 * Return: enum cordon_cmd_status (INVALID, EXISTS, NO_MEMORY ...).
 */
uint16_t fw_spd_add(struct fw_spd *spd, const struct cordon_policy_cfg *cfg,
		    struct cordon_cmd_completion *done);

/** fw_spd_del() - delete a policy by handle; Return: enum cordon_cmd_status */
uint16_t fw_spd_del(struct fw_spd *spd, uint32_t handle);

/** fw_spd_flush() - delete all policies */
void fw_spd_flush(struct fw_spd *spd);

/** fw_spd_count() - number of policies of all directions */
uint32_t fw_spd_count(const struct fw_spd *spd);

/**
 * fw_spd_check_clear() - may a packet that came in clear go to the host
 * @spd: SPD
 * @p: parsed packet
 *
 * Exempt: what isn't IP, ESP, AH, IPComp, ICMPv6 types 133 to 137, UDP to port 500, UDP to port
 * 4500 with a non-ESP marker, as a keepalive, or with ESP in it; source ports don't count. The first
 * policy that matches (IN and FORWARD together, by priority) decides: template = drop (an optional
 * one passes), block = drop, else pass.
 *
 * Return: OK, POLICY_TEMPLATE or POLICY_BLOCK.
 */
enum cordon_result fw_spd_check_clear(struct fw_spd *spd, const struct fw_pkt *p);

/**
 * fw_spd_check_decrypted() - may a packet that a packet-mode SA unwrapped go to the host
 * @spd: SPD
 * @p: parsed inner packet with @sa
 *
 * The first policy that matches must have a template that the SA fits (reqid, mode, SPI, tunnel
 * addresses, if_id), or none and the SA be in transport mode. No policy: transport passes, tunnel
 * doesn't.
 *
 * Return: OK, POLICY_NONE, POLICY_TEMPLATE or POLICY_BLOCK.
 */
enum cordon_result fw_spd_check_decrypted(struct fw_spd *spd, const struct fw_pkt *p);

#endif
