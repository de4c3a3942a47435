// `npm run torture -- --fenced`: instances of an application write to a real database under locks of three real masters,
// and are stopped and killed at every place. No late transaction may commit, and no update may be lost. With --no-fence, a
// control, updates have to be lost.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fenceMigration } from 'nestjs-redlock/sql';
import { ensureMariadb, ensurePostgres } from '../../../scripts/programs.mjs';
import type { SoakEvent } from '../../soak/trace.js';
import { startMariadb, startPostgres } from '../../support/database-servers.mjs';
import { Child, Fleet, type Outcome } from '../child.js';
import { Cluster } from '../cluster.js';
import { Dice } from '../dice.js';
import { tally } from '../statistics.js';
import { type Dialect, type FencedTask, ITEMS, openSession } from './sessions.js';
import { judge, type LedgerRow, type StockRow } from './verdict.mjs';

const DATABASES = {
  postgres: {
    name: 'PostgreSQL',
    start: async () => startPostgres((await ensurePostgres()) ?? missing('PostgreSQL')),
    levels: ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'],
  },
  mysql: {
    name: 'MariaDB',
    start: async () => startMariadb((await ensureMariadb()) ?? missing('MariaDB')),
    levels: ['READ COMMITTED', 'REPEATABLE READ'],
  },
};
const APP = join(import.meta.dirname, 'app.js');
const PARTS = ['a', 'b', 'c', 'd'];
/** How long a holder is stopped, in milliseconds: longer than a lock lasts. */
const STOPPED = [500, 1_500] as const;
/** Between two kills, in milliseconds. */
const KILL_EVERY = [1_000, 3_000] as const;

interface Options {
  readonly seconds: number;
  readonly database: string;
  readonly fence: boolean;
  readonly folder: string;
}

export async function main({ database, ...options }: Options): Promise<Outcome> {
  const all = Object.keys(DATABASES) as Dialect[];
  const chosen = all.filter((dialect) => database === '' || dialect === database);
  if (chosen.length === 0) throw new Error(`--database must be ${all.join(' or ')}`);
  const problems: string[] = [];
  const texts: string[] = [];
  for (const dialect of chosen) {
    const { totals, commits, late, lost, beside } = await tortureFenced(dialect, options);
    const how = options.fence ? 'with' : 'without';
    const text = `${DATABASES[dialect].name}, ${options.seconds} s, ${how} the fence: ${commits} commits
  ${late} late, ${lost} lost updates, ${beside} commits beside a fenced transaction
  ${JSON.stringify(totals)}`;
    texts.push(text);
    if (!(options.fence ? late + lost + beside === 0 && commits > 0 : lost > 0)) problems.push(text);
  }
  return { text: texts.join('\n'), problems };
}

async function tortureFenced(dialect: Dialect, { seconds, fence, folder }: Omit<Options, 'database'>) {
  const { start, levels } = DATABASES[dialect];
  const dice = new Dice(Date.now());
  const database = await start();
  try {
    await using cluster = await Cluster.start(3);
    const task: FencedTask = {
      ...{
        dialect,
        url: database.url,
        masters: cluster.nodes.map(({ server }) => server.url),
        fenced: fence,
        ttl: 300,
      },
      // A strict level alone refuses a write that depends on an old read.
      levels: fence ? levels : ['READ COMMITTED'],
    };
    await using fleet = new Fleet((name) => {
      const child = new Child<SoakEvent>(`${dialect}-${name}`, { program: APP, folder, task });
      child.process.on('message', ({ stopped }: { stopped?: true }) => {
        if (stopped) setTimeout(() => child.process.kill('SIGCONT'), dice.between(...STOPPED));
      });
      return child;
    });
    const watch = await openSession(dialect, database.url, 1);
    for (const sql of fenceMigration(dialect)) await watch.query(sql);
    await watch.query('CREATE TABLE stock (item varchar(10) PRIMARY KEY, count int NOT NULL, version int NOT NULL)');
    await watch.query('CREATE TABLE ledger (item varchar(10), version int, token bigint, base int)');
    for (const item of ITEMS) await watch.query(`INSERT INTO stock VALUES ('${item}', 0, 0)`);
    await Promise.all(PARTS.map((part) => fleet.start(part)));
    const end = performance.now() + seconds * 1_000;
    while (performance.now() < end) {
      await sleep(Math.min(dice.between(...KILL_EVERY), Math.max(0, end - performance.now())));
      await fleet.replace(dice.pick(PARTS));
    }
    await Promise.all(fleet.all.map((child) => child.kill()));
    // The server rolls back what its clients have left open; a lock on each row shows that it has.
    for (const item of ITEMS) await watch.query(`UPDATE stock SET count = count WHERE item = '${item}'`);
    const stock = (await watch.rows('SELECT * FROM stock')) as unknown as StockRow[];
    const ledger = (await watch.rows('SELECT * FROM ledger')) as unknown as LedgerRow[];
    await watch.close();
    const counted = fleet.all.flatMap(({ record: { events } }) =>
      events.flatMap((event) => (event.kind === 'counted' ? [event.what] : [])),
    );
    const totals = { ...Object.fromEntries(tally(counted)), killed: fleet.kills.length - PARTS.length };
    return { totals, ...judge(stock, ledger, totals) };
  } finally {
    await database.stop();
  }
}

function missing(name: string): never {
  throw new Error(`${name} is needed`);
}
