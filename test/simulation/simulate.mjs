// npm run simulate and simulate:jobs: plays many schedules in virtual time, replays one of them, or runs all mutants.
import { availableParallelism } from 'node:os';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { markdownTable, writePart } from '../../scripts/page.mjs';

const { values } = optionsOf({
  options: {
    jobs: { type: 'boolean', default: false },
    runs: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    faults: { type: 'string' },
    workers: { type: 'string', default: String(Math.max(1, availableParallelism())) },
    replay: { type: 'string' },
    shrink: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    markdown: { type: 'string' },
  },
});
const command = `npm run simulate${values.jobs ? ':jobs' : ''} --${values.faults ? ` --faults ${values.faults}` : ''}`;
const faults = values.faults?.split(',');
/** Within this many schedules with every kind of fault, each rare state must be reached. */
const REACHED_WITHIN = 10_000;

// A fresh clone does not have the compiler yet.
await ensureDependencies();
const { JOBS, LOCKS, runMutants } = await import('./mutants/run-mutants.mjs');
const { playMany, show, withWorkers } = await import('./workers.mjs');
const simulation = values.jobs ? JOBS : LOCKS;
const count = whole('workers');

if (values.mutants || values.mutant !== undefined) process.exitCode = await mutants();
else process.exitCode = await withWorkers(await simulation.compile(), { ...simulation, count }, play);

function play(threads) {
  if (values.replay !== undefined) return replay(threads, whole('replay'), false);
  if (values.shrink !== undefined) return replay(threads, whole('shrink'), true);
  return simulate(threads, whole('runs'), whole('seed'));
}

function whole(name) {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  console.error(`--${name} must be a whole number, not ${values[name]}`);
  process.exit(2);
}

/** Plays the schedules of many seeds. Shows and shortens the first that fails, in the order of seeds. */
async function simulate(threads, runs, seed) {
  const began = performance.now();
  const total = await playMany(threads, { seed, runs, faults }, (done) => showProgress(done, runs));
  const seconds = (performance.now() - began) / 1_000;
  const { fingerprint, failures, reached, broken = {}, ailments = {}, faults: kinds = {}, sound, ...sums } = total;
  const each = Object.entries(sums).filter(([name]) => name !== 'runs');
  console.log(
    `${runs} schedules in ${seconds.toFixed(1)} s: ${(runs / seconds).toFixed(0)} per second, each ` +
      `${each.map(([name, sum]) => `${(sum / runs).toFixed(1)} ${name}`).join(', ')}; fingerprint ${fingerprint}`,
  );
  const print = (counts, words) => {
    for (const [name, times] of byCount(counts)) console.log(`  ${String(times).padStart(8)}  ${words}: ${name}`);
  };
  print(kinds, 'fault');
  print(broken, 'broke an assumption');
  if (sound !== undefined) console.log(`  ${String(sound).padStart(8)}  broke none`);
  print(ailments, 'had a sick client beside healthy ones');
  print(reached, 'sometimes');
  const never = Object.keys(reached).filter((state) => reached[state] === 0);
  const isMissed = never.length > 0 && faults === undefined && runs >= REACHED_WITHIN;
  if (isMissed) console.log(`NEVER REACHED, so nothing is proved of it: ${never.join('; ')}`);
  if (failures.length === 0) {
    console.log('No promise was broken.');
    if (values.markdown && !isMissed) await writePart(values.markdown, 'simulation', figuresOf(total, seconds));
    return isMissed ? 1 : 0;
  }
  for (const failure of failures.slice(0, 20)) {
    console.log(`BROKEN by seed ${failure.seed}: ${failure.property}: ${failure.message}`);
  }
  console.log(`${failures.length} schedules failed. The first, made as short as it still fails:`);
  return replay(threads, failures[0].seed, true);
}

async function replay(threads, seed, shrinks) {
  const { lines, failed } = await show(threads, seed, { faults, shrinks });
  for (const line of lines) console.log(line);
  console.log(`replay: ${command} --replay ${seed}`);
  return failed ? 1 : 0;
}

async function mutants() {
  const results = await runMutants(
    simulation,
    { name: values.mutant, workers: count, seed: whole('seed') },
    console.log,
  );
  const survived = results.some(({ property }) => property === undefined);
  if (values.markdown && !survived) await writePart(values.markdown, 'mutants', mutantFiguresOf(results));
  return survived ? 1 : 0;
}

function byCount(counts) {
  return Object.entries(counts).sort(([, one], [, other]) => other - one);
}

function figuresOf({ runs, events, grants, sound, ailments, faults: kinds, reached }, seconds) {
  const sick = Object.values(ailments).reduce((sum, times) => sum + times, 0);
  return [
    `Written by \`npm run simulate -- --runs ${runs} --markdown test/results.md\`. No promise was broken.`,
    markdownTable([
      [
        'schedules',
        'per second',
        'events each',
        'locks each',
        'broke no assumption',
        'sick clients beside healthy ones',
      ],
      [runs, (runs / seconds).toFixed(0), (events / runs).toFixed(1), (grants / runs).toFixed(1), sound, sick],
    ]),
    markdownTable([['fault', 'times'], ...byCount(kinds)]),
    markdownTable([['rare state', 'schedules that reached it'], ...byCount(reached)]),
  ].join('\n\n');
}

function mutantFiguresOf(results) {
  const rows = results.map(({ name, isInModel, property, tried, seconds }) => [
    `${name}${isInModel ? ' \\*' : ''}`,
    property,
    tried,
    seconds.toFixed(1),
  ]);
  const text = `Written by \`npm run simulate -- --mutants --markdown test/results.md\`: ${results.length} of ${results.length} are noticed.`;
  return `${text}\n\n${markdownTable([['mutant', 'noticed by', 'schedules until then', 'seconds'], ...rows])}`;
}

function showProgress(done, runs) {
  if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${runs}${done === runs ? '\n' : ''}`);
}
