// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: the command queue.
 *
 * A command's tag is the number of its slot in the ring, so a slot is used again only when its
 * command was completed. The buffers of a command that the card didn't answer stay the card's until
 * it was reset; cordon_cmd_cancel() gets them back.
 */

#include <linux/jiffies.h>
#include <linux/slab.h>

#include "cordon_hw.h"

#define CORDON_CMD_TIMEOUT (5 * HZ)
#define CORDON_CMD_POOL_SIZE 1024
#define CORDON_CMD_MASK (CORDON_CMD_CNT - 1)

/* Memory that the card reads or writes for a command. */
struct cmd_buffer {
	void *data;
	dma_addr_t dma;
	size_t len;
};

/**
 * struct cordon_cmd_request - a command
 * @opcode: enum cordon_opcode
 * @in: input
 * @out: output
 * @caller_out: where the caller wants the output, NULL if he doesn't (any more)
 * @arg: arguments
 * @deadline: when the card should have answered, in jiffies
 * @done: called when it is done with, NULL if nobody waits (any more)
 * @ctx: for @done
 */
struct cordon_cmd_request {
	u16 opcode;
	struct cmd_buffer in;
	struct cmd_buffer out;
	void *caller_out;
	u64 arg[4];
	unsigned long deadline;
	void (*done)(void *ctx, const struct cordon_cmd_result *res);
	void *ctx;
};

/* Someone who sleeps until his command is done with. */
struct cmd_waiter {
	bool done;
	struct cordon_cmd_result res;
};

static int buffer_alloc(struct cordon_dev *cdev, struct cmd_buffer *buffer, size_t len)
{
	if (!len)
		return 0;
	if (len <= CORDON_CMD_POOL_SIZE)
		buffer->data = dma_pool_zalloc(cdev->cmd.pool, GFP_KERNEL, &buffer->dma);
	else
		buffer->data = dma_alloc_coherent(cdev->dev, len, &buffer->dma, GFP_KERNEL);
	if (!buffer->data)
		return -ENOMEM;
	buffer->len = len;
	return 0;
}

static void buffer_free(struct cordon_dev *cdev, struct cmd_buffer *buffer)
{
	if (!buffer->len)
		return;
	/* There may have been keys in it. */
	memzero_explicit(buffer->data, buffer->len);
	if (buffer->len <= CORDON_CMD_POOL_SIZE)
		dma_pool_free(cdev->cmd.pool, buffer->data, buffer->dma);
	else
		dma_free_coherent(cdev->dev, buffer->len, buffer->data, buffer->dma);
}

static void request_free(struct cordon_dev *cdev, struct cordon_cmd_request *req)
{
	buffer_free(cdev, &req->in);
	buffer_free(cdev, &req->out);
	kfree(req);
}

static struct cordon_cmd_request *request_alloc(struct cordon_dev *cdev, const void *in,
						size_t in_len, size_t out_len)
{
	struct cordon_cmd_request *req;

	req = kzalloc_obj(*req, GFP_KERNEL);
	if (!req)
		return NULL;
	if (buffer_alloc(cdev, &req->in, in_len) || buffer_alloc(cdev, &req->out, out_len)) {
		request_free(cdev, req);
		return NULL;
	}
	if (in_len)
		memcpy(req->in.data, in, in_len);
	return req;
}

