// npm run simulate:jobs: plays many plans of scheduled jobs in virtual time, replays one of them, or runs all mutants.
import { availableParallelism } from 'node:os';
import { ensureDependencies } from '../../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../../scripts/options.mjs';

const { values } = optionsOf({
  options: {
    runs: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: String(Math.max(1, availableParallelism())) },
    replay: { type: 'string' },
    shrink: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
  },
});
/** Within this many plans, each rare state must be reached. */
const REACHED_WITHIN = 10_000;

// A fresh clone does not have the compiler yet.
await ensureDependencies();
const { compileJobs } = await import('./compile.mjs');
const { runMutants } = await import('./mutants.mjs');
const { Workers } = await import('./workers.mjs');

if (values.mutants || values.mutant !== undefined) process.exitCode = await mutants();
else if (values.replay !== undefined) process.exitCode = await replay(whole('replay'), false);
else if (values.shrink !== undefined) process.exitCode = await replay(whole('shrink'), true);
else process.exitCode = await simulate(whole('runs'), whole('seed'));

function whole(name) {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  console.error(`--${name} must be a whole number, not ${values[name]}`);
  process.exit(2);
}

async function simulate(runs, seed) {
  const compiled = await compileJobs();
  const workers = new Workers(compiled.folder, whole('workers'));
  const began = performance.now();
  try {
    const { total, reached, failures } = await workers.playMany({ seed, runs }, (done) => showProgress(done, runs));
    const seconds = (performance.now() - began) / 1_000;
    const each = (number) => (number / total.runs).toFixed(1);
    console.log(
      `${total.runs} schedules from seed ${seed} in ${seconds.toFixed(1)} s: ${(total.runs / seconds).toFixed(0)} per second, ` +
        `each ${each(total.events)} events, ${each(total.ticks)} ticks and ${each(total.starts)} starts; ` +
        `fingerprint ${total.fingerprint}`,
    );
    const states = Object.entries(reached).sort(([, one], [, other]) => other - one);
    for (const [state, count] of states) console.log(`  ${String(count).padStart(8)}  sometimes: ${state}`);
    const never = states.filter(([, count]) => count === 0).map(([state]) => state);
    const isMissed = never.length > 0 && runs >= REACHED_WITHIN;
    if (isMissed) console.log(`NEVER REACHED, so nothing is proved of it: ${never.join('; ')}`);
    if (failures.length === 0) {
      console.log('No promise was broken.');
      return isMissed ? 1 : 0;
    }
    for (const { seed: failed, property, message } of failures.slice(0, 20)) {
      console.log(`BROKEN by seed ${failed}: ${property}: ${message}`);
    }
    const first = failures[0].seed;
    console.log(`${failures.length} schedules failed. The first: npm run simulate:jobs -- --shrink ${first}`);
    return 1;
  } finally {
    await workers.end();
    await compiled.remove();
  }
}

async function replay(seed, shrinks) {
  const compiled = await compileJobs();
  const workers = new Workers(compiled.folder, 1);
  try {
    const { lines, failed } = await workers.show(seed, shrinks);
    for (const line of lines) console.log(line);
    return failed ? 1 : 0;
  } finally {
    await workers.end();
    await compiled.remove();
  }
}

async function mutants() {
  const results = await runMutants(
    { name: values.mutant, workers: whole('workers'), seed: whole('seed') },
    console.log,
  );
  return results.some(({ property }) => property === undefined) ? 1 : 0;
}

function showProgress(done, runs) {
  if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${runs}${done === runs ? '\n' : ''}`);
}
