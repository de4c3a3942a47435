// `npm run soak`, after the preparations of test/torture/start.mjs.
import { spawn } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fenceMigration } from 'nestjs-redlock/sql';
import { Redis } from 'ioredis';
import pg from 'pg';
import { ensurePostgres } from '../../scripts/programs.mjs';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { startPostgres } from '../support/database-servers.mjs';
import { Fleet, type Outcome } from '../torture/child.js';
import { Dice } from '../torture/dice.js';
import { now } from '../torture/trace.js';
import { type Interval, JOB_TTL, judge, type Reply, type Story } from './checks.js';
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

interface Options {
  readonly seconds: number;
  readonly locks: boolean;
  readonly folder: string;
}

export async function main({ seconds, locks, folder }: Options): Promise<Outcome> {
  const dice = new Dice(Date.now());
  const counts: Record<string, number> = {};
  const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);
  const programs = await ensurePostgres();
  if (!programs) throw new Error('PostgreSQL is needed');
  const postgres = await startPostgres(programs);
  const redis = await RedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  const database = new pg.Pool({ connectionString: postgres.url });
  const probe = new Redis(redis.url, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
  for (const client of [database, probe]) client.on('error', () => undefined);
  const task = { masters: [redis.url], ttl: JOB_TTL, postgres: postgres.url, locks };
  const fleet = new Fleet((name) => new Instance(name, folder, task));
  const outages: Interval[] = [];
  const slow: Interval[] = [];
  const replies: Reply[] = [];
  const confirmed = { sales: [] as string[], invoices: [] as string[] };
  let requests = 0;
  let isOver = false;

  const ROUTES: (() => [method: string, path: string, confirm?: () => void])[] = [
    () => ['POST', `/orders/${dice.pick(IDS)}`],
    () => ['GET', `/reports/${dice.pick(IDS)}`],
    () => ['POST', `/accounts/${dice.pick(IDS)}`],
    () => {
      const request = String(++requests);
      return ['POST', `/stock/${dice.pick(IDS)}/${request}`, () => confirmed.sales.push(request)];
    },
    () => {
      const request = String(++requests);
      return ['POST', `/invoices/${dice.pick(IDS)}/${request}`, () => confirmed.invoices.push(request)];
    },
  ];

  async function client(): Promise<void> {
    while (!isOver) {
      const [method, path, confirm] = dice.pick(ROUTES)();
      const reply = await dice.pick([...fleet.inService.values()]).send(method, path);
      replies.push(reply);
      if (reply.status !== undefined && reply.status < 300) confirm?.();
      // As the application asks for, and a little between two requests.
      await sleep(1_000 * Number(reply.retryAfter ?? 0) + dice.between(0, 50));
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
    // The first one lives on, so that its heap can be judged.
    'process killed': () => fleet.replace(dice.pick(NAMES.slice(1))),
    'Redis restarted with its data': () => withoutRedis(() => redis.restart()),
    'rolling deployment': async () => {
      for (const name of (counts['rolling deployment'] ?? 0) > 1 ? NAMES.slice(1) : NAMES) {
        const old = fleet.inService.get(name)!;
        await fleet.start(name);
        await old.end();
        count('processes replaced');
      }
    },
  };

  /** Each in turn, with some calm before it, and at least once. */
  async function disturb(until: number): Promise<void> {
    for (let round = 0; round === 0 || now() < until; round++) {
      for (const [name, act] of Object.entries(DISTURBANCES)) {
        await sleep(dice.between(500, 1_500));
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

  try {
    for (const sql of fenceMigration('postgres')) await database.query(sql);
    await database.query('CREATE TABLE stock (item text PRIMARY KEY, count int NOT NULL, version int NOT NULL)');
    await database.query('CREATE TABLE ledger (item text, version int, token bigint, base int, request text)');
    await database.query('CREATE TABLE invoices (request text PRIMARY KEY)');
    for (const item of IDS) await database.query('INSERT INTO stock VALUES ($1, 0, 0)', [item]);
    await Promise.all(NAMES.map((name) => fleet.start(name)));
    const how = locks ? '' : ', without locks';
    console.log(`${NAMES.length} processes serve ${CLIENTS} clients, for ${seconds} s${how}`);
    const epoch = Date.now() - now();
    const from = Date.now();
    const clients = [...Array.from({ length: CLIENTS }, client), watchRedis()];
    if (locks) await disturb(now() + seconds * 1_000);
    else await sleep(seconds * 1_000);
    isOver = true;
    await Promise.all(clients);
    const charged = await untilCharged();
    const until = Date.now();
    await Promise.all([...fleet.inService.values()].map((instance) => instance.end()));

    const story: Story = {
      ...{ outages, slow, epoch, replies, confirmed, charged, ticks: [from, until] },
      instances: fleet.all.map(({ record }) => record),
      stock: (await database.query('SELECT * FROM stock')).rows as Story['stock'],
      ledger: (await database.query('SELECT * FROM ledger')).rows as Story['ledger'],
    };
    const findings = judge(story);
    console.log(
      tableOf([['what happened', 'how often'], ...Object.entries(counts).map(([what, often]) => [what, `${often}`])]),
    );
    console.log(
      `\nLoad of the machine: ${loadavg()
        .map((each) => each.toFixed(1))
        .join(', ')}`,
    );
    // Of each check some, so that none hides another.
    const problems = findings.flatMap(([name, finding]) =>
      finding.problems.slice(0, 10).map((each) => `${name}: ${each}`),
    );
    const text = tableOf([
      ['what must hold', 'looked at', 'violations', ''],
      ...findings.map(([name, { seen, problems, remark = '' }]) => [
        name,
        String(seen),
        String(problems.length),
        remark,
      ]),
    ]);
    return { text, problems };
  } finally {
    isOver = true;
    await fleet[Symbol.asyncDispose]();
    probe.disconnect();
    await database.end();
    await Promise.all([redis.stop(), postgres.stop()]);
  }
}

function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lineOf = (row: readonly string[]): string => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ');
  return `\n${rows.map((row) => lineOf(row).trimEnd()).join('\n')}`;
}
