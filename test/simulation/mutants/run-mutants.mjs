import { JOB_MUTANTS } from '../jobs/mutants.mjs';
import { compile, compileJobs } from '../compile.mjs';
import { playMany, withWorkers } from '../workers.mjs';
import { changeOf, MUTANTS } from './mutants.mjs';

/** The simulation of locks, and that of jobs. Each mutant must be noticed within so many plans. */
export const LOCKS = { compile, worker: 'worker.js', mutants: MUTANTS, runs: 50_000 };
export const JOBS = { compile: compileJobs, worker: 'jobs/worker.js', mutants: JOB_MUTANTS, runs: 2_000 };
const MAX_SECONDS = 180;

/** Runs every mutant until a property detects it, and prints the property. `seed` counts from its first seed. */
export async function runMutants({ compile, worker, mutants, runs }, { name, workers: count, seed }, print) {
  const chosen = mutants.filter((mutant) => name === undefined || mutant.name === name);
  if (chosen.length === 0) throw new Error(`no such mutant; there are: ${mutants.map((each) => each.name).join(', ')}`);
  const width = Math.max(...chosen.map((mutant) => mutant.name.length));
  const results = [];
  print(`${'mutant'.padEnd(width)}  ${'killed by'.padEnd(38)}  ${'seed'.padStart(6)}  ${'runs'.padStart(6)}  seconds`);
  for (const mutant of chosen) {
    const { change, check } = changeOf(mutant);
    const began = performance.now();
    const limits = { runs, seconds: MAX_SECONDS, stopAtFirst: true, mutant: mutant.name };
    const total = await withWorkers(await compile(change), { worker, count }, (threads) => {
      check();
      return playMany(threads, { seed: mutant.firstSeed + seed - 1, ...limits });
    });
    const [first] = total.failures;
    const seconds = (performance.now() - began) / 1_000;
    results.push({ ...mutant, ...first, tried: total.runs, seconds });
    const { property = 'SURVIVED', seed: killer = '' } = first ?? {};
    print(
      `${mutant.name.padEnd(width)}  ${property.padEnd(38)}  ${String(killer).padStart(6)}  ` +
        `${String(total.runs).padStart(6)}  ${seconds.toFixed(1).padStart(7)}`,
    );
  }
  const killed = results.filter(({ property }) => property !== undefined).length;
  print(`${killed} of ${results.length} mutants killed`);
  return results;
}
