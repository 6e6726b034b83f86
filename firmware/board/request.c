// SPDX-License-Identifier: BSD-3-Clause
/*
 * What the client asks for. Each handler copies the message's body once, checks it, and answers
 * from the board's own memory.
 */
#include <errno.h>
#include <string.h>

#include "board/board.h"

/* Takes a structure from the body. Return: 0 or -EINVAL. */
static int take(const struct board_request *request, void *to, size_t len)
{
	if (request->len < len)
		return -EINVAL;
	memcpy(to, request->body, len);
	return 0;
}

static void give(struct board_request *request, const void *from, size_t len)
{
	memcpy(request->reply + request->reply_len, from, len);
	request->reply_len += len;
}

/*
 * The client's capabilities change nothing here: the board sends one file descriptor at most, never
 * starts a request of its own, and answers no more than was asked for. So the text isn't parsed.
 */
static int serve_version(struct board_port *port, struct board_request *request)
{
	static const char capabilities[] =
		"{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":65536,"
		"\"max_dma_maps\":65535,\"pgsizes\":4096}}";
	struct vfio_user_version version;

	if (port->client.versioned || take(request, &version, sizeof(version)))
		return -EINVAL;
	if (version.major != VFIO_USER_MAJOR)
		return -EPROTONOSUPPORT;
	if (request->len > sizeof(version) && request->body[request->len - 1] != '\0')
		return -EINVAL;
	version.minor = VFIO_USER_MINOR;
	give(request, &version, sizeof(version));
	give(request, capabilities, sizeof(capabilities));
	port->client.versioned = true;
	return 0;
}

static int serve_dma_map(struct board_port *port, struct board_request *request)
{
	struct vfio_user_dma_map map;
	int none = -1;

	if (request->len != sizeof(map) || request->fd_count > 1 ||
	    take(request, &map, sizeof(map)))
		return -EINVAL;
	return board_dma_map(port, &map, request->fd_count ? &request->fds[0] : &none);
}

static int serve_dma_unmap(struct board_port *port, struct board_request *request)
{
	struct vfio_user_dma_unmap unmap;
	int ret;

	if (request->len != sizeof(unmap) || take(request, &unmap, sizeof(unmap)))
		return -EINVAL;
	ret = board_dma_unmap(port, &unmap);
	if (ret)
		return ret;
	unmap.argsz = sizeof(unmap);
	give(request, &unmap, sizeof(unmap));
	return 0;
}

static int serve_device_info(struct board_port *port, struct board_request *request)
{
	struct vfio_user_device_info info;

	(void)port;
	if (take(request, &info, sizeof(info)) || info.argsz < sizeof(info))
		return -EINVAL;
	info.argsz = sizeof(info);
	info.flags = VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI;
	info.num_regions = VFIO_USER_REGIONS;
	info.num_irqs = VFIO_USER_IRQS;
	give(request, &info, sizeof(info));
	return 0;
}

static uint64_t region_size(uint32_t index)
{
	switch (index) {
	case VFIO_PCI_BAR0_REGION_INDEX + CORDON_BAR_REGS:
		return CORDON_BAR_REGS_SIZE;
	case VFIO_PCI_BAR0_REGION_INDEX + CORDON_BAR_DOORBELL:
		return CORDON_BAR_DOORBELL_SIZE;
	case VFIO_PCI_BAR0_REGION_INDEX + CORDON_BAR_MSIX:
		return CORDON_BAR_MSIX_SIZE;
	case VFIO_PCI_CONFIG_REGION_INDEX:
		return BOARD_CONFIG_SIZE;
	default:
		return 0;
	}
}

/*
 * Only a client that has room for the capability gets it, and the file descriptor. The short answer
 * names the offset all the same: QEMU checks it before it asks again.
 */
