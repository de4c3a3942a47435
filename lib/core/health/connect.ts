import type { Clock, Timer } from '../clock.js';
import { type MasterReport, QuorumUnavailableError } from '../errors.js';
import type { Master, UnreachableReply } from '../master.interface.js';
import { quorumOf } from '../acquire/quorum-call.js';

/** Once the outcome is certain, the other masters get this many milliseconds to connect or to fail. */
const GRACE = 1_000;

/** The masters to connect, and how long that may take. */
export interface ConnectRequest {
  readonly masters: readonly Master[];
  readonly clock: Clock;
  /** Milliseconds. */
  readonly timeout: number;
  /** The end of the error's message. */
  readonly advice?: string | undefined;
}

interface Problem extends MasterReport {
  readonly answer: UnreachableReply;
}

/**
 * Connects all masters. Resolves when a quorum can vote, with the problems of the others.
 *
 * @throws {QuorumUnavailableError} if a quorum cannot vote within `timeout` milliseconds; at once, if waiting cannot help
 */
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

/** Whether so many masters have a problem that waiting cannot end that a quorum cannot vote. */
export function isHopeless(reports: readonly MasterReport[], masters: number): boolean {
  const permanent = reports.filter(({ answer }) => answer?.kind === 'unreachable' && answer.isPermanent);
  return masters - permanent.length < quorumOf(masters);
}
