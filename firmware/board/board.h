/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board: one thread around epoll. Nothing in it blocks, and every structure lives as long as
 * the process: ports and firmware processes are entries of two arrays, so that no handler can meet
 * a freed one.
 *
 * A port is one PCI function with its socket. While a port waits for its firmware (client.wait_seq
 * isn't 0), its socket isn't read; all other ports go on.
 */
#ifndef BOARD_BOARD_H
#define BOARD_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "board/ipc.h"
#include "board/options.h"
#include "board/vfio_user.h"
#include "cordon/regs.h"

#define BOARD_CONFIG_SIZE 4096

/*
 * How long the firmware may take for a step (to let go of memory, for example), for a request with
 * all steps before it, and to start. A step and the start together, and the whole, must stay below
 * the 5 s of QEMU.
 */
#define BOARD_REQUEST_MS 1000
#define BOARD_WHOLE_MS 3900
#define BOARD_START_MS 3000
#define BOARD_ENABLE_MS 3000
/* The first start may take longer: no hypervisor waits yet. */
#define BOARD_FIRST_START_MS 15000

/*
 * DMA maps of a firmware process: vm.max_map_count allows it 65530 mappings by default. Files of
 * them that a port may hold open.
 */
#define BOARD_MAPS_MAX 60000
#define BOARD_FILES_MAX 256

/* client.wait_seq: no message is awaited but the end of the firmware. */
#define BOARD_SEQ_DEATH UINT64_MAX

struct board;
struct board_port;

/**
 * enum board_log_level - levels of messages
 * @BOARD_LOG_ERROR: something doesn't work
 * @BOARD_LOG_WARNING: something is wrong outside the board
 * @BOARD_LOG_INFO: connections, starts, resets
 * @BOARD_LOG_DEBUG: each request that is refused
 */
enum board_log_level {
	BOARD_LOG_ERROR,
	BOARD_LOG_WARNING,
	BOARD_LOG_INFO,
	BOARD_LOG_DEBUG,
};

extern enum board_log_level board_log_level;

void board_log(enum board_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * struct board_event - a file descriptor in the epoll set
 * @handle: called with the EPOLL* events
 * @fd: file descriptor, -1 if not in the set
 * @events: what is waited for
 */
struct board_event {
	void (*handle)(struct board_event *event, uint32_t events);
	int fd;
	uint32_t events;
};

/**
 * struct board_client - the connection of a port
 * @event: of the connected socket
 * @leaving: the client is gone, its memory not yet let go of
 * @versioned: VERSION was answered
 * @wait_seq: request to the firmware that the reply (or the end of @leaving) waits for, 0 = none
 * @in_len: bytes in @in
 * @fd_count: file descriptors in @fds
 * @fds_excess: there came more than there may be
 * @fds: file descriptors that came with the message
 * @out_len: bytes in @out, 0 = no reply under way
 * @out_done: of these, sent
 * @out_fd: file descriptor that goes with the reply, -1 = none; not owned
 * @in: message
 * @out: reply
 */
struct board_client {
	struct board_event event;
	bool leaving;
	bool versioned;
	uint64_t wait_seq;
	size_t in_len;
	unsigned int fd_count;
	bool fds_excess;
	int fds[VFIO_USER_MAX_FDS];
	size_t out_len;
	size_t out_done;
	int out_fd;
	uint8_t in[sizeof(struct vfio_user_header) + sizeof(struct vfio_user_region_access) +
		   VFIO_USER_MAX_XFER];
	uint8_t out[sizeof(struct vfio_user_header) + sizeof(struct vfio_user_region_access) +
		    VFIO_USER_MAX_XFER];
};

/**
 * struct board_config - PCI configuration space
 * @value: the bytes
 * @mask: bits that a write changes
 */
struct board_config {
	uint8_t value[BOARD_CONFIG_SIZE];
	uint8_t mask[BOARD_CONFIG_SIZE];
};

/**
 * struct board_regs - state behind BAR0
 * @control: CORDON_CONTROL_ENABLE or 0
 * @error: enum cordon_error, with @failed
 * @enabled: CORDON_STATUS_ENABLED
 * @failed: CORDON_STATUS_FAILED
 * @resetting: CORDON_STATUS_RESETTING
 * @enable_seq: ENABLE under way, else 0
 * @reset_seq: DISABLE under way, 0 with @resetting: a firmware starts
 * @rings: cmd_sq, cmd_cq, event_ring, ring_sizes
 */
struct board_regs {
	uint32_t control;
	enum cordon_error error;
	bool enabled;
	bool failed;
	bool resetting;
	uint64_t enable_seq;
	uint64_t reset_seq;
	struct {
		uint64_t cmd_sq;
		uint64_t cmd_cq;
		uint64_t event_ring;
		uint32_t ring_sizes;
	} rings;
};

/**
 * struct board_file - a file that guest memory is mapped from; many maps are of one file
 * @next: files of the port
 * @fd: file descriptor
 * @writable: opened for writing
 * @device: identity of the file
 * @inode: identity of the file
 * @maps: maps and messages that use it
 */
struct board_file {
	LIST_ENTRY(board_file) next;
	int fd;
	bool writable;
	dev_t device;
	ino_t inode;
	unsigned int maps;
};

/**
 * struct board_map - one DMA map
 * @addr: bus address
 * @size: bytes
 * @offset: where in @file
 * @writable: the device may write
 * @file: memory, NULL: came without file descriptor, the firmware knows nothing of it
 */
struct board_map {
	uint64_t addr;
	uint64_t size;
	uint64_t offset;
	bool writable;
	struct board_file *file;
};

LIST_HEAD(board_files, board_file);

/**
 * struct board_dma - DMA maps of a port
 * @maps: sorted by address, none overlaps another
 * @count: maps
 * @room: maps that there is memory for
 * @files: files of the maps
 */
struct board_dma {
	struct board_map *maps;
	size_t count;
	size_t room;
	struct board_files files;
};

/**
 * struct board_irq - eventfds of a port, -1 = none
 * @vectors: of MSI-X or MSI
 * @error: error interrupt: taken, never raised, because it stops the virtual machine
 * @request: request of the device to be unplugged: taken, never raised
 * @stale: the firmware has to be told all vectors again when its socket has room
 */
struct board_irq {
	int vectors[CORDON_VECTORS_MAX];
	int error;
	int request;
	bool stale;
};

/**
 * struct board_wire - file descriptors of a wire, in the order of FW_IPC_PORT_ADD
 * @fds: file descriptors; those of FW_IPC_WIRE_SHM belong to the port with the lower number
 * @fd_count: how many
 * @end: FW_IPC_WIRE_SHM: this end
 * @bound: path that has to be unlinked
 */
struct board_wire {
	int fds[3];
	unsigned int fd_count;
	uint32_t end;
	const char *bound;
};

/**
 * enum board_firmware_state - life of a firmware process
 * @BOARD_FIRMWARE_DEAD: there is none
 * @BOARD_FIRMWARE_STARTING: START isn't acknowledged yet
 * @BOARD_FIRMWARE_RUNNING: works
 * @BOARD_FIRMWARE_DYING: was killed and isn't gone yet: it may still touch memory
 */
enum board_firmware_state {
	BOARD_FIRMWARE_DEAD,
	BOARD_FIRMWARE_STARTING,
	BOARD_FIRMWARE_RUNNING,
	BOARD_FIRMWARE_DYING,
};

/**
 * struct board_pending - a request that the firmware hasn't acknowledged
 * @next: in the order in which they were sent
 * @next_timed: of those that are timed
 * @seq: its number
 * @type: enum fw_ipc_type
 * @port: port, NULL for START
 * @first: IRQ_SET: first vector
 * @count: IRQ_SET: vectors
 * @addr: DMA_MAP: bus address
 * @from: when the first step began, in ms of CLOCK_MONOTONIC
 * @step: ms that the firmware has from then or from its last answer on, 0 = no matter
 * @deadline: when the firmware is killed at the latest, UINT64_MAX = not timed
 */
struct board_pending {
	TAILQ_ENTRY(board_pending) next;
	TAILQ_ENTRY(board_pending) next_timed;
	uint64_t seq;
	uint32_t type;
	struct board_port *port;
	uint32_t first;
	uint32_t count;
	uint64_t addr;
	uint64_t from;
	uint64_t step;
	uint64_t deadline;
};

/**
 * struct board_packet - a message that the firmware's socket had no room for
 * @next: in order
 * @msg: message
 * @fds: file descriptors that live as long as the board
 * @fd_count: how many
 * @file: DMA_MAP: memory, of which a reference is held
 *
 * A firmware that doesn't read must not make the board run out of file descriptors, so none is
 * duplicated.
 */
struct board_packet {
	STAILQ_ENTRY(board_packet) next;
	struct fw_ipc_msg msg;
	int fds[FW_IPC_FDS_MAX];
	unsigned int fd_count;
	struct board_file *file;
};

TAILQ_HEAD(board_pendings, board_pending);
STAILQ_HEAD(board_packets, board_packet);

/**
 * struct board_firmware - a firmware process and the ports it serves
 * @board: board
 * @ports: its ports; the index is the port number in messages
 * @port_count: how many
 * @state: life
 * @cause: why it is killed, 0 = it ended by itself
 * @restart: start another one when it is gone
 * @generation: starts so far
 * @pid: process
 * @process: pidfd
 * @socket: board's end of the socket pair
 * @seq: number of the last request
 * @start_deadline: while STARTING, until when
 * @progress: when it last acknowledged something
 * @pending: not acknowledged
 * @timed: of these, those with a deadline
 * @queue: not sent
 * @queue_len: how many
 */
struct board_firmware {
	struct board *board;
	struct board_port *ports[FW_IPC_PORTS_MAX];
	unsigned int port_count;
	enum board_firmware_state state;
	enum cordon_error cause;
	bool restart;
	uint32_t generation;
	pid_t pid;
	struct board_event process;
	struct board_event socket;
	uint64_t seq;
	uint64_t start_deadline;
	uint64_t progress;
	struct board_pendings pending;
	struct board_pendings timed;
	struct board_packets queue;
	size_t queue_len;
};

/**
 * struct board_port - a PCI function
 * @board: board
 * @options: its part of the command line
 * @firmware: its firmware
 * @slot: port number in messages to it
 * @vectors: interrupt vectors
 * @listener: listening socket, in the epoll set while there is no client
 * @listen_fd: the same, -1 = not yet there
 * @doorbell_fd: memory of BAR2
 * @listen_at: when @listener joins the set again, 0 = it needn't
 * @kick_fd: eventfd
 * @nowhere_fd: eventfd that nobody reads: stands for vectors that have none
 * @capture_fd: capture file, -1 = none
 * @doorbell: BAR2 mapped
 * @msix: BAR4
 * @client: connection
 * @config: configuration space
 * @regs: BAR0
 * @dma: maps
 * @irq: interrupts
 * @wire: wire
 */
struct board_port {
	struct board *board;
	const struct board_port_options *options;
	struct board_firmware *firmware;
	uint32_t slot;
	uint32_t vectors;
	struct board_event listener;
	int listen_fd;
	int doorbell_fd;
	uint64_t listen_at;
	int kick_fd;
	int nowhere_fd;
	int capture_fd;
	uint8_t *doorbell;
	uint8_t msix[CORDON_BAR_MSIX_SIZE];
	struct board_client client;
	struct board_config config;
	struct board_regs regs;
	struct board_dma dma;
	struct board_irq irq;
	struct board_wire wire;
};

/**
 * struct board - everything
 * @options: command line
 * @epoll_fd: epoll set
 * @firmware_path: program
 * @signals: signalfd
 * @stop: end the loop
 * @ready: sockets exist
 * @ports: ports
 * @port_count: how many
 * @firmwares: firmware processes
 * @firmware_count: how many
 */
struct board {
	struct board_options options;
	int epoll_fd;
	char *firmware_path;
	struct board_event signals;
	bool stop;
	bool ready;
	struct board_port *ports;
	unsigned int port_count;
	struct board_firmware *firmwares;
	unsigned int firmware_count;
};

/* loop.c */
uint64_t board_loop_now(void);
int board_loop_add(struct board *board, struct board_event *event, int fd, uint32_t events);
void board_loop_set(struct board *board, struct board_event *event, uint32_t events);
void board_loop_del(struct board *board, struct board_event *event);
int board_loop_run_once(struct board *board, uint64_t deadline);

/* port.c */
int board_port_create_all(struct board *board);
void board_port_destroy_all(struct board *board);
int board_port_listen(struct board_port *port);
void board_port_power_on(struct board_port *port);

/* client.c */
void board_client_init(struct board_client *client);
int board_client_wait(struct board_port *port);
void board_client_resume(struct board_port *port, uint64_t seq, int error);
void board_client_close(struct board_port *port);

/**
 * struct board_request - a message that is being served
 * @header: its header
 * @body: what follows
 * @len: bytes of @body
 * @fds: file descriptors; a handler that takes one writes -1 in its place
 * @fd_count: how many
 * @reply: where the reply's body goes, room for VFIO_USER_MAX_XFER bytes behind a struct
 * vfio_user_region_access
 * @reply_len: bytes of it
 * @reply_fd: file descriptor that goes with the reply, -1 = none
 */
struct board_request {
	struct vfio_user_header header;
	const uint8_t *body;
	size_t len;
	int *fds;
	unsigned int fd_count;
	uint8_t *reply;
	size_t reply_len;
	int reply_fd;
};

/* request.c */
int board_request_serve(struct board_port *port, struct board_request *request);

/* config.c */
void board_config_init(struct board_port *port);
void board_config_read(struct board_port *port, uint64_t offset, uint8_t *data, size_t len);
uint64_t board_config_write(struct board_port *port, uint64_t offset, const uint8_t *data, size_t len);
bool board_config_may_dma(const struct board_port *port);

/* regs.c */
void board_regs_read(struct board_port *port, uint64_t offset, uint8_t *data, size_t len);
void board_regs_write(struct board_port *port, uint64_t offset, const uint8_t *data, size_t len);
uint64_t board_regs_reset(struct board_port *port);
void board_regs_reset_done(struct board_port *port);
void board_regs_enable_done(struct board_port *port, int error);
void board_regs_fail(struct board_port *port, enum cordon_error error);

/* dma.c */
int board_dma_map(struct board_port *port, const struct vfio_user_dma_map *map, int *fd);
int board_dma_unmap(struct board_port *port, const struct vfio_user_dma_unmap *unmap);
void board_dma_refuse(struct board_port *port, uint64_t addr);
void board_dma_clear(struct board_port *port);
void board_dma_replay(struct board_port *port);
void board_dma_get_file(struct board_file *file);
void board_dma_put_file(struct board_file *file);

/* irq.c */
void board_irq_init(struct board_irq *irq);
uint32_t board_irq_count(const struct board_port *port, uint32_t index);
int board_irq_set(struct board_port *port, const struct vfio_user_irq_set *set, int *fds,
		  unsigned int fd_count);
void board_irq_clear(struct board_port *port);
void board_irq_replay(struct board_port *port);
void board_irq_raise(struct board_port *port, uint32_t first, uint32_t count);
void board_irq_signal(int fd);

/* firmware.c */
void board_firmware_init(struct board_firmware *firmware, struct board *board);
int board_firmware_find(struct board *board);
int board_firmware_start(struct board_firmware *firmware);
void board_firmware_kill(struct board_firmware *firmware, enum cordon_error cause);
void board_firmware_check(struct board_firmware *firmware, uint64_t now);
uint64_t board_firmware_deadline(const struct board_firmware *firmware);
bool board_firmware_is_alive(const struct board_firmware *firmware);
uint64_t board_firmware_tell_map(struct board_port *port, struct fw_ipc_msg *msg,
				 struct board_file *file);
void board_firmware_tell_irqs(struct board_port *port, struct fw_ipc_msg *msg, const int *fds,
			      unsigned int fd_count);
uint64_t board_firmware_ask(struct board_port *port, struct fw_ipc_msg *msg, uint64_t ms);
void board_firmware_stop_all(struct board *board);

/* wire.c */
int board_wire_open(struct board_port *port);
void board_wire_leave(struct board_port *port);
void board_wire_close(struct board_port *port);

#endif
