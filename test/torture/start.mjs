// Runs `npm run torture`, `torture:jobs`, `torture:leader` and `soak`, also on a fresh clone: compiles them and runs them on the
// library as it is built. Imports only Node's own modules and these scripts until everything else is installed.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuild } from '../../scripts/ensure-build.mjs';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { writePart } from '../../scripts/page.mjs';
import { ensureRedisServer } from '../../scripts/redis-servers.mjs';
import { root } from '../../scripts/run.mjs';

/** Each with its options and their defaults. A seed of 0 is a random one. */
const PROGRAMS = {
  torture: { main: 'torture', options: { seconds: '60', seed: '0', masters: '5', workers: '4', guard: true } },
  fenced: { main: 'torture/fenced', options: { seconds: '60', database: '', fence: true } },
  jobs: { main: 'torture/jobs', options: { seconds: '600', kill: true } },
  leader: { main: 'torture/leader', options: { seconds: '600' } },
  soak: { main: 'soak', options: { seconds: '600', locks: true } },
};
/** Of the numbers. A shorter torture does not have time for every kind of fault. */
const LEAST = { torture: 20, fenced: 5, jobs: 10, leader: 5, soak: 1, masters: 3, workers: 2, seed: 1 };
const SHOWN = 50;

const name = Object.keys(PROGRAMS).find((each) => process.argv.includes(`--${each}`)) ?? 'torture';
const { main, options: defaults } = PROGRAMS[name];
const { markdown, ...options } = optionsOfProgram();
// Traces and logs of the processes.
const folder = await mkdtemp(join(tmpdir(), `${name}-`));
let [isKept, compiled, leaving] = [false, undefined, undefined];
for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
  // Servers have guards that end them when this process has ended, and it ends the other processes.
  process.on(signal, () => void leave().finally(() => process.exit(code)));
}

try {
  process.chdir(root);
  await ensureDependencies();
  console.log(`Redis server: ${await ensureRedisServer()}`);
  await ensureBuild();
  await run();
} catch (error) {
  // The stack is of no use for an invalid option, but it is for any other error.
  if (!leaving) console.error(error.message?.startsWith('--') ? error.message : error);
  process.exitCode = 1;
} finally {
  await leave();
}

function optionsOfProgram() {
  const types = Object.entries({ minutes: '', markdown: '', [name]: true, ...defaults });
  const { values } = optionsOf({
    options: Object.fromEntries(types.map(([key, initial]) => [key, { type: typeof initial }])),
    allowNegative: true,
  });
  const { minutes, ...given } = values;
  delete given[name];
  const chosen = { ...defaults, ...(minutes && { seconds: String(60 * minutes) }), ...given };
  if (chosen.seed === '0') chosen.seed = String(1 + Math.floor(Math.random() * 2 ** 31));
  for (const [key, least] of Object.entries({ ...LEAST, seconds: LEAST[name] })) {
    if (chosen[key] === undefined || Number(chosen[key]) >= least) continue;
    console.error(`--${key} must be a number from ${least}`);
    process.exit(2);
  }
  return chosen;
}

/** The command that does the same again. */
function commandOf(values) {
  const script =
    { torture: 'torture --', fenced: 'torture -- --fenced', soak: 'soak --' }[name] ?? `torture:${name} --`;
  const words = Object.entries(values).flatMap(([key, value]) => {
    if (value === defaults[key]) return [];
    return value === false ? [`--no-${key}`] : [`--${key}`, value];
  });
  return ['npm run', script, ...words].join(' ');
}

async function run() {
  const { compileLibrary } = await compilerOfTests();
  compiled = await compileLibrary();
  // The temporary files of servers and workers are removed with this folder, however the run ends. The user of a database
  // could not enter it.
  if (name === 'torture') process.env.TMPDIR = compiled.folder;
  const program = await import(pathToFileURL(join(compiled.folder, 'test', main, 'main.js')).href);
  const numbers = Object.entries(options).filter(([key]) => key === 'seconds' || key in LEAST);
  const given = { ...options, ...Object.fromEntries(numbers.map(([key, value]) => [key, Number(value)])), folder };
  const { text, problems } = await program.main(given);
  console.log(`\n${text}\n`);
  for (const problem of problems.slice(0, SHOWN)) console.log(problem);
  console.log(`\n${problems.length} violations in ${Math.round(process.uptime())} s: ${commandOf(options)}`);
  if (problems.length > 0) {
    isKept = true;
    process.exitCode = 1;
    console.log(`Traces and logs of the processes, if the program keeps them: ${folder}`);
  } else if (markdown) {
    await writePart(markdown, name, `Written by \`${commandOf({ ...options, markdown })}\`.\n\n${text}`);
  }
}

/** Loads test/support/compiled.ts, which compiles the rest. */
async function compilerOfTests() {
  const { transform } = await import('@swc/core');
  const source = await readFile(join(root, 'test/support/compiled.ts'), 'utf8');
  const parser = { syntax: 'typescript' };
  const { code } = await transform(source, { configFile: false, swcrc: false, jsc: { target: 'es2022', parser } });
  const cache = join(root, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const draft = await mkdtemp(join(cache, 'compiler-'));
  try {
    await writeFile(join(draft, 'compiled.mjs'), code);
    return await import(pathToFileURL(join(draft, 'compiled.mjs')).href);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

function leave() {
  leaving ??= Promise.all([compiled?.[Symbol.asyncDispose](), isKept || rm(folder, { recursive: true, force: true })]);
  return leaving;
}
