/* SPDX-License-Identifier: GPL-2.0-only */
/* Cordon: the command queue. */
#ifndef CORDON_CMD_QUEUE_H
#define CORDON_CMD_QUEUE_H

#include <linux/bits.h>
#include <linux/dmapool.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <cordon/cmd.h>

struct cordon_dev;
struct cordon_cmd_request;

#define CORDON_CMD_LOG2 7
#define CORDON_CMD_CNT BIT(CORDON_CMD_LOG2)

/**
 * struct cordon_cmd_result - what became of a command
 * @error: 0 or -errno, as cordon_cmd_exec() returns it
 * @status: enum cordon_cmd_status; CORDON_CMD_STATUS_FAULT if the card never answered
 * @param: enum cordon_param: what was refused
 * @min: least value that is allowed, or the mask of allowed bits
 * @max: greatest value that is allowed
 * @out_len: bytes of output
 */
struct cordon_cmd_result {
	int error;
	u16 status;
	u16 param;
	u64 min;
	u64 max;
	u32 out_len;
};

/**
 * struct cordon_cmd_queue - command ring, its completion ring, and the commands under way
 * @lock: protects all that follows, except @cq_cons, @pool and @free_wait
 * @sq: command ring
 * @sq_dma: bus address of @sq
 * @cq: completion ring
 * @cq_dma: bus address of @cq
 * @sq_prod: producer index of @sq
 * @cq_cons: consumer index of @cq; of the admin thread
 * @requests: commands under way, by tag
 * @free_wait: those who wait for a free tag or for the end of a command
 * @pool: buffers for inputs and outputs of usual size
 */
struct cordon_cmd_queue {
	/* Protects the command ring and the table of requests. */
	spinlock_t lock;
	struct cordon_cmd *sq;
	dma_addr_t sq_dma;
	struct cordon_cmd_completion *cq;
	dma_addr_t cq_dma;
	u32 sq_prod;
	u32 cq_cons;
	struct cordon_cmd_request *requests[CORDON_CMD_CNT];
	wait_queue_head_t free_wait;
	struct dma_pool *pool;
};

int cordon_cmd_exec(struct cordon_dev *cdev, u16 opcode, const void *in, size_t in_len,
		    void *out, size_t out_len, const u64 arg[4], struct cordon_cmd_result *res);
int cordon_cmd_post(struct cordon_dev *cdev, u16 opcode, const void *in, size_t in_len,
		    void *out, size_t out_len, const u64 arg[4],
		    void (*done)(void *ctx, const struct cordon_cmd_result *res), void *ctx);

int cordon_cmd_init(struct cordon_dev *cdev);
void cordon_cmd_exit(struct cordon_dev *cdev);
void cordon_cmd_rewind(struct cordon_dev *cdev);
bool cordon_cmd_reap(struct cordon_dev *cdev);
void cordon_cmd_cancel(struct cordon_dev *cdev, int error);
bool cordon_cmd_is_late(struct cordon_dev *cdev);

#endif