static int serve_region_info(struct board_port *port, struct board_request *request)
{
	struct vfio_user_region_info info;
	struct vfio_user_sparse_mmap sparse = {
		.id = VFIO_REGION_INFO_CAP_SPARSE_MMAP,
		.version = 1,
		.nr_areas = 1,
		.size = CORDON_BAR_DOORBELL_SIZE,
	};
	uint32_t room;

	if (take(request, &info, sizeof(info)) || info.argsz < sizeof(info) ||
	    info.index >= VFIO_USER_REGIONS)
		return -EINVAL;
	room = info.argsz;
	info.argsz = sizeof(info);
	info.size = region_size(info.index);
	info.flags = info.size ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0;
	info.offset = 0;
	info.cap_offset = 0;
	if (info.index != VFIO_PCI_BAR0_REGION_INDEX + CORDON_BAR_DOORBELL) {
		give(request, &info, sizeof(info));
		return 0;
	}
	info.argsz = sizeof(info) + sizeof(sparse);
	info.flags |= VFIO_REGION_INFO_FLAG_MMAP | VFIO_REGION_INFO_FLAG_CAPS;
	info.cap_offset = sizeof(info);
	give(request, &info, sizeof(info));
	if (room < info.argsz)
		return 0;
	give(request, &sparse, sizeof(sparse));
	request->reply_fd = port->doorbell_fd;
	return 0;
}

static int serve_irq_info(struct board_port *port, struct board_request *request)
{
	struct vfio_user_irq_info info;

	if (take(request, &info, sizeof(info)) || info.argsz < sizeof(info) ||
	    info.index >= VFIO_USER_IRQS)
		return -EINVAL;
	info.argsz = sizeof(info);
	info.count = board_irq_count(port, info.index);
	info.flags = info.count ? VFIO_IRQ_INFO_EVENTFD : 0;
	give(request, &info, sizeof(info));
	return 0;
}

static int serve_set_irqs(struct board_port *port, struct board_request *request)
{
	struct vfio_user_irq_set set;

	if (take(request, &set, sizeof(set)) || set.argsz < sizeof(set) ||
	    request->len != sizeof(set))
		return -EINVAL;
	return board_irq_set(port, &set, request->fds, request->fd_count);
}

