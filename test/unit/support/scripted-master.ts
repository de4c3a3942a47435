import type {
  MasterReply,
  Master,
  MasterIdentity,
  ReplyCallback,
  MasterRequest,
  NotificationListener,
} from '../../../lib/masters/master.interface.js';
import type { UnreachableReply } from '../../../lib/redlock/server.js';
import { MemoryMaster } from '../../../lib/memory/memory-master.js';
import type { TestClock } from './test-clock.js';

/** What a master does with one request. */
export type Behaviour = (request: MasterRequest, reply: ReplyCallback, master: ScriptedMaster) => void;

/** Executes the request and answers, at once. */
export const obeys: Behaviour = (request, reply, master) => master.memory.ask(request, reply);

/** Never answers, and does nothing. */
export const hangs: Behaviour = () => {};

/** Executes the request, but the answer never arrives. */
export const obeysInSilence: Behaviour = (request, _, master) => master.memory.ask(request, () => {});

/** Gives this answer before `ask` returns, and does nothing else. */
export function says(answer: MasterReply): Behaviour {
  return (_, reply) => reply(answer);
}

/** Executes the request at once; the answer is delayed. */
export function tellsAfter(delay: number): Behaviour {
  return (request, reply, master) =>
    master.memory.ask(request, (answer) => void master.clock.schedule(delay, () => reply(answer)));
}

/** Delays the arrival of the request. */
export function after(delay: number, behaviour: Behaviour): Behaviour {
  return (request, reply, master) => void master.clock.schedule(delay, () => behaviour(request, reply, master));
}

/** Delays the arrival of the request, then executes and answers it. */
export function obeysAfter(delay: number): Behaviour {
  return after(delay, obeys);
}

/** Behaves differently for one kind of request. */
export function only(op: MasterRequest['op'], behaviour: Behaviour, otherwise: Behaviour = obeys): Behaviour {
  return (request, reply, master) => (request.op === op ? behaviour : otherwise)(request, reply, master);
}

export const unreachable: UnreachableReply = { kind: 'unreachable', reason: 'connection refused', sent: false };
export const cutOff: UnreachableReply = { kind: 'unreachable', reason: 'connection lost', sent: true };
export const refused: MasterReply = { kind: 'refused', code: 'NOAUTH', reason: 'Authentication required.' };
export const held: MasterReply = { kind: 'held', remaining: undefined };
export const granted: MasterReply = { kind: 'granted' };

export interface Asked {
  /** Milliseconds on the monotonic clock. */
  readonly at: number;
  readonly request: MasterRequest;
  readonly reply: ReplyCallback;
}

/** A master that follows a script and records its requests. Without a script it works normally. */
export class ScriptedMaster implements Master {
  readonly memory: MemoryMaster;
  readonly asked: Asked[] = [];
  behaviour: Behaviour = obeys;
  closed = false;
  /** The result of `identity`. */
  known: MasterIdentity = {};
  /** The result of `problem`. */
  trouble: UnreachableReply | undefined;
  /** Resolved when the first connection attempt has ended. */
  connected: Promise<void> = Promise.resolve();
  private listener: (() => void) | undefined;

  constructor(
    readonly clock: TestClock,
    readonly name = 'master',
  ) {
    this.memory = new MemoryMaster(clock, name);
  }

  /** Number of keys that are held. */
  get size(): number {
    return this.memory.size;
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    this.asked.push({ at: this.clock.now, request, reply });
    this.behaviour(request, reply, this);
  }

  /** The requests of one kind. */
  requests<Op extends MasterRequest['op']>(op: Op): Extract<MasterRequest, { op: Op }>[] {
    return this.asked.flatMap(({ request }) =>
      request.op === op ? [request as Extract<MasterRequest, { op: Op }>] : [],
    );
  }

  /** The times at which requests of one kind were sent. */
  times(op: MasterRequest['op']): number[] {
    return this.asked.filter(({ request }) => request.op === op).map(({ at }) => at);
  }

  /** Restores the connection, as a reconnect does. */
  becomeReady(): void {
    this.trouble = undefined;
    this.listener?.();
  }

  connect(): Promise<void> {
    return this.connected;
  }

  problem(): UnreachableReply | undefined {
    return this.trouble;
  }

  identity(): MasterIdentity {
    return this.known;
  }

  get isQuarantined(): boolean {
    return this.known.quarantine !== undefined;
  }

  onReady(listener: () => void): void {
    this.listener = listener;
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    this.memory.listen(waiter, listener);
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}
