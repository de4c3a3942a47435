import type { Clock, Timer } from '../clock.js';
import { describeReply, type MasterReport, QuorumUnavailableError } from '../errors.js';
import type { Master, MasterReply, UnreachableReply } from '../master.interface.js';
import { askAll, quorumOf } from '../acquire/quorum-call.js';
import { type MasterStatus, type RedlockStatus, summarize } from './status.js';
import type { CircuitBreakerMaster } from './circuit-breaker-master.js';

interface ProbeContext {
  readonly key: string;
  readonly clock: Clock;
  // Milliseconds after which a master that has not answered is silent.
  readonly timeout: number;
  // What is known without a request.
  readonly status: () => RedlockStatus;
}

// What is known without a request may be as old as the last lock, and a master that answers may still refuse every
// write. Therefore, all masters write a key that no lock uses.
export async function probeMasters(
  masters: readonly CircuitBreakerMaster[],
  { key, clock, timeout, status }: ProbeContext,
): Promise<RedlockStatus> {
  const asked = clock.read().monotonic;
  const latencies = new Map<string, number>();
  const reports = await askAll({
    masters,
    request: { op: 'probe', keys: [key] },
    clock,
    timeout,
    judge: (answer, { name }) => {
      latencies.set(name, clock.read().monotonic - asked);
      return answer;
    },
  });
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

// For every other state, the known reason is more informative than the answer.
function isVoting({ state }: MasterStatus): boolean {
  return state === 'voting';
}

// Once the outcome is certain, the other masters get this many milliseconds to connect or to fail.
const GRACE = 1_000;

interface ConnectRequest {
  readonly masters: readonly Master[];
  readonly clock: Clock;
  // Milliseconds.
  readonly timeout: number;
  // The end of the error's message.
  readonly advice?: string | undefined;
}

interface Problem extends MasterReport {
  readonly answer: UnreachableReply;
}

// Resolves when a quorum can vote, with the problems of the others. Rejects if none can after `timeout` milliseconds,
// or at once, if waiting cannot help.
export function connectMasters({ masters, clock, timeout, advice }: ConnectRequest): Promise<readonly MasterReport[]> {
  const quorum = quorumOf(masters.length);
  return new Promise((resolve, reject) => {
    let undecided = masters.length;
    let grace: Timer | undefined;
    let done = false;

    const problems = (): Problem[] =>
      masters.flatMap((master) => {
        const answer = master.problem();
        return answer ? [{ master: master.name, answer }] : [];
      });
    const hasFailed = (missing: readonly Problem[]): boolean => isHopeless(missing, masters.length);
    const isCertain = (): boolean => {
      const missing = problems();
      return masters.length - missing.length >= quorum || hasFailed(missing);
    };
    const finish = (): void => {
      deadline.cancel();
      grace?.cancel();
      done = true;
      const missing = problems();
      if (masters.length - missing.length >= quorum) {
        resolve(missing);
        return;
      }
      const intent = hasFailed(missing) ? 'start' : `start within ${timeout} ms`;
      reject(new QuorumUnavailableError(intent, [], missing, quorum, masters.length, advice));
    };
    const retry = (): void => {
      if (done || !isCertain()) return;
      if (undecided === 0) finish();
      else grace ??= clock.schedule(GRACE, endGrace);
    };
    const endGrace = (): void => {
      grace = undefined;
      if (isCertain()) finish();
    };

    const deadline = clock.schedule(timeout, finish);
    for (const master of masters) {
      master.onReady(retry);
      void master.connect().then(() => {
        undecided--;
        retry();
      });
    }
  });
}

export function isHopeless(reports: readonly MasterReport[], masters: number): boolean {
  const permanent = reports.filter(({ answer }) => answer?.kind === 'unreachable' && answer.isPermanent);
  return masters - permanent.length < quorumOf(masters);
}
