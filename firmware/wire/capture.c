// SPDX-License-Identifier: BSD-3-Clause
/*
 * pcapng: one section header, one interface description, then an enhanced packet block for each
 * frame. A firmware that starts anew appends a section of its own, which the format allows. A file
 * that can't be written any more ends the capture, not the traffic.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire/capture.h"

#define BUFFER_SIZE (256u * 1024)

#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 6u
#define SECTION_MAGIC 0x1a2b3c4du
#define LINKTYPE_ETHERNET 1

#define OPTION_END 0
#define OPTION_APPLICATION 4 /* section header */
#define OPTION_NAME 2 /* interface */
#define OPTION_TSRESOL 9 /* interface */
#define OPTION_FLAGS 2 /* packet */
#define FLAGS_IN 1u
#define FLAGS_OUT 2u

struct fw_capture {
	int fd;
	uint32_t used;
	uint32_t block;
	uint8_t buffer[BUFFER_SIZE];
};

static void put(struct fw_capture *cap, const void *data, uint32_t len)
{
	static const uint8_t pad[4];
	uint32_t fill = -len & 3;

	memcpy(cap->buffer + cap->used, data, len);
	memcpy(cap->buffer + cap->used + len, pad, fill);
	cap->used += len + fill;
}

static void put32(struct fw_capture *cap, uint32_t value)
{
	put(cap, &value, sizeof(value));
}

static void put_option(struct fw_capture *cap, uint16_t code, const void *data, uint16_t len)
{
	uint16_t head[2] = { code, len };

	put(cap, head, sizeof(head));
	put(cap, data, len);
}

static void put_option_end(struct fw_capture *cap)
{
	put32(cap, OPTION_END);
}

static void block_begin(struct fw_capture *cap, uint32_t type)
{
	cap->block = cap->used;
	put32(cap, type);
	put32(cap, 0);
}

static void block_end(struct fw_capture *cap)
{
	uint32_t len = cap->used - cap->block + 4;

	memcpy(cap->buffer + cap->block + 4, &len, sizeof(len));
	put32(cap, len);
}

static void put_headers(struct fw_capture *cap, const char *name)
{
	static const char app[] = "cordon-fw " CORDON_VERSION;
	static const uint16_t version[2] = { 1, 0 };
	static const uint16_t link[2] = { LINKTYPE_ETHERNET, 0 };
	static const uint8_t nanoseconds = 9;

	block_begin(cap, BLOCK_SECTION);
	put32(cap, SECTION_MAGIC);
	put(cap, version, sizeof(version));
	put32(cap, UINT32_MAX);
	put32(cap, UINT32_MAX);
	put_option(cap, OPTION_APPLICATION, app, sizeof(app) - 1);
	put_option_end(cap);
	block_end(cap);

	block_begin(cap, BLOCK_INTERFACE);
	put(cap, link, sizeof(link));
	put32(cap, 0);
	put_option(cap, OPTION_NAME, name, (uint16_t)strlen(name));
	put_option(cap, OPTION_TSRESOL, &nanoseconds, 1);
	put_option_end(cap);
	block_end(cap);
}

struct fw_capture *fw_capture_create(int fd, const char *name)
{
	struct fw_capture *cap = malloc(sizeof(*cap));

	if (!cap)
		return NULL;
	cap->fd = fd;
	cap->used = 0;
	put_headers(cap, name);
	return cap;
}

void fw_capture_flush(struct fw_capture *cap)
{
	uint32_t done = 0;

	if (!cap)
		return;
	while (cap->fd >= 0 && done < cap->used) {
		ssize_t n = write(cap->fd, cap->buffer + done, cap->used - done);

		if (n > 0) {
			done += (uint32_t)n;
		} else if (n == 0 || errno != EINTR) {
			close(cap->fd);
			cap->fd = -1;
		}
	}
	cap->used = 0;
}

void fw_capture_destroy(struct fw_capture *cap)
{
	if (!cap)
		return;
	fw_capture_flush(cap);
	if (cap->fd >= 0)
		close(cap->fd);
	free(cap);
}

void fw_capture_frame(struct fw_capture *cap, const struct fw_pkt *p, bool out)
{
	uint32_t flags = out ? FLAGS_OUT : FLAGS_IN;
	struct timespec ts;
	uint64_t ns;

	if (cap->fd < 0)
		return;
	if (cap->used + p->len + 64 > BUFFER_SIZE)
		fw_capture_flush(cap);
	clock_gettime(CLOCK_REALTIME, &ts);
	ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	block_begin(cap, BLOCK_PACKET);
	put32(cap, 0);
	put32(cap, (uint32_t)(ns >> 32));
	put32(cap, (uint32_t)ns);
	put32(cap, p->len);
	put32(cap, p->len);
	put(cap, fw_pkt_data(p), p->len);
	put_option(cap, OPTION_FLAGS, &flags, sizeof(flags));
	put_option_end(cap);
	block_end(cap);
}
