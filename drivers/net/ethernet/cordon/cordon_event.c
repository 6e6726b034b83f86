// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cordon: interrupts and events.
 *
 * Vector 0 belongs to the admin rings. Its hard handler only wakes the thread (and, if the device
 * has no other vector, NAPI); the thread empties both rings and asks for the next interrupt.
 */

#include <linux/interrupt.h>

#include "cordon_hw.h"
#include "cordon_ipsec.h"
#include "cordon_queue.h"

static bool copy_event(struct cordon_dev *cdev, struct cordon_event *event)
{
	return cordon_ring_copy(event, cdev->events.ring, sizeof(*event), CORDON_EVENT_LOG2,
				cdev->events.cons);
}

/* Move events from the ring to the work, one ringful at most: a mad card might never stop. */
static bool reap_events(struct cordon_dev *cdev)
{
	struct cordon_event_queue *queue = &cdev->events;
	struct cordon_event event;
	unsigned int cnt;

	for (cnt = 0; cnt < CORDON_EVENT_CNT && copy_event(cdev, &event); cnt++) {
		queue->cons++;
		if (!kfifo_put(&queue->fifo, event))
			atomic_set(&queue->lost, 1);
	}
	if (cnt)
		queue_work(cdev->wq, &queue->work);
	return cnt;
}

/**
 * cordon_event_arm() - ask for an interrupt by the admin rings
 * @cdev: device
 *
 * Context: the admin interrupt's thread, or nothing that races with it.
 */
void cordon_event_arm(struct cordon_dev *cdev)
{
	cordon_hw_arm(cdev, CORDON_LINE_ADMIN, cdev->cmd.cq_cons, cdev->events.cons, ++cdev->arm);
}

static bool is_work_waiting(struct cordon_dev *cdev)
{
	struct cordon_cmd_completion cqe;
	struct cordon_event event;

	return copy_event(cdev, &event) ||
	       cordon_ring_copy(&cqe, cdev->cmd.cq, sizeof(cqe), CORDON_CMD_LOG2,
				cdev->cmd.cq_cons);
}

static irqreturn_t admin_irq(int irq, void *data)
{
	struct cordon_vector *vector = data;

	if (vector->cdev->vector_cnt == 1)
		cordon_queue_schedule(vector);
	return IRQ_WAKE_THREAD;
}

static irqreturn_t cordon_event_thread(int irq, void *data)
{
	struct cordon_vector *vector = data;
	struct cordon_dev *cdev = vector->cdev;
	bool any = false;

	if (!cordon_is_usable(cdev))
		return IRQ_HANDLED;
	do {
		any |= cordon_cmd_reap(cdev);
		any |= reap_events(cdev);
		if (!cordon_is_usable(cdev))
			return IRQ_HANDLED;
		cordon_event_arm(cdev);
		cond_resched();
	} while (is_work_waiting(cdev));

	/* An interrupt for nothing may be how the card tells that its firmware died. */
	if (!any && cdev->vector_cnt > 1)
		mod_delayed_work(system_percpu_wq, &cdev->health_work, 0);
	return IRQ_HANDLED;
}

static irqreturn_t queue_irq(int irq, void *data)
{
	cordon_queue_schedule(data);
	return IRQ_HANDLED;
}

static void handle_queue_error(struct cordon_dev *cdev, u32 index, u64 result)
{
	const char *reason = "unknown";

	if (index >= cdev->port.queue_pairs)
		return cordon_nonsense(cdev, "error of a queue pair that doesn't exist");
	if (result < CORDON_RESULT_CNT && cordon_result_names[result])
		reason = cordon_result_names[result];
	dev_err_ratelimited(cdev->dev, "queue pair %u was stopped by the card: %s\n", index,
			    reason);
	cordon_reset_schedule(cdev);
}

static void handle_event(struct cordon_dev *cdev, const struct cordon_event *event)
{
	u16 type = le16_to_cpu(event->type);
	u32 handle = le32_to_cpu(event->handle);
	u64 value = le64_to_cpu(event->value);

	switch (type) {
	case CORDON_EVENT_LINK:
		cordon_netdev_set_link(cdev, value == 1);
		break;
	case CORDON_EVENT_OVERFLOW:
		atomic_set(&cdev->events.lost, 1);
		break;
	case CORDON_EVENT_QUEUE_ERROR:
		handle_queue_error(cdev, handle, value);
		break;
	case CORDON_EVENT_SA_FIRST_USE:
	case CORDON_EVENT_SA_SOFT:
	case CORDON_EVENT_SA_HARD:
	case CORDON_EVENT_SA_EXHAUSTED:
	case CORDON_EVENT_SA_NEIGHBOUR:
		cordon_ipsec_event(cdev, type, handle, value);
		break;
	default:
		/* A later minor version of the contract may have more events. */
		break;
	}
}

static void cordon_event_work(struct work_struct *work)
{
	struct cordon_dev *cdev = container_of(work, struct cordon_dev, events.work);
	struct cordon_event event;

	/* The network device is made after the first events may have come. */
	if (!smp_load_acquire(&cdev->netdev_ready))
		return;
	while (kfifo_get(&cdev->events.fifo, &event))
		handle_event(cdev, &event);
	if (atomic_xchg(&cdev->events.lost, 0))
		cordon_ipsec_events_lost(cdev);
}

