import type { Clock } from '../clock.js';
import { describeReply } from '../errors.js';
import type { MasterReply, ReplyCallback, MasterRequest } from '../master.interface.js';
import { askAll } from '../acquire/quorum-call.js';
import { type MasterStatus, type RedlockStatus, summarize } from './status.js';
import type { CircuitBreakerMaster } from './circuit-breaker-master.js';

/** What a probe needs beside the masters. */
export interface ProbeContext {
  /** The key that all masters write. */
  readonly key: string;
  readonly clock: Clock;
  /** Milliseconds after which a master that has not answered is silent. */
  readonly timeout: number;
  /** What is known without a request. */
  readonly status: () => RedlockStatus;
}

/**
 * Makes all masters write a key that no lock uses, and returns their status. What is known without a request may be as
 * old as the last lock, and a master that answers may still refuse every write.
 */
export async function probe(
  masters: readonly CircuitBreakerMaster[],
  { key, clock, timeout, status }: ProbeContext,
): Promise<RedlockStatus> {
  const asked = clock.read().monotonic;
  const latencies = new Map<string, number>();
  const timed = masters.map((master) => ({
    name: master.name,
    ask: (request: MasterRequest, reply: ReplyCallback): void =>
      master.ask(request, (answer) => {
        latencies.set(master.name, clock.read().monotonic - asked);
        reply(answer);
      }),
  }));
  const reports = await askAll({ masters: timed, request: { op: 'probe', keys: [key] }, clock, timeout });
  const { instance, masters: known } = status();
  return summarize(
    instance,
    known.map((each, index) => statusAfter(each, reports[index]?.answer, latencies.get(each.master))),
  );
}

function statusAfter(known: MasterStatus, answer: MasterReply | undefined, latency: number | undefined): MasterStatus {
  switch (answer?.kind) {
    case 'granted':
    case 'held':
    case 'quarantined':
      return latency === undefined ? known : { ...known, latency };
    case 'refused':
      return isVoting(known) ? { ...known, state: 'refused', reason: describeReply(answer) } : known;
    case 'unreachable':
      return isVoting(known) ? { ...known, state: 'down', reason: answer.reason } : known;
    case 'timeout':
    case undefined:
      return isVoting(known) ? { ...known, state: 'silent', reason: 'no answer in time' } : known;
  }
}

/** For every other state, the known reason is more informative than the answer. */
function isVoting({ state }: MasterStatus): boolean {
  return state === 'voting';
}
