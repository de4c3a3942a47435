import { TTL } from '../config.js';
import { run, surround } from './show.js';

const log = (line: string): void => void process.stdout.write(`${line}\n`);

try {
  const surroundings = await surround(log);
  try {
    log('\nWith the fence:');
    const guarded = await run(surroundings, true, log);
    log('\nWithout the fence:');
    const unguarded = await run(surroundings, false, log);

    const isPaused = guarded.paused > TTL && unguarded.paused > TTL;
    const isRefused = guarded.status === 409 && guarded.count === guarded.expected;
    const wentWrong = unguarded.count !== unguarded.expected;
    log(`\nThe late write was ${isRefused ? 'refused' : 'NOT refused'} with the fence,`);
    log(`and ${wentWrong ? 'destroyed' : 'did NOT destroy'} what others had written without it.`);
    process.exitCode = isPaused && isRefused && wentWrong ? 0 : 1;
  } finally {
    await surroundings.stop();
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
