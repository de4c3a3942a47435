import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { FEW, FLOOR, librariesFor } from '../contenders.mjs';
import { inRounds, percentile, ratioOf, spread } from '../measure/figures.mjs';
import { asClient } from '../measure/pinning.mjs';
import { atMost, figure, GOALS, noMore, printTable, range, times } from '../report.mjs';
import { WorkerProcess } from '../worker/processes.mjs';

const LENGTHS = {
  usual: { rounds: 40, calls: 2_000, starts: 5 },
  quick: { rounds: 16, calls: 1_000, starts: 2 },
};

/** Measures what the library adds to an application: to a call, to its start, to its dependencies. */
export async function run({ quick, only = quick ? FEW : undefined }) {
  const { starts, ...lengths } = quick ? LENGTHS.quick : LENGTHS.usual;
  const found = {};
  found.memory = await decoratorOverhead('memory', lengths);
  printDecorator('a master in memory', found.memory);
  const server = await RedisServer.start();
  try {
    found.master = await decoratorOverhead([server.url], lengths);
    printDecorator('one master', found.master);
    found.start = await firstLock(server.url, [FLOOR, 'floor-nest', ...librariesFor(1, only)], { rounds: starts });
  } finally {
    await server.stop();
  }
  printFirstLock(found.start);
  found.packages = await packageSizes();
  printSizes(found.packages);
  return { figures: found, checks: checksOf(found) };
}

/**
 * Measures what a call costs that locks by `acquire` and `release`, by `LockService.withLock`, and by `@WithLock`, in
 * microseconds of the client's CPU.
 *
 * @param masters as in the options of the module
 */
async function decoratorOverhead(masters, lengths) {
  const worker = new WorkerProcess();
  try {
    const rounds = await worker.run('decorator', { masters, ...lengths });
    const of = (figure) => spread(rounds.map(figure));
    return {
      byHand: of(({ byHand }) => byHand),
      direct: of(({ direct }) => direct),
      decorated: of(({ decorated }) => decorated),
      added: of(({ decorated, direct }) => decorated - direct),
    };
  } finally {
    await worker.end();
  }
}

const SCRIPT = fileURLToPath(new URL('../worker/first-lock.mjs', import.meta.url));
const TTL = 3_000;
/** Locks that each process takes, one at a time. */
const LOCKS = 1_000;

/**
 * Per contender, milliseconds from the start of a process to its first lock, by steps; and of its first thousand locks, the
 * client's CPU in microseconds per lock, and the times in milliseconds.
 */
async function firstLock(url, contenders, { rounds }) {
  const measured = await inRounds({ rounds, warmUps: 1 }, contenders, async (contender) => {
    const [file, ...args] = asClient([process.execPath, SCRIPT, contender, url, String(TTL), String(LOCKS)]);
    const { stdout } = await promisify(execFile)(file, args, { timeout: 30_000 });
    return JSON.parse(stdout);
  });
  const found = {};
  for (const [contender, times] of measured) {
    const of = (name) => spread(times.map((figures) => figures[name]));
    const at = (share) => spread(times.map(({ durations }) => percentile(durations, share)));
    found[contender] = {
      ...{ imported: of('imported'), connected: of('connected'), locked: of('locked'), cpu: of('cpu') },
      ...{ p50: at(0.5), p99: at(0.99) },
    };
  }
  return found;
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));

const FOLDERS = {
  ours: ROOT,
  redlock5: join(MODULES, 'redlock'),
  redlock4: join(MODULES, 'redlock4'),
  'redlock-universal': join(MODULES, 'redlock-universal'),
  'redis-semaphore': join(MODULES, 'redis-semaphore'),
  'redis-kit': join(MODULES, '@redis-kit/lock'),
  'nest-redlock': join(MODULES, '@anchan828/nest-redlock'),
  murlock: join(MODULES, 'murlock'),
};

/** Bytes of each package as packed and as installed, and of all its dependencies without peers. */
async function packageSizes() {
  const found = {};
  for (const [name, folder] of Object.entries(FOLDERS)) {
    const args = ['pack', folder, '--dry-run', '--json', '--ignore-scripts'];
    const { stdout } = await promisify(execFile)('npm', args, { cwd: MODULES, maxBuffer: 2 ** 26 });
    const [{ size, unpackedSize, entryCount }] = [JSON.parse(stdout)].flatMap((packs) => Object.values(packs));
    const dependencies = await dependenciesOf(folder);
    dependencies.delete(folder);
    const sizes = await Promise.all([...dependencies].map(sizeOf));
    const brought = sizes.reduce((sum, bytes) => sum + bytes, 0);
    found[name] = { packed: size, unpacked: unpackedSize, files: entryCount, dependencies: sizes.length, brought };
  }
  return found;
}

/** Folders of a package and of all its direct and indirect dependencies. */
async function dependenciesOf(folder, seen = new Set()) {
  if (seen.has(folder)) return seen;
  seen.add(folder);
  const { dependencies = {} } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) await dependenciesOf(installed(name, folder), seen);
  return seen;
}

/** The folder in which Node finds a package from another folder. */
function installed(name, folder) {
  for (let at = folder; at !== dirname(at); at = dirname(at)) {
    const candidate = join(at, 'node_modules', name);
    if (existsSync(candidate)) return candidate;
  }
  throw new Error(`${name} is not installed for ${folder}`);
}

/** Bytes of all files of a package, without the packages that are nested in it. */
async function sizeOf(folder) {
  const entries = await readdir(folder, { withFileTypes: true });
  const sizes = entries.map((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' ? 0 : sizeOf(path);
    return stat(path).then(({ size }) => size);
  });
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}

const KB = 1024;

/** @param on the master, for the title */
function printDecorator(on, { byHand, direct, decorated, added }) {
  const row = (title, cost) => [title, range(cost), times(ratioOf(cost, byHand))];
  printTable(`A locked call on ${on}, 64 at a time: microseconds of the client's CPU (smallest-largest round)`, [
    ['', 'us/call', 'to acquire and release'],
    row('acquire and release', byHand),
    row('LockService.withLock', direct),
    row('@WithLock', decorated),
    ['@WithLock adds to withLock', range(added), ''],
  ]);
}

function printFirstLock(contenders) {
  printTable('From the start of a process to its first lock, N = 1, milliseconds (smallest-largest)', [
    ['', 'imported', 'connected', 'first lock'],
    ...Object.entries(contenders).map(([name, { imported, connected, locked }]) => [
      ...[name, range(imported), range(connected), range(locked)],
    ]),
  ]);
  printTable('The first 1,000 locks of a process, one at a time, N = 1 (smallest-largest)', [
    ['', 'client us/lock', 'p50 ms', 'p99 ms'],
    ...Object.entries(contenders).map(([name, { cpu, p50, p99 }]) => [name, range(cpu), range(p50), range(p99)]),
  ]);
}

function printSizes(packages) {
  printTable('Packages, KB', [
    ['', 'packed', 'unpacked', 'files', 'dependencies', 'their size'],
    ...Object.entries(packages).map(([name, { packed, unpacked, files, dependencies, brought }]) => [
      ...[name, figure(packed / KB), figure(unpacked / KB), files, dependencies, figure(brought / KB)],
    ]),
  ]);
}

function checksOf({ memory, master }) {
  return [
    noMore('@WithLock adds at most 5 us to LockService.withLock', memory.added.median, 'us', 5),
    atMost(
      `one master: client CPU of @WithLock at most ${GOALS.decorator} of acquire and release`,
      ratioOf(master.decorated, master.byHand),
      GOALS.decorator,
    ),
  ];
}
