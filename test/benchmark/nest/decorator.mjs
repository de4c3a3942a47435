import { spread } from '../measure/rounds.mjs';
import { WorkerProcess } from '../worker/worker-process.mjs';

/** Measures what `@WithLock` adds to `LockService.withLock`, in microseconds per call. */
export async function decoratorOverhead(lengths) {
  const worker = new WorkerProcess();
  try {
    const pairs = await worker.run('decorator', lengths);
    return {
      decorated: spread(pairs.map(({ decorated }) => decorated)),
      direct: spread(pairs.map(({ direct }) => direct)),
      added: spread(pairs.map(({ decorated, direct }) => decorated - direct)),
    };
  } finally {
    await worker.end();
  }
}
