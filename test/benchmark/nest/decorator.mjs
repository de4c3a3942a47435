import { spread } from '../measure/rounds.mjs';
import { WorkerProcess } from '../worker/worker-process.mjs';

/**
 * Measures what a call costs that locks by `acquire` and `release`, by `LockService.withLock`, and by `@WithLock`, in
 * microseconds of the client's CPU.
 *
 * @param masters as in the options of the module
 */
export async function decoratorOverhead(masters, lengths) {
  const worker = new WorkerProcess();
  try {
    const rounds = await worker.run('decorator', { masters, ...lengths });
    const of = (figure) => spread(rounds.map(figure));
    return {
      byHand: of(({ byHand }) => byHand),
      direct: of(({ direct }) => direct),
      decorated: of(({ decorated }) => decorated),
      added: of(({ decorated, direct }) => decorated - direct),
    };
  } finally {
    await worker.end();
  }
}
