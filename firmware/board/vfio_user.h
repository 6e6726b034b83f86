/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vfio-user protocol as far as the board speaks it: what goes over the socket. All numbers are
 * in host order. Constants that the protocol shares with the kernel's VFIO come from
 * <linux/vfio.h>.
 */
#ifndef BOARD_VFIO_USER_H
#define BOARD_VFIO_USER_H

#include <linux/vfio.h>
#include <stdint.h>

#define VFIO_USER_MAJOR 0
#define VFIO_USER_MINOR 0

/*
 * What the board announces. No region is larger than two pages, so 64 KiB for one access is
 * generous.
 */
#define VFIO_USER_MAX_FDS 16
#define VFIO_USER_MAX_XFER 65536
#define VFIO_USER_PAGE_SIZE 4096

#define VFIO_USER_REGIONS 9
#define VFIO_USER_IRQS 5

/**
 * enum vfio_user_command - messages from the client
 * @VFIO_USER_VERSION: first message of a connection
 * @VFIO_USER_DMA_MAP: memory that the device may use
 * @VFIO_USER_DMA_UNMAP: no longer
 * @VFIO_USER_DEVICE_GET_INFO: numbers of regions and interrupt types
 * @VFIO_USER_DEVICE_GET_REGION_INFO: size, flags and memory of a region
 * @VFIO_USER_DEVICE_GET_REGION_IO_FDS: not offered
 * @VFIO_USER_DEVICE_GET_IRQ_INFO: number of vectors of an interrupt type
 * @VFIO_USER_DEVICE_SET_IRQS: eventfds
 * @VFIO_USER_REGION_READ: access to a BAR or to configuration space
 * @VFIO_USER_REGION_WRITE: the same
 * @VFIO_USER_DMA_READ: only from server to client, not used
 * @VFIO_USER_DMA_WRITE: only from server to client, not used
 * @VFIO_USER_DEVICE_RESET: reset of the function
 * @VFIO_USER_REGION_WRITE_MULTI: not offered
 * @VFIO_USER_DEVICE_FEATURE: migration, refused
 * @VFIO_USER_MIG_DATA_READ: migration, refused
 * @VFIO_USER_MIG_DATA_WRITE: migration, refused
 */
enum vfio_user_command {
	VFIO_USER_VERSION = 1,
	VFIO_USER_DMA_MAP = 2,
	VFIO_USER_DMA_UNMAP = 3,
	VFIO_USER_DEVICE_GET_INFO = 4,
	VFIO_USER_DEVICE_GET_REGION_INFO = 5,
	VFIO_USER_DEVICE_GET_REGION_IO_FDS = 6,
	VFIO_USER_DEVICE_GET_IRQ_INFO = 7,
	VFIO_USER_DEVICE_SET_IRQS = 8,
	VFIO_USER_REGION_READ = 9,
	VFIO_USER_REGION_WRITE = 10,
	VFIO_USER_DMA_READ = 11,
	VFIO_USER_DMA_WRITE = 12,
	VFIO_USER_DEVICE_RESET = 13,
	VFIO_USER_REGION_WRITE_MULTI = 15,
	VFIO_USER_DEVICE_FEATURE = 16,
	VFIO_USER_MIG_DATA_READ = 17,
	VFIO_USER_MIG_DATA_WRITE = 18,
};

#define VFIO_USER_FLAGS_TYPE 0x0000000f
#define VFIO_USER_FLAGS_COMMAND 0x00000000
#define VFIO_USER_FLAGS_REPLY 0x00000001
#define VFIO_USER_FLAGS_NO_REPLY 0x00000010
#define VFIO_USER_FLAGS_ERROR 0x00000020

/**
 * struct vfio_user_header - before each message
 * @id: chosen by the client, comes back in the reply
 * @command: enum vfio_user_command
 * @size: bytes of the message, this header included
 * @flags: VFIO_USER_FLAGS_*
 * @error: with VFIO_USER_FLAGS_ERROR an errno
 */
struct vfio_user_header {
	uint16_t id;
	uint16_t command;
	uint32_t size;
	uint32_t flags;
	uint32_t error;
};

/**
 * struct vfio_user_version - VERSION, a JSON text with a final NUL may follow
 * @major: major version
 * @minor: minor version
 */
struct vfio_user_version {
	uint16_t major;
	uint16_t minor;
};

/**
 * struct vfio_user_dma_map - DMA_MAP
 * @argsz: bytes of this structure
 * @flags: VFIO_DMA_MAP_FLAG_READ and _WRITE
 * @offset: where in the file descriptor
 * @addr: bus address
 * @size: bytes
 */
struct vfio_user_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t addr;
	uint64_t size;
};

/**
 * struct vfio_user_dma_unmap - DMA_UNMAP, also its reply
 * @argsz: bytes of the reply that the client takes
 * @flags: VFIO_DMA_UNMAP_FLAG_*
 * @addr: bus address
 * @size: bytes
 */
struct vfio_user_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t addr;
	uint64_t size;
};

/**
 * struct vfio_user_device_info - DEVICE_GET_INFO and its reply
 * @argsz: bytes
 * @flags: VFIO_DEVICE_FLAGS_*
 * @num_regions: number of regions
 * @num_irqs: number of interrupt types
 */
struct vfio_user_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t num_regions;
	uint32_t num_irqs;
};

/**
 * struct vfio_user_region_info - DEVICE_GET_REGION_INFO and its reply
 * @argsz: request: bytes of the reply that the client takes; reply: bytes of the whole answer
 * @flags: VFIO_REGION_INFO_FLAG_*
 * @index: region
 * @cap_offset: where the first capability is
 * @size: bytes of the region
 * @offset: where in the file descriptor
 */
struct vfio_user_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};

/**
 * struct vfio_user_sparse_mmap - capability behind struct vfio_user_region_info: what can be mapped
 * @id: VFIO_REGION_INFO_CAP_SPARSE_MMAP
 * @version: 1
 * @next: 0, the last one
 * @nr_areas: 1
 * @reserved: zero
 * @offset: first byte that can be mapped
 * @size: bytes that can be mapped
 */
struct vfio_user_sparse_mmap {
	uint16_t id;
	uint16_t version;
	uint32_t next;
	uint32_t nr_areas;
	uint32_t reserved;
	uint64_t offset;
	uint64_t size;
};

/**
 * struct vfio_user_irq_info - DEVICE_GET_IRQ_INFO and its reply
 * @argsz: bytes
 * @flags: VFIO_IRQ_INFO_*
 * @index: interrupt type
 * @count: vectors
 */
struct vfio_user_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};

/**
 * struct vfio_user_irq_set - DEVICE_SET_IRQS; bytes (with VFIO_IRQ_SET_DATA_BOOL) may follow
 * @argsz: bytes
 * @flags: VFIO_IRQ_SET_*
 * @index: interrupt type
 * @start: first vector
 * @count: vectors
 */
struct vfio_user_irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};

/**
 * struct vfio_user_region_access - REGION_READ and _WRITE and their replies; data follows in the
 * write and in the reply to the read
 * @offset: first byte
 * @region: region
 * @count: bytes
 */
struct vfio_user_region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

#endif
