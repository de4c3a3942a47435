import { GRANTED, type MasterReply, type MasterRequest, type ReplyCallback } from '../../core/master.interface.js';
import type { ClusterNames } from './cluster-names.js';
import type { PartitionRequest } from './request-parts.js';

/** Sends the part of a request that concerns one partition. */
export type SendPart = (part: PartitionRequest, reply: ReplyCallback) => void;

/** Carries out a request to several partitions, as if they were one server. */
export class SplitRequest {
  private readonly answers: (MasterReply | undefined)[];
  private pending: number;

  constructor(
    private readonly request: MasterRequest,
    private readonly parts: readonly PartitionRequest[],
    private readonly names: ClusterNames,
    private readonly send: SendPart,
    private readonly reply: ReplyCallback,
  ) {
    this.answers = parts.map(() => undefined);
    this.pending = parts.length;
  }

  /**
   * Protocol 12.8.
   * @param inTurn whether each partition is asked only when the one before has granted: attempts that follow a refusal
   * would otherwise block one another
   */
  run(inTurn: boolean): void {
    if (inTurn) this.next(0);
    else this.parts.forEach((part, index) => this.send(part, (answer) => this.note(index, answer)));
  }

  private next(index: number): void {
    const part = this.parts[index];
    if (!part || ('withdrawn' in this.request && this.request.withdrawn)) {
      this.conclude();
      return;
    }
    this.send(part, (answer) => {
      this.answers[index] = answer;
      if (answer.kind === 'granted') this.next(index + 1);
      else this.conclude();
    });
  }

  private note(index: number, answer: MasterReply): void {
    this.answers[index] = answer;
    if (--this.pending === 0) this.conclude();
  }

  private conclude(): void {
    const { request, parts } = this;
    const answers = this.answers.flatMap((answer) => answer ?? []);
    const refusal = answers.length < parts.length ? (worstOf(answers) ?? NOT_SENT) : worstOf(answers);
    if (request.op === 'draw' && !refusal) this.agree(answers);
    else {
      if (refusal && request.op === 'acquire') this.giveBack();
      this.reply(refusal ?? combined(answers));
    }
  }

  /** Gives back what was taken, and what may have been. Protocol 12.8. */
  private giveBack(): void {
    this.parts.forEach(({ partition, request }, index) => {
      const answer = this.answers[index];
      const isTaken = answer && (answer.kind === 'granted' || ('sent' in answer && answer.sent));
      if (!isTaken || request.op !== 'acquire') return;
      const { keys, token, ttl, sharing } = request;
      const queues = keys.map((key) => this.names.queueOf(partition, key));
      const isShared = sharing !== undefined;
      this.send(
        { partition, request: { op: 'release', keys, token, ttl, queues, isShared, keepFor: 0 } },
        () => undefined,
      );
    });
  }

  /** A token is as large in every partition as the largest that one of them has drawn. Protocol 9.6. */
  private agree(answers: readonly MasterReply[]): void {
    const fences = answers.map((answer) => ('fence' in answer ? (answer.fence ?? 0) : 0));
    const largest = Math.max(...fences);
    const behind = this.parts.filter((_, index) => fences[index] !== largest);
    if (behind.length === 0) {
      this.reply({ kind: 'granted', fence: largest });
      return;
    }
    const raised = behind.map(({ partition, request }) => ({
      partition,
      request: { ...(request as MasterRequest & { op: 'draw' }), atLeast: largest, isFirst: false },
    }));
    const request = { ...this.request, isFirst: false } as MasterRequest;
    const known = (answer: MasterReply): void =>
      this.reply(answer.kind === 'granted' ? { kind: 'granted', fence: Math.max(largest, answer.fence ?? 0) } : answer);
    new SplitRequest(request, raised, this.names, this.send, known).run(false);
  }
}

const NOT_SENT: MasterReply = Object.freeze({ kind: 'timeout', sent: false });

/** The answer that keeps all from being granted: a holder is reported first, since waiting for it can help. */
function worstOf(answers: readonly MasterReply[]): MasterReply | undefined {
  const held = answers.filter((answer) => answer.kind === 'held');
  if (held.length === 0) return answers.find(({ kind }) => kind !== 'granted');
  const remaining = held.map((answer) => answer.remaining);
  const waiting = held.flatMap((answer) => answer.waiting ?? []);
  return {
    ...(held[0] as MasterReply & { kind: 'held' }),
    remaining: remaining.includes(undefined) ? undefined : Math.max(...remaining.map(Number)),
    ...(waiting.length > 0 && { waiting: Math.max(...waiting) }),
  };
}

function combined(answers: readonly MasterReply[]): MasterReply {
  const has = (name: 'hasWaiters' | 'healed'): boolean =>
    answers.some((answer) => answer.kind === 'granted' && answer[name] === true);
  return {
    ...GRANTED,
    ...(has('hasWaiters') && { hasWaiters: true }),
    ...(has('healed') && { healed: true }),
  };
}
