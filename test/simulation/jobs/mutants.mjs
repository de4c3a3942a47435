// Wrong variants of the rules for jobs, which the properties must notice. As in ../mutants/mutants.mjs, each replaces whole
// lines of the library: those that end in an anchor, `// @mutant <name>`.
import { changeOf } from '../mutants/mutants.mjs';
import { compileJobs } from './compile.mjs';
import { Workers } from './workers.mjs';

/** Within this many plans, each must be noticed. */
const MAX_RUNS = 2_000;

/** Where the search begins for mutants that few plans notice. It goes on from there, however far it has to. */
const FIRST_SEEDS = {
  'a refused instance takes the tick for finished': 305,
  'a shutdown records a failure': 55,
  'an uncertain record looks certain to the next holder': 300,
  'a record counts although its master has lost data': 300,
};

/** Name, and an object with the anchors and the lines that replace theirs. */
export const MUTANTS = [
  ['a start is not recorded', { 'start-recorded-before-the-run': '' }],
  [
    'a run begins before its start is acknowledged',
    {
      'start-recorded-before-the-run':
        'void storeRecord(held.lock, started, settings.schedule).catch(() => undefined);',
    },
  ],
  ['the record is not read', { 'record-read-before-the-decision': 'let record = this.recordIn(undefined);' }],
  [
    'a refused instance takes the tick for finished',
    {
      'refused-instances-wait':
        'const held = await locks.hold([resource], { ttl, maxHold, wait: 0, signal: stopping });',
      'refused-instances-come-back':
        "if (isLockError(error, 'LOCK_NOT_ACQUIRED')) { this.settle(Infinity); continue; }",
    },
  ],
  [
    'a tick is finished only if a later one is recorded',
    {
      'finished-ticks-stay-finished':
        'const isPending = candidate !== undefined && (record === undefined || candidate >= record.tick);',
    },
  ],
  [
    'starts again with the same attempt',
    {
      'every-start-is-counted':
        "return recover ? { action: 'run', tick, attempt } : { action: 'mark', tick, state: 'abandoned' };",
    },
  ],
  [
    'recover: false runs again',
    { 'every-start-is-counted': "return { action: 'run', tick, attempt: recover ? attempt + 1 : attempt + 1 };" },
  ],
  ['no baseline', { 'new-job-stores-a-baseline': '' }],
  ['a tick is the time of its arrival', { 'tick-is-its-nominal-time': 'else this.listener.due(Math.floor(now));' }],
  ['a crashed tick is left behind', { 'started-tick-comes-first': 'void resumeTick;' }],
  ['a shutdown records a failure', { 'handed-on-is-not-failed': '' }],
  [
    'an uncertain record looks certain to the next holder',
    {
      'uncertain-record-is-marked': 'if (since === undefined || true) return undefined;',
      'uncertain-state-stays-uncertain': "await this.#write('read');",
    },
  ],
  ['a record counts although its master has lost data', { 'stale-state-counted': 'return true;' }],
].map(([name, lines]) => ({ name, lines, firstSeed: FIRST_SEEDS[name] ?? 1 }));

/** Plays plans with each mutant until a property notices it, and prints the property. */
export async function runMutants({ name, workers: count, seed, runs = MAX_RUNS }, print) {
  const chosen = MUTANTS.filter((mutant) => name === undefined || mutant.name === name);
  if (chosen.length === 0) throw new Error(`no such mutant; there are: ${MUTANTS.map((each) => each.name).join(', ')}`);
  const results = [];
  for (const mutant of chosen) {
    const result = await run(mutant, { count, seed, runs });
    results.push(result);
    const { property = 'SURVIVED', killer = '', tried } = result;
    print(`${mutant.name.padEnd(52)}  ${property.padEnd(38)}  seed ${killer} of ${tried}`);
  }
  const noticed = results.filter(({ property }) => property !== undefined).length;
  print(`${noticed} of ${results.length} mutants noticed`);
  return results;
}

async function run(mutant, { count, seed, runs }) {
  const { change, check } = changeOf(mutant);
  const compiled = await compileJobs(change);
  const workers = new Workers(compiled.folder, count);
  try {
    check();
    const { failures, total } = await workers.playMany({ seed: mutant.firstSeed + seed - 1, runs, stopAtFirst: true });
    const [first] = failures;
    return { name: mutant.name, property: first?.property, killer: first?.seed, tried: total.runs };
  } finally {
    await workers.end();
    await compiled.remove();
  }
}
