// npm run model: explores every configuration, or shows the counter-example of one.
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { markdownTable, writePart } from '../../scripts/page.mjs';

const { values } = optionsOf({
  options: {
    trace: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});

// A fresh clone does not have the compiler yet.
await ensureDependencies();
const { compile } = await import('../simulation/compile.mjs');
const compiled = await compile(undefined, ['test/model']);
try {
  const load = (file) => import(pathToFileURL(join(compiled.folder, 'test/model', file)).href);
  const [{ explore }, { sections }] = await Promise.all([load('checker.js'), load('configurations.js')]);
  process.exitCode = values.trace === undefined ? await exploreAll(sections) : trace(explore, sections);
} finally {
  await compiled.remove();
}

async function exploreAll(sections) {
  const began = performance.now();
  const verdicts = exploreInThreads(sections.flatMap(({ holds, breaks }) => [...holds, ...breaks]).length);
  const [lines, wrong] = [[], []];
  let total = 0;
  const print = (line = '') => {
    lines.push(line);
    console.log(line);
  };
  const printRow = async ({ name, story }) => {
    const { states, seconds, depth, isViolated, bounded } = await verdicts.shift();
    total += states;
    const result = isViolated ? (story ?? 'BREAKS') : story ? 'NOT FOUND' : bounded ? 'BOUND HIT' : 'holds';
    if (result !== (story ?? 'holds')) wrong.push(`${name}: ${result}`);
    print(`| ${name} | ${thousands(states)} | ${story ? depth : seconds} | ${result} |`);
  };
  for (const { title, holds, breaks } of sections) {
    print(`### ${title}\n`);
    for (const [header, rows] of [
      ['| configuration | states | seconds | |', holds],
      ['| weakened | states until found | steps | shortest story |', breaks],
    ]) {
      if (rows.length > 0) print(`${header}\n| --- | ---: | ---: | --- |`);
      for (const row of rows) await printRow(row);
      if (rows.length > 0) print();
    }
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  print(`${thousands(total)} states in ${seconds} s.`);
  for (const line of wrong) console.error(`not as expected: ${line}`);
  if (wrong.length > 0) return 1;
  if (values.write) {
    await writePart(join(import.meta.dirname, 'results.md'), 'model', lines.join('\n'));
    const page = join(import.meta.dirname, '../results.md');
    await writePart(page, 'model', figuresOf(sections, thousands(total), seconds));
  }
  return 0;
}

/** Explores all configurations, as many at a time as there are processors. Gives a promise of each verdict, in order. */
function exploreInThreads(count) {
  const workerData = { folder: compiled.folder };
  const settled = Array.from({ length: count }, () => withResolvers());
  let next = 0;
  for (let i = 0; i < Math.min(availableParallelism(), count); i++) void work();
  return settled.map(({ promise }) => promise);

  async function work() {
    const thread = new Worker(join(import.meta.dirname, 'thread.mjs'), { workerData });
    while (next < count) {
      const { resolve, reject } = settled[next];
      thread.postMessage(next++);
      await once(thread, 'message').then(([verdict]) => resolve(verdict), reject);
    }
    await thread.terminate();
  }
}

function trace(explore, sections) {
  const all = sections.flatMap(({ holds, breaks }) => [...holds, ...breaks]);
  const chosen = all.filter(({ name }) => name.toLowerCase().includes(values.trace.toLowerCase()));
  for (const configuration of chosen) {
    const verdict = explore(configuration.model());
    console.log(`\n${configuration.name}: ${thousands(verdict.states)} states`);
    if (!verdict.violation) {
      console.log(verdict.bounded ? 'The bound on states was hit.' : 'No reachable state breaks a promise.');
      continue;
    }
    const width = Math.max(...verdict.violation.trace.map(({ action }) => action.length));
    for (const { action, state } of verdict.violation.trace) console.log(`  ${action.padEnd(width)}  ${state}`);
    console.log(`  ${verdict.violation.property}`);
  }
  if (chosen.length > 0) return 0;
  console.error(
    `no configuration is named like "${values.trace}"; their names: ${all.map(({ name }) => name).join('; ')}`,
  );
  return 2;
}

function figuresOf(sections, states, seconds) {
  const count = (kind) => sections.reduce((sum, section) => sum + section[kind].length, 0);
  const table = markdownTable([
    ['configurations in which the promises hold', 'weakened ones, each with a counter-example', 'states', 'seconds'],
    [count('holds'), count('breaks'), states, seconds],
  ]);
  return `Written by \`npm run model -- --write\`.\n\n${table}`;
}

function thousands(number) {
  return number.toLocaleString('en-US');
}

/** As `Promise.withResolvers`, which Node 20 does not have. */
function withResolvers() {
  const settled = {};
  settled.promise = new Promise((resolve, reject) => Object.assign(settled, { resolve, reject }));
  return settled;
}
