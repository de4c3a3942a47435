import { compile } from '../compile.mjs';
import { Workers } from '../workers.mjs';
import { changeOf, MUTANTS } from './mutants.mjs';

/** More than any mutant should need. */
const MAX_RUNS = 50_000;
const MAX_SECONDS = 180;

/** Runs every mutant until a property detects it, and prints the property. `seed` counts from its first seed. */
export async function runMutants({ name, workers, seed, runs = MAX_RUNS }, print) {
  const chosen = MUTANTS.filter((mutant) => name === undefined || mutant.name === name);
  if (chosen.length === 0) throw new Error(`no such mutant; there are: ${MUTANTS.map((each) => each.name).join(', ')}`);
  const width = Math.max(...chosen.map((mutant) => mutant.name.length));
  const results = [];
  print(`${'mutant'.padEnd(width)}  ${'killed by'.padEnd(32)}  ${'seed'.padStart(6)}  ${'runs'.padStart(6)}  seconds`);
  for (const mutant of chosen) {
    const result = await run(mutant, { workers, seed, runs });
    results.push(result);
    const { property = 'SURVIVED', killer = '', tried, seconds } = result;
    const where = mutant.isInModel ? ' (in the model of the script)' : '';
    print(
      `${mutant.name.padEnd(width)}  ${property.padEnd(32)}  ${String(killer).padStart(6)}  ` +
        `${String(tried).padStart(6)}  ${seconds.toFixed(1).padStart(7)}${where}`,
    );
  }
  const killed = results.filter(({ property }) => property !== undefined).length;
  print(`${killed} of ${results.length} mutants killed`);
  return results;
}

async function run(mutant, { workers: count, seed, runs }) {
  const { change, check } = changeOf(mutant);
  const compiled = await compile(change);
  const workers = new Workers(compiled.folder, count);
  const began = performance.now();
  try {
    check();
    const limits = { runs, seconds: MAX_SECONDS, stopAtFirst: true };
    const from = mutant.firstSeed + seed - 1;
    const { first, runs: tried } = await workers.playMany({ seed: from, mutant: mutant.name, ...limits });
    const seconds = (performance.now() - began) / 1_000;
    return {
      name: mutant.name,
      isInModel: mutant.isInModel,
      property: first?.property,
      message: first?.message,
      killer: first?.seed,
      tried,
      seconds,
    };
  } finally {
    await workers.end();
    await compiled.remove();
  }
}
