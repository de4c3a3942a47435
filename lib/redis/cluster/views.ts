import { type Clock, elapsedBetween, type Instant } from '../../core/clock.js';
import type { ClusterNode } from './cluster-node.js';
import { type NodeView, PARTITIONS } from './cluster-map.js';

// In milliseconds: a vote counts if a view that confirms its owner was sent at most so long before it.
// Protocol 12.7
export const VIEW_AGE = 1_000;
// While votes are asked for, a view is sent this often, in milliseconds.
export const VIEW_INTERVAL = VIEW_AGE / 2;
// A node that hangs is asked so many times, and then no more.
export const MAX_QUESTIONS = 3;

interface ViewsContext {
  readonly clock: Clock;
  // Milliseconds after which a round ends without the answers that are missing.
  readonly patience: number;
  readonly nodes: () => readonly ClusterNode[];
  // Takes the answers of a round so far. Returns the partitions whose claims they confirm.
  readonly learn: (views: readonly NodeView[]) => ReadonlySet<number>;
}

interface Pending {
  readonly partition: number;
  readonly sent: Instant;
  readonly reply: (isConfirmed: boolean) => void;
}

// Asks the primaries who owns the partitions: an old primary that was paused grants after its replica was promoted, and
// nothing in its answer shows that.
export class Views {
  // By partition: when the last view that confirmed its owner was sent.
  private readonly confirmedAt = new Array<Instant | undefined>(PARTITIONS).fill(undefined);
  private sentAt: Instant | undefined;
  private pending: Pending[] = [];
  private rounds = new Set<Instant>();
  // No older view counts: the clocks of this process have stood still. Monotonic, in milliseconds.
  private notBefore = -Infinity;

  constructor(private readonly context: ViewsContext) {}

  refresh(now: Instant): void {
    if (!this.sentAt || elapsedBetween(this.sentAt, now) >= VIEW_INTERVAL) void this.ask();
  }

  // Resolves when all nodes have answered, or have not within the time limit.
  async ask(): Promise<void> {
    const { clock, nodes, learn, patience } = this.context;
    const sent = clock.read();
    this.sentAt = sent;
    this.rounds.add(sent);
    const views: NodeView[] = [];
    const asked = nodes().filter(({ questions }) => questions < MAX_QUESTIONS);
    let isOver = false;
    const answers = asked.map(async (node) => {
      const view = await node.ask();
      if (isOver) return;
      views.push(view);
      for (const partition of learn(views)) {
        const before = this.confirmedAt[partition];
        if (before === undefined || sent.monotonic >= before.monotonic) this.confirmedAt[partition] = sent;
      }
      this.settle();
    });
    await new Promise<void>((resolve) => {
      const timer = clock.schedule(patience, resolve).unref();
      void Promise.allSettled(answers).then(() => {
        timer.cancel();
        resolve();
      });
    });
    isOver = true;
    this.rounds.delete(sent);
    this.settle();
  }

  confirm(partition: number, sent: Instant, reply: (isConfirmed: boolean) => void): void {
    if (this.counts(this.confirmedAt[partition], sent)) {
      reply(true);
      return;
    }
    this.pending.push({ partition, sent, reply });
    if (!this.mayConfirm(sent)) void this.ask();
  }

  noteStandstill(): void {
    this.notBefore = this.context.clock.read().monotonic;
  }

  forget(partitions: readonly number[]): void {
    for (const partition of partitions) this.confirmedAt[partition] = undefined;
  }

  private settle(): void {
    if (this.pending.length === 0) return;
    const { pending } = this;
    this.pending = [];
    for (const one of pending) {
      const isConfirmed = this.counts(this.confirmedAt[one.partition], one.sent);
      if (isConfirmed || !this.mayConfirm(one.sent)) one.reply(isConfirmed);
      else this.pending.push(one);
    }
  }

  private mayConfirm(sent: Instant): boolean {
    for (const asked of this.rounds) if (this.counts(asked, sent)) return true;
    return false;
  }

  private counts(viewed: Instant | undefined, sent: Instant): boolean {
    return viewed !== undefined && viewed.monotonic >= this.notBefore && isRecent(viewed, sent);
  }
}

// The monotonic clock alone would not notice that the machine was suspended in between, and that another server was
// promoted meanwhile.
export function isRecent(viewed: Instant | undefined, now: Instant, age = VIEW_AGE): boolean {
  return viewed !== undefined && elapsedBetween(viewed, now) <= age;
}
