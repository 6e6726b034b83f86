/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FW_PATH_CSUM_H
#define FW_PATH_CSUM_H

#include "path/pkt.h"

/**
 * fw_csum_add() - ones' complement sum, RFC 1071
 * @data: bytes, any alignment
 * @len: number of bytes
 * @sum: sum so far
 *
 * Return: sum, not folded; as if the bytes were big-endian 16-bit words, odd length padded by zero.
 */
uint64_t fw_csum_add(const void *data, size_t len, uint64_t sum);

/**
 * fw_csum_fold() - fold to 16 bits and complement
 * @sum: sum
 *
 * Return: checksum in host order (store it big-endian).
 */
uint16_t fw_csum_fold(uint64_t sum);

/**
 * fw_csum_pseudo() - sum of the pseudo header of TCP and UDP
 * @ip: IP header
 * @family: 4 or 6
 * @proto: protocol
 * @len: bytes of header and payload
 *
 * Return: sum, not folded.
 */
uint64_t fw_csum_pseudo(const uint8_t *ip, uint8_t family, uint8_t proto, uint32_t len);

/**
 * fw_csum_fill() - TX checksum offload
 * @p: frame; the field holds the pseudo header's sum, as the stack leaves it
 * @start: where the sum begins
 * @offset: from @start to the field
 *
 * A sum of zero of UDP is stored as 0xffff if the field belongs to a UDP header by @p's parsed
 * fields or @offset is 6.
 *
 * Return: 0, or -EINVAL if the field isn't in the frame.
 */
int fw_csum_fill(struct fw_pkt *p, uint32_t start, uint32_t offset);

/**
 * fw_csum_verify() - RX checksum verdict
 * @p: parsed frame
 *
 * Return: true if the packet is unfragmented TCP or UDP over IPv4 (right header checksum) or IPv6
 * and its checksum is right (UDP over IPv4 with no checksum: false, the stack judges).
 */
bool fw_csum_verify(const struct fw_pkt *p);

#endif
