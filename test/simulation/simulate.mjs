// npm run simulate: runs many schedules of the real library in virtual time, replays one of them, or runs all mutants.
import { availableParallelism } from 'node:os';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { markdownTable, writePart } from '../../scripts/page.mjs';

const { values } = optionsOf({
  options: {
    runs: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    faults: { type: 'string' },
    workers: { type: 'string', default: String(Math.max(1, availableParallelism())) },
    replay: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    markdown: { type: 'string' },
  },
});
const command = `npm run simulate --${values.faults ? ` --faults ${values.faults}` : ''}`;
const faults = values.faults?.split(',');
/** Within this many schedules with every kind of fault, each rare state must be reached. */
const REACHED_WITHIN = 10_000;

// A fresh clone does not have the compiler yet.
await ensureDependencies();
const { compile } = await import('./compile.mjs');
const { runMutants } = await import('./mutants/run-mutants.mjs');
const { Workers } = await import('./workers.mjs');

if (values.mutants || values.mutant !== undefined) process.exitCode = await mutants();
else if (values.replay !== undefined) process.exitCode = await replay(whole('replay'));
else process.exitCode = await simulate(whole('runs'), whole('seed'));

function whole(name) {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  console.error(`--${name} must be a whole number, not ${values[name]}`);
  process.exit(2);
}

/** Plays the schedules of many seeds. Shows and shortens the first that fails, in the order of seeds. */
async function simulate(runs, seed) {
  const compiled = await compile();
  const workers = new Workers(compiled.folder, whole('workers'));
  const began = performance.now();
  try {
    const total = await workers.playMany({ seed, runs, faults }, (done) => showProgress(done, runs, began));
    const seconds = (performance.now() - began) / 1_000;
    const each = (number) => (number / total.runs).toFixed(1);
    console.log(
      `${total.runs} schedules in ${seconds.toFixed(1)} s: ${(total.runs / seconds).toFixed(0)} per second, ` +
        `each ${each(total.events)} events and ${each(total.grants)} locks; fingerprint ${total.fingerprint}`,
    );
    const kinds = Object.entries(total.faults).sort(([, a], [, b]) => b - a);
    console.log(`faults: ${kinds.map(([kind, count]) => `${kind} ${count}`).join(', ')}`);
    for (const [assumption, count] of Object.entries(total.broken).sort(([, a], [, b]) => b - a)) {
      console.log(`  ${String(count).padStart(8)}  broke an assumption: ${assumption}`);
    }
    console.log(`  ${String(total.sound).padStart(8)}  broke none`);
    for (const [ailment, count] of Object.entries(total.ailments).sort(([, a], [, b]) => b - a)) {
      console.log(`  ${String(count).padStart(8)}  had a sick client beside healthy ones: ${ailment}`);
    }
    const missed = printReached(total);
    if (total.failures.length === 0) {
      console.log('No promise was broken.');
      if (values.markdown && !missed) await writePart(values.markdown, 'simulation', figuresOf(total, seconds));
      return missed ? 1 : 0;
    }
    await workers.show(total.failures[0], { faults, shrink: true, command }, console.log);
    console.log(`\n${total.failures.length} schedules failed: ${total.failures.slice(0, 20).join(', ')}`);
    return 1;
  } finally {
    await workers.end();
    await compiled.remove();
  }
}

/** Whether a state was never reached although there were enough schedules to expect it. */
function printReached({ reached, runs }) {
  const states = Object.entries(reached).sort(([, a], [, b]) => b - a);
  for (const [state, count] of states) console.log(`  ${String(count).padStart(8)}  sometimes: ${state}`);
  const never = states.filter(([, count]) => count === 0).map(([state]) => state);
  const isMissed = never.length > 0 && faults === undefined && runs >= REACHED_WITHIN;
  if (isMissed) console.log(`NEVER REACHED, so nothing is proved of it: ${never.join('; ')}`);
  return isMissed;
}

async function replay(seed) {
  const compiled = await compile();
  const workers = new Workers(compiled.folder, 1);
  try {
    const result = await workers.show(seed, { faults, shrink: false, command }, console.log);
    return result.property === undefined ? 0 : 1;
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
  const survived = results.some(({ property }) => property === undefined);
  if (values.markdown && !survived) await writePart(values.markdown, 'mutants', mutantFiguresOf(results));
  return survived ? 1 : 0;
}

function figuresOf({ runs, events, grants, sound, ailments, faults: kinds, reached }, seconds) {
  const byCount = (counts) => Object.entries(counts).sort(([, a], [, b]) => b - a);
  const sick = Object.values(ailments).reduce((sum, count) => sum + count, 0);
  const summary = markdownTable([
    ['schedules', 'per second', 'events each', 'locks each', 'broke no assumption', 'sick clients beside healthy ones'],
    [runs, (runs / seconds).toFixed(0), (events / runs).toFixed(1), (grants / runs).toFixed(1), sound, sick],
  ]);
  const tables = [
    markdownTable([['fault', 'times'], ...byCount(kinds)]),
    markdownTable([['rare state', 'schedules that reached it'], ...byCount(reached)]),
  ];
  return [
    `Written by \`npm run simulate -- --runs ${runs} --markdown test/results.md\`. No promise was broken.`,
    summary,
    ...tables,
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

function showProgress(done, runs, began) {
  if (!process.stderr.isTTY) return;
  const rate = (done / (performance.now() - began)) * 1_000;
  process.stderr.write(`\r${done} of ${runs}, ${rate.toFixed(0)} per second ${done === runs ? '\n' : ''}`);
}
