/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture of the frames that a port's wire carries, as pcapng. Keys are never in it.
 */
#ifndef WIRE_CAPTURE_H
#define WIRE_CAPTURE_H

#include <stdbool.h>

#include "path/pkt.h"

struct fw_capture;

/**
 * fw_capture_create() - begin a section for a port
 * @fd: file, is the capture's on success
 * @name: name of the port
 *
 * Return: NULL if out of memory.
 */
struct fw_capture *fw_capture_create(int fd, const char *name);

/**
 * fw_capture_destroy() - write what is left and close
 * @cap: capture, NULL is fine
 */
void fw_capture_destroy(struct fw_capture *cap);

/**
 * fw_capture_frame() - add a frame
 * @cap: capture
 * @p: frame
 * @out: it goes to the wire
 */
void fw_capture_frame(struct fw_capture *cap, const struct fw_pkt *p, bool out);

/**
 * fw_capture_flush() - write what is buffered
 * @cap: capture, NULL is fine
 */
void fw_capture_flush(struct fw_capture *cap);

#endif
