/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of headers: network order, any alignment.
 */
#ifndef FW_PATH_BYTES_H
#define FW_PATH_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define FW_MIN(a, b) ((a) < (b) ? (a) : (b))

static inline uint16_t fw_get_be16(const void *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return be16toh(value);
}

static inline uint32_t fw_get_be32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static inline void fw_put_be16(void *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
}

static inline void fw_put_be32(void *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void fw_put_be64(void *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

#endif