static int status_to_errno(u16 status)
{
	switch (status) {
	case CORDON_CMD_STATUS_OK:
		return 0;
	case CORDON_CMD_STATUS_UNKNOWN_OPCODE:
	case CORDON_CMD_STATUS_UNSUPPORTED:
		return -EOPNOTSUPP;
	case CORDON_CMD_STATUS_INVALID:
		return -EINVAL;
	case CORDON_CMD_STATUS_FULL:
		return -ENOSPC;
	case CORDON_CMD_STATUS_EXISTS:
		return -EEXIST;
	case CORDON_CMD_STATUS_NOT_FOUND:
		return -ENOENT;
	case CORDON_CMD_STATUS_BUSY:
		return -EBUSY;
	case CORDON_CMD_STATUS_DMA:
		return -EFAULT;
	case CORDON_CMD_STATUS_NO_MEMORY:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

/* Hand the result to whom it belongs, and free the request, which nobody else can reach. */
static void request_finish(struct cordon_dev *cdev, struct cordon_cmd_request *req,
			   const struct cordon_cmd_result *res)
{
	if (req->caller_out && res->out_len)
		memcpy(req->caller_out, req->out.data, res->out_len);
	if (req->done)
		req->done(req->ctx, res);
	request_free(cdev, req);
	wake_up_all(&cdev->cmd.free_wait);
}

static void write_entry(struct cordon_cmd_queue *queue, u16 tag,
			const struct cordon_cmd_request *req)
{
	struct cordon_cmd *cmd = &queue->sq[tag];
	int i;

	cmd->opcode = cpu_to_le16(req->opcode);
	cmd->tag = cpu_to_le16(tag);
	cmd->in_len = cpu_to_le32(req->in.len);
	cmd->out_len = cpu_to_le32(req->out.len);
	cmd->reserved = 0;
	cmd->in_addr = cpu_to_le64(req->in.dma);
	cmd->out_addr = cpu_to_le64(req->out.dma);
	for (i = 0; i < ARRAY_SIZE(req->arg); i++)
		cmd->arg[i] = cpu_to_le64(req->arg[i]);
}

/*
 * Put a command into the ring. Whether the device may be used is looked at under the lock: when
 * cordon_cmd_cancel() has got the lock, nothing can be added any more.
 */
static int try_submit(struct cordon_dev *cdev, struct cordon_cmd_request *req, u16 *tag)
{
	struct cordon_cmd_queue *queue = &cdev->cmd;
	int err = 0;

	spin_lock_irq(&queue->lock);
	*tag = queue->sq_prod & CORDON_CMD_MASK;
	if (test_bit(CORDON_DEV_GONE, &cdev->flags)) {
		err = -ENODEV;
	} else if (!cordon_is_usable(cdev)) {
		err = -EIO;
	} else if (queue->requests[*tag]) {
		err = -EAGAIN;
	} else {
		req->deadline = jiffies + CORDON_CMD_TIMEOUT;
		write_entry(queue, *tag, req);
		queue->requests[*tag] = req;
		queue->sq_prod++;
		cordon_hw_ring(cdev, CORDON_LINE_ADMIN, queue->sq_prod - 1, queue->sq_prod);
	}
	spin_unlock_irq(&queue->lock);
	return err;
}

/* False while the ring is full. */
static bool is_submitted(struct cordon_dev *cdev, struct cordon_cmd_request *req, u16 *tag,
			 int *err)
{
	*err = try_submit(cdev, req, tag);

	return *err != -EAGAIN;
}

static int submit(struct cordon_dev *cdev, struct cordon_cmd_request *req, u16 *tag)
{
	int err;

	if (!wait_event_timeout(cdev->cmd.free_wait, is_submitted(cdev, req, tag, &err),
				CORDON_CMD_TIMEOUT)) {
		cordon_nonsense(cdev, "no command was answered");
		err = -ETIMEDOUT;
	}
	if (err)
		request_free(cdev, req);
	return err;
}

/**
 * cordon_cmd_post() - send a command, don't wait for its end
 * @cdev: device
 * @opcode: enum cordon_opcode
 * @in: input, copied; NULL if there is none
 * @in_len: its length
 * @out: output, must stay until @done is called; NULL if there is none
 * @out_len: its greatest length
 * @arg: arguments, NULL for zeros
 * @done: called when the command is done with, for whatever reason; from process context, must
 *	not send commands. Not called if this function fails. NULL if nobody cares
 * @ctx: for @done
 *
 * Context: process context, may sleep until there is room in the ring.
 * Return: 0, -ENODEV if the device is gone, -EIO if it failed or is being reset, -ETIMEDOUT if
 * there was no room for too long (it is reset then), -ENOMEM.
 */
int cordon_cmd_post(struct cordon_dev *cdev, u16 opcode, const void *in, size_t in_len,
		    void *out, size_t out_len, const u64 arg[4],
		    void (*done)(void *ctx, const struct cordon_cmd_result *res), void *ctx)
{
	struct cordon_cmd_request *req;
	u16 tag;

	req = request_alloc(cdev, in, in_len, out_len);
	if (!req)
		return -ENOMEM;
	req->opcode = opcode;
	req->caller_out = out;
	req->done = done;
	req->ctx = ctx;
	if (arg)
		memcpy(req->arg, arg, sizeof(req->arg));
	return submit(cdev, req, &tag);
}

static void wake_waiter(void *ctx, const struct cordon_cmd_result *res)
{
	struct cmd_waiter *waiter = ctx;

	waiter->res = *res;
	/* The waiter may be gone after this. Pairs with the acquire in is_done(). */
	smp_store_release(&waiter->done, true);
}

static bool is_done(const struct cmd_waiter *waiter)
{
	/* Pairs with the release in wake_waiter(): the result is there. */
	return smp_load_acquire(&waiter->done);
}

/* Give up a command. False if its end has come after all: @waiter will be woken. */
static bool abandon(struct cordon_dev *cdev, u16 tag, struct cmd_waiter *waiter)
{
	struct cordon_cmd_queue *queue = &cdev->cmd;
	struct cordon_cmd_request *req;
	bool abandoned = false;

	spin_lock_irq(&queue->lock);
	req = queue->requests[tag];
	if (req && req->ctx == waiter) {
		req->done = NULL;
		req->ctx = NULL;
		req->caller_out = NULL;
		abandoned = true;
	}
	spin_unlock_irq(&queue->lock);
	return abandoned;
}

/*
 * Wait for the end of a command. When the card failed, it isn't waited for: the reset, which would
 * end the command, may need a lock that the caller holds.
 */
static void await(struct cordon_dev *cdev, u16 tag, struct cmd_waiter *waiter)
{
	struct cordon_cmd_queue *queue = &cdev->cmd;
	bool late;

	late = !wait_event_timeout(queue->free_wait, is_done(waiter) || !cordon_is_usable(cdev),
				   CORDON_CMD_TIMEOUT);
	if (is_done(waiter))
		return;
	if (!abandon(cdev, tag, waiter)) {
		/* Whoever took the request is about to finish it. */
		wait_event(queue->free_wait, is_done(waiter));
	} else if (test_bit(CORDON_DEV_GONE, &cdev->flags)) {
		waiter->res.error = -ENODEV;
	} else if (late) {
		waiter->res.error = -ETIMEDOUT;
		cordon_nonsense(cdev, "a command wasn't answered");
	}
}

/**
 * cordon_cmd_exec() - send a command and wait for its end
 * @cdev: device
 * @opcode: enum cordon_opcode
 * @in: input; NULL if there is none
 * @in_len: its length
 * @out: output; NULL if there is none
 * @out_len: its greatest length
 * @arg: arguments, NULL for zeros
 * @res: if not NULL, filled in with what the card said, also for errors
 *
 * Context: process context, sleeps.
 * Return: 0 or the status as -errno; -ENODEV if the device is gone, -EIO if it failed or is being
 * reset, -ETIMEDOUT if it didn't answer (it is reset then), -ENOMEM.
 */
int cordon_cmd_exec(struct cordon_dev *cdev, u16 opcode, const void *in, size_t in_len,
		    void *out, size_t out_len, const u64 arg[4], struct cordon_cmd_result *res)
{
	struct cmd_waiter waiter = { .res.error = -EIO, .res.status = CORDON_CMD_STATUS_FAULT };
	struct cordon_cmd_request *req;
	u16 tag;
	int err;

	req = request_alloc(cdev, in, in_len, out_len);
	if (!req)
		return -ENOMEM;
	req->opcode = opcode;
	req->caller_out = out;
	req->done = wake_waiter;
	req->ctx = &waiter;
	if (arg)
		memcpy(req->arg, arg, sizeof(req->arg));

	err = submit(cdev, req, &tag);
	if (err)
		waiter.res.error = err;
	else
		await(cdev, tag, &waiter);
	if (res)
		*res = waiter.res;
	return waiter.res.error;
}

/* Take the request that a completion is for out of the table, if the completion makes sense. */
static struct cordon_cmd_request *claim(struct cordon_cmd_queue *queue,
					const struct cordon_cmd_completion *cqe)
{
	struct cordon_cmd_request *req;
	u16 tag = le16_to_cpu(cqe->tag);

	if (tag >= CORDON_CMD_CNT || le32_to_cpu(cqe->valid) & ~CORDON_COMPLETION_VALID)
		return NULL;

	spin_lock_irq(&queue->lock);
	req = queue->requests[tag];
	if (req && le16_to_cpu(cqe->opcode) == req->opcode &&
	    le32_to_cpu(cqe->out_len) <= req->out.len)
		queue->requests[tag] = NULL;
	else
		req = NULL;
	spin_unlock_irq(&queue->lock);
	return req;
}

/**
 * cordon_cmd_reap() - take completions from the ring
 * @cdev: device
 *
 * Context: the admin interrupt's thread.
 * Return: true if there was any.
 */
bool cordon_cmd_reap(struct cordon_dev *cdev)
{
	struct cordon_cmd_queue *queue = &cdev->cmd;
	struct cordon_cmd_completion cqe;
	struct cordon_cmd_request *req;
	struct cordon_cmd_result res;
	bool any = false;

	while (cordon_ring_copy(&cqe, queue->cq, sizeof(cqe), CORDON_CMD_LOG2, queue->cq_cons)) {
		queue->cq_cons++;
		any = true;
		req = claim(queue, &cqe);
		if (!req) {
			cordon_nonsense(cdev, "completion of a command that wasn't sent");
			return any;
		}
		res.status = le16_to_cpu(cqe.status);
		res.error = status_to_errno(res.status);
		res.param = le16_to_cpu(cqe.param);
		res.min = le64_to_cpu(cqe.min);
		res.max = le64_to_cpu(cqe.max);
		res.out_len = le32_to_cpu(cqe.out_len);
		request_finish(cdev, req, &res);
	}
	return any;
}

/**
 * cordon_cmd_cancel() - end all commands under way
 * @cdev: device; CORDON_DEV_ENABLED is not set, and the card doesn't touch memory any more
 * @error: -errno for those who wait
 *
 * Context: process context.
 */
void cordon_cmd_cancel(struct cordon_dev *cdev, int error)
{
	struct cordon_cmd_result res = { .error = error, .status = CORDON_CMD_STATUS_FAULT };
	struct cordon_cmd_queue *queue = &cdev->cmd;
	struct cordon_cmd_request *req;
	unsigned int i;

	for (i = 0; i < CORDON_CMD_CNT; i++) {
		spin_lock_irq(&queue->lock);
		req = queue->requests[i];
		queue->requests[i] = NULL;
		spin_unlock_irq(&queue->lock);
		if (req)
			request_finish(cdev, req, &res);
	}
	wake_up_all(&queue->free_wait);
}

/**
 * cordon_cmd_is_late() - is there a command that the card should have answered?
 * @cdev: device
 *
 * Context: process context.
 * Return: true if there is.
 */
bool cordon_cmd_is_late(struct cordon_dev *cdev)
{
	struct cordon_cmd_queue *queue = &cdev->cmd;
	bool late = false;
	unsigned int i;

	spin_lock_irq(&queue->lock);
	for (i = 0; i < CORDON_CMD_CNT; i++)
		if (queue->requests[i] && time_after(jiffies, queue->requests[i]->deadline))
			late = true;
	spin_unlock_irq(&queue->lock);
	return late;
}

/**
 * cordon_cmd_rewind() - bring the rings into the state that an enable expects
 * @cdev: device; reset, its admin interrupt off, no command under way
 *
 * Context: process context.
 */
void cordon_cmd_rewind(struct cordon_dev *cdev)
{
	struct cordon_cmd_queue *queue = &cdev->cmd;

	spin_lock_irq(&queue->lock);
	memset(queue->sq, 0, CORDON_CMD_CNT * sizeof(*queue->sq));
	memset(queue->cq, 0, CORDON_CMD_CNT * sizeof(*queue->cq));
	queue->sq_prod = 0;
	queue->cq_cons = 0;
	spin_unlock_irq(&queue->lock);
}

/**
 * cordon_cmd_init() - make the command queue
 * @cdev: device
 *
 * Context: process context.
 * Return: 0 or -ENOMEM.
 */
int cordon_cmd_init(struct cordon_dev *cdev)
{
	struct cordon_cmd_queue *queue = &cdev->cmd;

	queue->pool = dma_pool_create("cordon-cmd", cdev->dev, CORDON_CMD_POOL_SIZE, 64, 0);
	if (!queue->pool)
		return -ENOMEM;
	queue->sq = dma_alloc_coherent(cdev->dev, CORDON_CMD_CNT * sizeof(*queue->sq),
				       &queue->sq_dma, GFP_KERNEL);
	if (!queue->sq)
		goto err_destroy_pool;
	queue->cq = dma_alloc_coherent(cdev->dev, CORDON_CMD_CNT * sizeof(*queue->cq),
				       &queue->cq_dma, GFP_KERNEL);
	if (!queue->cq)
		goto err_free_sq;
	return 0;

err_free_sq:
	dma_free_coherent(cdev->dev, CORDON_CMD_CNT * sizeof(*queue->sq), queue->sq,
			  queue->sq_dma);
err_destroy_pool:
	dma_pool_destroy(queue->pool);
	return -ENOMEM;
}

/**
 * cordon_cmd_exit() - free the command queue
 * @cdev: device; reset, no command under way
 *
 * Context: process context.
 */
void cordon_cmd_exit(struct cordon_dev *cdev)
{
	struct cordon_cmd_queue *queue = &cdev->cmd;

	dma_free_coherent(cdev->dev, CORDON_CMD_CNT * sizeof(*queue->cq), queue->cq,
			  queue->cq_dma);
	dma_free_coherent(cdev->dev, CORDON_CMD_CNT * sizeof(*queue->sq), queue->sq,
			  queue->sq_dma);
	dma_pool_destroy(queue->pool);
}