/**
 * cordon_event_start() - begin to act upon events
 * @cdev: device, its network device is complete, if not yet registered
 *
 * Context: process context.
 */
void cordon_event_start(struct cordon_dev *cdev)
{
	/* Pairs with the acquire in cordon_event_work(). */
	smp_store_release(&cdev->netdev_ready, true);
	queue_work(cdev->wq, &cdev->events.work);
}

/**
 * cordon_event_stop() - act upon events no more
 * @cdev: device, its network device is down for good
 *
 * Context: process context; must not hold what the handlers of events take.
 */
void cordon_event_stop(struct cordon_dev *cdev)
{
	WRITE_ONCE(cdev->netdev_ready, false);
	disable_work_sync(&cdev->events.work);
}

/**
 * cordon_event_rewind() - bring the ring into the state that an enable expects
 * @cdev: device; reset, its admin interrupt off
 *
 * Context: process context.
 */
void cordon_event_rewind(struct cordon_dev *cdev)
{
	memset(cdev->events.ring, 0, CORDON_EVENT_CNT * sizeof(*cdev->events.ring));
	cdev->events.cons = 0;
	cdev->arm = 0;
}

/**
 * cordon_event_init() - make the event queue
 * @cdev: device
 *
 * Context: process context.
 * Return: 0 or -ENOMEM.
 */
int cordon_event_init(struct cordon_dev *cdev)
{
	struct cordon_event_queue *queue = &cdev->events;

	INIT_KFIFO(queue->fifo);
	INIT_WORK(&queue->work, cordon_event_work);
	queue->ring = dma_alloc_coherent(cdev->dev, CORDON_EVENT_CNT * sizeof(*queue->ring),
					 &queue->dma, GFP_KERNEL);
	return queue->ring ? 0 : -ENOMEM;
}

/**
 * cordon_event_exit() - free the event queue
 * @cdev: device; reset, its interrupts freed
 *
 * Context: process context.
 */
void cordon_event_exit(struct cordon_dev *cdev)
{
	cancel_work_sync(&cdev->events.work);
	dma_free_coherent(cdev->dev, CORDON_EVENT_CNT * sizeof(*cdev->events.ring),
			  cdev->events.ring, cdev->events.dma);
}

/**
 * cordon_event_alloc_vectors() - get interrupt vectors
 * @cdev: device
 *
 * One for the admin rings and, as far as there are, one for each queue pair, so that each of them
 * can be bound to processors by itself.
 *
 * Context: process context.
 * Return: 0 or -errno.
 */
int cordon_event_alloc_vectors(struct cordon_dev *cdev)
{
	unsigned int max = cordon_hw_read(cdev, CORDON_HW_REG(vectors));
	int cnt, i;

	max = clamp_t(unsigned int, max, 1, CORDON_VECTORS_MAX);
	cnt = pci_alloc_irq_vectors(cdev->pdev, 1, max, PCI_IRQ_MSIX | PCI_IRQ_MSI);
	if (cnt < 0)
		return cnt;

	cdev->vector_cnt = cnt;
	for (i = 0; i < cnt; i++) {
		struct cordon_vector *vector = &cdev->vectors[i];

		vector->cdev = cdev;
		vector->index = i;
		vector->irq = pci_irq_vector(cdev->pdev, i);
		if (i)
			snprintf(vector->name, sizeof(vector->name), "cordon-%s-%d",
				 pci_name(cdev->pdev), i - 1);
		else
			snprintf(vector->name, sizeof(vector->name), "cordon-%s-admin",
				 pci_name(cdev->pdev));
	}
	return 0;
}

/**
 * cordon_event_free_vectors() - undo cordon_event_alloc_vectors()
 * @cdev: device
 *
 * Context: process context.
 */
void cordon_event_free_vectors(struct cordon_dev *cdev)
{
	pci_free_irq_vectors(cdev->pdev);
}

/**
 * cordon_event_request_irqs() - request all interrupts
 * @cdev: device
 *
 * They stay for as long as the driver is bound, whatever becomes of queues, so that affinities that
 * the user set stay too.
 *
 * Context: process context.
 * Return: 0 or -errno.
 */
int cordon_event_request_irqs(struct cordon_dev *cdev)
{
	unsigned int i;
	int err;

	err = request_threaded_irq(cdev->vectors[0].irq, admin_irq, cordon_event_thread, 0,
				   cdev->vectors[0].name, &cdev->vectors[0]);
	if (err)
		return err;
	for (i = 1; i < cdev->vector_cnt; i++) {
		err = request_irq(cdev->vectors[i].irq, queue_irq, 0, cdev->vectors[i].name,
				  &cdev->vectors[i]);
		if (err)
			goto err_free_irqs;
	}
	return 0;

err_free_irqs:
	while (i--)
		free_irq(cdev->vectors[i].irq, &cdev->vectors[i]);
	return err;
}

/**
 * cordon_event_free_irqs() - undo cordon_event_request_irqs()
 * @cdev: device
 *
 * Context: process context.
 */
void cordon_event_free_irqs(struct cordon_dev *cdev)
{
	unsigned int i;

	for (i = 0; i < cdev->vector_cnt; i++)
		free_irq(cdev->vectors[i].irq, &cdev->vectors[i]);
}
