import type { Clock } from '../clock.js';
import { describeReply } from '../errors.js';
import type { MasterReply, ReplyCallback, MasterRequest } from '../master.interface.js';
import { askAll } from '../acquire/quorum-call.js';
import { type MasterStatus, type RedlockStatus, statusOf, summarize } from './status.js';
import type { CircuitBreakerMaster } from './circuit-breaker-master.js';

/**
 * Makes all masters write a key that no lock uses, and returns their status. What is known without a request may be as
 * old as the last lock, and a master that answers may still refuse every write.
 */
export async function probe(
  masters: readonly CircuitBreakerMaster[],
  key: string,
  clock: Clock,
  timeout: number,
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
  return summarize(
    statusOf(masters).masters.map((known, index) =>
      statusAfter(known, reports[index]?.answer, latencies.get(known.master)),
    ),
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
