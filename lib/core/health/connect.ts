import type { Clock, Timer } from '../clock.js';
import { type MasterReport, QuorumUnavailableError } from '../errors.js';
import type { Master } from '../master.interface.js';
import { quorumOf } from '../acquire/quorum-call.js';

/** Once a quorum can vote, the other masters get this many milliseconds to connect or to fail. */
const GRACE = 1_000;

/**
 * Connects all masters. Resolves when a quorum can vote, with the problems of the others.
 *
 * @throws {QuorumUnavailableError} if a quorum cannot vote within `timeout` milliseconds
 */
export function connectMasters(
  masters: readonly Master[],
  clock: Clock,
  timeout: number,
): Promise<readonly MasterReport[]> {
  const quorum = quorumOf(masters.length);
  return new Promise((resolve, reject) => {
    let undecided = masters.length;
    let grace: Timer | undefined;
    let done = false;

    const problems = (): MasterReport[] =>
      masters.map((master) => ({ master: master.name, answer: master.problem() })).filter(({ answer }) => answer);
    const finish = (): void => {
      deadline.cancel();
      grace?.cancel();
      done = true;
      const missing = problems();
      if (masters.length - missing.length >= quorum) resolve(missing);
      else reject(new QuorumUnavailableError(`start within ${timeout} ms`, [], missing, quorum, masters.length));
    };
    const retry = (): void => {
      if (done || masters.length - problems().length < quorum) return;
      if (undecided === 0) finish();
      else grace ??= clock.schedule(GRACE, endGrace);
    };
    const endGrace = (): void => {
      grace = undefined;
      if (masters.length - problems().length >= quorum) finish();
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
