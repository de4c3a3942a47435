// The program that test/torture/start.mjs runs for `npm run soak`, after all preparations.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { fenceMigration } from 'nestjs-redlock/sql';
import { Redis } from 'ioredis';
import pg from 'pg';
import { ensurePostgres } from '../../scripts/programs.mjs';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { startPostgres } from '../support/database-servers.mjs';
import { now } from '../torture/trace.js';
import { judge, type Interval, type Reply, type Story } from './checks.js';
import { Instance } from './fleet.js';
import { STALL } from './trace.js';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
const CLIENTS = 12;
const IDS = ['1', '2', '3'];
/** How long Redis is stopped, and how long the processors are busy, in milliseconds. */
const PAUSE = 3_000;
const HOGGED = 4_000;
/** Of each tenth of a second, it computes for a half. */
const HOG = `setInterval(() => { for (const end = performance.now() + 50; performance.now() < end; ); }, 100)`;

const { values } = parseArgs({
  options: {
    soak: { type: 'boolean' },
    seconds: { type: 'string', default: '600' },
    locks: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const seconds = Number(values.seconds);
if (!(seconds >= 1)) throw new Error('--seconds must be 1 or more');

const counts: Record<string, number> = {};
const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;

// Unless a run shows otherwise.
process.exitCode = 1;
const folder = mkdtempSync(join(tmpdir(), 'soak-'));
process.once('exit', () => {
  if (process.exitCode === 0) rmSync(folder, { recursive: true, force: true });
});
const programs = await ensurePostgres();
if (!programs) throw new Error('PostgreSQL is needed');
const postgres = await startPostgres(programs);
const redis = await RedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
const database = new pg.Pool({ connectionString: postgres.url });
const probe = new Redis(redis.url, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
for (const client of [database, probe]) client.on('error', () => undefined);
const task = { redis: redis.url, postgres: postgres.url, locks: values.locks };

const all: Instance[] = [];
/** Those that get requests, by name of the part that they play. */
const inService = new Map<string, Instance>();
const outages: Interval[] = [];
const slow: Interval[] = [];
const replies: Reply[] = [];
const confirmed = { sales: [] as string[], invoices: [] as string[] };
let requests = 0;
let isOver = false;

async function start(name: string): Promise<void> {
  const instance = await Instance.start(`${name}${all.length}`, folder, task);
  all.push(instance);
  inService.set(name, instance);
}

const ROUTES: (() => [method: string, path: string, confirm?: () => void])[] = [
  () => ['POST', `/orders/${pick(IDS)}`],
  () => ['GET', `/reports/${pick(IDS)}`],
  () => ['POST', `/accounts/${pick(IDS)}`],
  () => {
    const request = String(++requests);
    return ['POST', `/stock/${pick(IDS)}/${request}`, () => confirmed.sales.push(request)];
  },
  () => {
    const request = String(++requests);
    return ['POST', `/invoices/${pick(IDS)}/${request}`, () => confirmed.invoices.push(request)];
  },
];

async function client(): Promise<void> {
  while (!isOver) {
    const [method, path, confirm] = pick(ROUTES)();
    const reply = await pick([...inService.values()]).send(method, path);
    replies.push(reply);
    if (reply.status !== undefined && reply.status < 300) confirm?.();
    // As the application asks for, and a little between two requests.
    await sleep(1_000 * Number(reply.retryAfter ?? 0) + 50 * Math.random());
  }
}

/** Writes again and again, with no lock and no retry of this library. */
async function watchRedis(): Promise<void> {
  while (!isOver) {
    const from = now();
    await probe.set('probe', from);
    if (now() - from > STALL) slow.push({ from, to: now() });
    await sleep(20);
  }
}

async function withoutRedis(disturb: () => Promise<void>): Promise<void> {
  const from = now();
  await disturb();
  outages.push({ from, to: now() });
}

const DISTURBANCES = {
  'processors busy for a half': async () => {
    const hogs = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', HOG]));
    await sleep(HOGGED);
    for (const hog of hogs) hog.kill('SIGKILL');
  },
  'Redis paused': () =>
    withoutRedis(async () => {
      redis.pause();
      await sleep(PAUSE);
      redis.resume();
    }),
  'process killed': async () => {
    // The first one lives on, so that its heap can be judged.
    const name = pick(NAMES.slice(1));
    const victim = inService.get(name)!;
    inService.delete(name);
    await victim.kill();
    await start(name);
  },
  'Redis restarted with its data': () => withoutRedis(() => redis.restart()),
  'rolling deployment': async () => {
    for (const name of (counts['rolling deployment'] ?? 0) > 1 ? NAMES.slice(1) : NAMES) {
      const old = inService.get(name)!;
      await start(name);
      await old.retire();
      count('processes replaced');
    }
  },
};

/** Each in turn, with some calm before it, and at least once. */
async function disturb(until: number): Promise<void> {
  for (let round = 0; round === 0 || now() < until; round++) {
    for (const [name, act] of Object.entries(DISTURBANCES)) {
      await sleep(500 + 1_000 * Math.random());
      if (round > 0 && now() > until) return;
      count(name);
      await act();
    }
  }
}

async function untilCharged(): Promise<string[]> {
  const end = now() + 60_000;
  for (;;) {
    const { rows } = await database.query<{ request: string }>('SELECT request FROM invoices');
    const charged = new Set(rows.map(({ request }) => request));
    if (confirmed.invoices.every((request) => charged.has(request)) || now() > end) return [...charged];
    await sleep(100);
  }
}

function show(rows: readonly (readonly string[])[]): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lineOf = (row: readonly string[]): string => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ');
  console.log(`\n${rows.map((row) => lineOf(row).trimEnd()).join('\n')}`);
}

try {
  for (const sql of fenceMigration('postgres')) await database.query(sql);
  await database.query('CREATE TABLE stock (item text PRIMARY KEY, count int NOT NULL, version int NOT NULL)');
  await database.query('CREATE TABLE ledger (item text, version int, token bigint, base int, request text)');
  await database.query('CREATE TABLE invoices (request text PRIMARY KEY)');
  for (const item of IDS) await database.query('INSERT INTO stock VALUES ($1, 0, 0)', [item]);
  await Promise.all(NAMES.map(start));
  console.log(
    `${NAMES.length} processes serve ${CLIENTS} clients, for ${seconds} s${values.locks ? '' : ', without locks'}`,
  );
  const epoch = Date.now() - now();
  const from = Date.now();
  const clients = [...Array.from({ length: CLIENTS }, client), watchRedis()];
  if (values.locks) await disturb(now() + seconds * 1_000);
  else await sleep(seconds * 1_000);
  isOver = true;
  await Promise.all(clients);
  const charged = await untilCharged();
  const until = Date.now();
  await Promise.all([...inService.values()].map((instance) => instance.retire()));

  const story: Story = {
    ...{ outages, slow, epoch, replies, confirmed, charged, ticks: [from, until] },
    instances: all.map(({ record }) => record),
    stock: (await database.query('SELECT * FROM stock')).rows as Story['stock'],
    ledger: (await database.query('SELECT * FROM ledger')).rows as Story['ledger'],
  };
  const findings = judge(story);
  show([['what happened', 'how often'], ...Object.entries(counts).map(([what, often]) => [what, String(often)])]);
  show([
    ['what must hold', 'looked at', 'violations', ''],
    ...findings.map(([name, { seen, problems, remark = '' }]) => [name, String(seen), String(problems.length), remark]),
  ]);
  const violations = findings.flatMap(([name, { problems }]) => problems.map((problem) => `${name}: ${problem}`));
  for (const [name, { problems }] of findings) {
    for (const problem of problems.slice(0, 10)) console.log(`\n${name}: ${problem}`);
  }
  const load = loadavg().map((each) => each.toFixed(1));
  console.log(`\n${violations.length} violations; load of the machine ${load.join(', ')}`);
  if (violations.length === 0) process.exitCode = 0;
  else console.log(`Traces and logs of the processes: ${folder}`);
} finally {
  isOver = true;
  for (const instance of all) instance.close();
  probe.disconnect();
  await database.end();
  await Promise.all([redis.stop(), postgres.stop()]);
}
