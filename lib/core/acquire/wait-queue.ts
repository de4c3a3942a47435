import { LinkedList, type ListNode } from './linked-list.js';
import type { Refusal } from './refusal.js';
import type { Waiter, WakeReason } from './waiter.js';

/** The waiter or the holder of a resource. */
interface Occupant {
  readonly hasEnded: boolean;
  wake(why?: WakeReason): void;
}

/** A holder stays at the head of the queue, and is never woken. */
const HOLDER: Occupant = { hasEnded: true, wake: () => undefined };

/** The holder of one resource and its waiters, in the order of their arrival. */
class ResourceQueue extends LinkedList<Occupant> {
  /** The last refusal of the acquisition at the head. */
  refusal: Refusal | undefined;

  constructor(readonly resource: string) {
    super();
  }
}

/** One acquisition in the queues of its resources. */
export class QueueEntry {
  /** @internal */
  constructor(
    private readonly queue: WaitQueue,
    private readonly nodes: readonly ListNode<Occupant>[],
  ) {}

  /** Whether it is at the head of all its queues. */
  get isFirst(): boolean {
    return this.nodes.every(isFirstNode);
  }

  /** The last refusal of an acquisition at the head of these queues; `undefined` once it is granted. */
  get refusal(): Refusal | undefined {
    return queueOf(this.nodes.find((node) => queueOf(node)?.refusal))?.refusal;
  }

  set refusal(refusal: Refusal | undefined) {
    for (const node of this.nodes) {
      const queue = queueOf(node);
      if (queue) queue.refusal = refusal;
    }
  }

  /** The lock is granted. The entry stays at the head until `leave`. */
  becomeHolder(): void {
    this.refusal = undefined;
    for (const node of this.nodes) node.value = HOLDER;
  }

  /** Leaves all queues. Idempotent. */
  leave(): void {
    for (const node of this.nodes) this.queue.leave(node);
  }
}

/**
 * First come, first served within one process, with one queue per resource.
 *
 * The holder of a resource stays at the head of its queue until the lock has ended, so the waiters behind it cause no
 * traffic at all. An acquisition of several resources joins all their queues at once. The order is therefore the same everywhere,
 * and two acquisitions cannot deadlock.
 */
export class WaitQueue {
  private readonly queues = new Map<string, ResourceQueue>();

  /** Joins the queues of all resources. */
  join(resources: readonly string[], waiter: Waiter): QueueEntry {
    return new QueueEntry(
      this,
      resources.map((resource) => this.queueFor(resource).add(waiter)),
    );
  }

  /** Whether the queues of all these resources are empty. */
  isEmpty(resources: readonly string[]): boolean {
    return !resources.some((resource) => this.queues.has(resource));
  }

  /** Wakes the heads of all queues for another attempt. */
  wakeAll(): void {
    for (const { first } of this.queues.values()) first?.wake();
  }

  /** Wakes the head of a queue because a master has notified this process. Returns false if no waiter is there. */
  notify(resource: string): boolean {
    const first = this.queues.get(resource)?.first;
    if (!first || first.hasEnded) return false;
    first.wake('next');
    return true;
  }

  /** Wakes the heads of the queues of these resources for another attempt. */
  wakeFirst(resources: readonly string[]): void {
    for (const resource of resources) this.queues.get(resource)?.first?.wake();
  }

  /** @internal */
  leave(node: ListNode<Occupant>): void {
    const queue = queueOf(node);
    if (!queue) return;
    const wasFirst = node.isFirst;
    node.leave();
    if (queue.isEmpty) this.queues.delete(queue.resource);
    // Nothing changes for the head when a waiter behind it gives up.
    else if (wasFirst) queue.first?.wake();
  }

  private queueFor(resource: string): ResourceQueue {
    let queue = this.queues.get(resource);
    if (!queue) {
      queue = new ResourceQueue(resource);
      this.queues.set(resource, queue);
    }
    return queue;
  }
}

function isFirstNode(node: ListNode<Occupant>): boolean {
  return node.isFirst;
}

function queueOf(node: ListNode<Occupant> | undefined): ResourceQueue | undefined {
  return node?.list as ResourceQueue | undefined;
}