/* Words are stored whole: the firmware reads the same memory while it is written. */
static void copy_words(uint8_t *to, const uint8_t *from, size_t len)
{
	if ((uintptr_t)to % sizeof(uint32_t) == 0 && (uintptr_t)from % sizeof(uint32_t) == 0) {
		for (; len >= sizeof(uint32_t); len -= sizeof(uint32_t)) {
			uint32_t word = __atomic_load_n((const uint32_t *)(const void *)from,
							__ATOMIC_RELAXED);

			__atomic_store_n((uint32_t *)(void *)to, word, __ATOMIC_RELEASE);
			to += sizeof(word);
			from += sizeof(word);
		}
	}
	for (; len; len--)
		__atomic_store_n(to++, __atomic_load_n(from++, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/*
 * Vectors are raised by eventfd, so no bit is ever pending here, and the table (QEMU keeps its own)
 * is plain memory.
 */
static void write_msix(struct board_port *port, uint64_t offset, const uint8_t *data, size_t len)
{
	size_t end = CORDON_MSIX_TABLE_OFFSET + port->vectors * 16;

	for (; len && offset < end; len--)
		port->msix[offset++] = *data++;
}

static int check_access(const struct vfio_user_region_access *access)
{
	uint64_t size;

	if (access->region >= VFIO_USER_REGIONS || access->count == 0 ||
	    access->count > VFIO_USER_MAX_XFER)
		return -EINVAL;
	size = region_size(access->region);
	if (access->offset >= size || access->count > size - access->offset)
		return -EINVAL;
	return 0;
}

static int serve_region_read(struct board_port *port, struct board_request *request)
{
	struct vfio_user_region_access access;
	uint8_t *data = request->reply + sizeof(access);

	if (request->len != sizeof(access) || take(request, &access, sizeof(access)) ||
	    check_access(&access))
		return -EINVAL;
	give(request, &access, sizeof(access));
	request->reply_len += access.count;
	if (access.region == CORDON_BAR_REGS)
		board_regs_read(port, access.offset, data, access.count);
	else if (access.region == CORDON_BAR_DOORBELL)
		copy_words(data, port->doorbell + access.offset, access.count);
	else if (access.region == CORDON_BAR_MSIX)
		memcpy(data, port->msix + access.offset, access.count);
	else
		board_config_read(port, access.offset, data, access.count);
	return 0;
}

static int serve_region_write(struct board_port *port, struct board_request *request)
{
	struct vfio_user_region_access access;
	const uint8_t *data = request->body + sizeof(access);

	if (take(request, &access, sizeof(access)) || check_access(&access))
		return -EINVAL;
	if (request->len - sizeof(access) != access.count)
		return -EINVAL;
	give(request, &access, sizeof(access));
	if (access.region == CORDON_BAR_REGS)
		board_regs_write(port, access.offset, data, access.count);
	else if (access.region == CORDON_BAR_DOORBELL)
		copy_words(port->doorbell + access.offset, data, access.count);
	else if (access.region == CORDON_BAR_MSIX)
		write_msix(port, access.offset, data, access.count);
	else
		port->client.wait_seq = board_config_write(port, access.offset, data, access.count);
	return 0;
}

static int serve_reset(struct board_port *port, struct board_request *request)
{
	if (request->len)
		return -EINVAL;
	board_log(BOARD_LOG_INFO, "%s: reset by the hypervisor", port->options->name);
	board_port_power_on(port);
	port->client.wait_seq = board_regs_reset(port);
	return 0;
}

/**
 * board_request_serve - do what a message asks for
 * @port: port
 * @request: message; the reply's body is written into it
 *
 * If client.wait_seq isn't 0 afterwards, the reply has to wait for the firmware.
 *
 * Context: loop.
 * Return: 0, or -errno for an error reply.
 */
int board_request_serve(struct board_port *port, struct board_request *request)
{
	uint32_t known = VFIO_USER_FLAGS_TYPE | VFIO_USER_FLAGS_NO_REPLY;
	bool fds_taken = request->header.command == VFIO_USER_DMA_MAP ||
			 request->header.command == VFIO_USER_DEVICE_SET_IRQS;

	if (request->header.flags & ~known || (request->fd_count && !fds_taken))
		return -EINVAL;
	if (!port->client.versioned && request->header.command != VFIO_USER_VERSION)
		return -EINVAL;
	switch (request->header.command) {
	case VFIO_USER_VERSION:
		return serve_version(port, request);
	case VFIO_USER_DMA_MAP:
		return serve_dma_map(port, request);
	case VFIO_USER_DMA_UNMAP:
		return serve_dma_unmap(port, request);
	case VFIO_USER_DEVICE_GET_INFO:
		return serve_device_info(port, request);
	case VFIO_USER_DEVICE_GET_REGION_INFO:
		return serve_region_info(port, request);
	case VFIO_USER_DEVICE_GET_IRQ_INFO:
		return serve_irq_info(port, request);
	case VFIO_USER_DEVICE_SET_IRQS:
		return serve_set_irqs(port, request);
	case VFIO_USER_REGION_READ:
		return serve_region_read(port, request);
	case VFIO_USER_REGION_WRITE:
		return serve_region_write(port, request);
	case VFIO_USER_DEVICE_RESET:
		return serve_reset(port, request);
	case VFIO_USER_DEVICE_GET_REGION_IO_FDS:
	case VFIO_USER_REGION_WRITE_MULTI:
	case VFIO_USER_DEVICE_FEATURE:
	case VFIO_USER_MIG_DATA_READ:
	case VFIO_USER_MIG_DATA_WRITE:
		return -ENOTSUP;
	default:
		return -EINVAL;
	}
}
