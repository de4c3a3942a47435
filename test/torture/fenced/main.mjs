// `npm run torture -- --fenced`: instances of an application write to a real database under locks of three real masters,
// and are stopped and killed at every place. No late transaction may commit, and no update may be lost. With --no-fence, a
// control, updates have to be lost.
import { fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { fenceMigration } from '../../../dist/esm/sql/index.js';
import { startMariadb, startPostgres } from '../../support/database-servers.mjs';
import { ensureMariadb, ensurePostgres } from '../../../scripts/programs.mjs';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { openSession } from './sessions.mjs';
import { judge } from './verdict.mjs';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
const DATABASES = {
  postgres: {
    name: 'PostgreSQL',
    start: async () => startPostgres((await ensurePostgres()) ?? process.exit(1)),
    levels: ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'],
  },
  mysql: {
    name: 'MariaDB',
    start: async () => startMariadb((await ensureMariadb()) ?? process.exit(1)),
    levels: ['READ COMMITTED', 'REPEATABLE READ'],
  },
};
const WORKERS = 4;
const ACTORS = 3;
const ITEMS = ['a', 'b', 'c'];
/** How long a holder is stopped, in milliseconds: longer than a lock lasts. */
const STOPPED = [500, 1_500];
/** Between two kills, in milliseconds. */
const KILL_EVERY = [1_000, 3_000];
const between = ([least, most]) => least + Math.random() * (most - least);

/** @param options `seconds`, `fenced`, and the `dialect` to torture */
export async function tortureFenced({ dialect, seconds, fenced }) {
  const { name, start, levels } = DATABASES[dialect];
  const database = await start();
  const masters = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
  const children = new Set();
  const totals = { stopped: 0, killed: 0 };
  let isOver = false;

  const task = {
    ...{ dialect, url: database.url, masters: masters.map(({ url }) => url), items: ITEMS, actors: ACTORS, fenced },
    // A strict level alone refuses a write that depends on an old read.
    levels: fenced ? levels : ['READ COMMITTED'],
  };
  const begin = () => {
    const child = fork(WORKER, [JSON.stringify(task)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    children.add(child);
    let counts = {};
    child.on('message', (message) => message !== 'ready' && (counts = message));
    createInterface(child.stdout).on('line', () => {
      totals.stopped++;
      setTimeout(() => child.kill('SIGCONT'), between(STOPPED));
    });
    child.once('exit', () => {
      children.delete(child);
      for (const [what, number] of Object.entries(counts)) totals[what] = (totals[what] ?? 0) + number;
      if (!isOver) begin();
    });
  };

  const watch = await openSession(dialect, database.url, 1);
  try {
    for (const sql of fenceMigration(dialect)) await watch.query(sql);
    await watch.query('CREATE TABLE stock (item varchar(10) PRIMARY KEY, count int NOT NULL, version int NOT NULL)');
    await watch.query('CREATE TABLE ledger (item varchar(10), version int, token bigint, base int)');
    for (const item of ITEMS) await watch.query(`INSERT INTO stock VALUES ('${item}', 0, 0)`);
    for (let i = 0; i < WORKERS; i++) begin();
    const end = performance.now() + seconds * 1_000;
    while (performance.now() < end) {
      await sleep(Math.min(between(KILL_EVERY), end - performance.now()));
      const [child] = [...children].sort(() => Math.random() - 0.5);
      totals.killed++;
      child?.kill('SIGKILL');
    }
    isOver = true;
    await Promise.all(
      [...children].map((child) => {
        child.kill('SIGKILL');
        return new Promise((resolve) => child.once('exit', resolve));
      }),
    );
    // The server rolls back what its clients have left open; a lock on each row shows that it has.
    for (const item of ITEMS) await watch.query(`UPDATE stock SET count = count WHERE item = '${item}'`);
    const [stock, ledger] = [await watch.rows('SELECT * FROM stock'), await watch.rows('SELECT * FROM ledger')];
    return { name, totals, ...judge(stock, ledger, totals) };
  } finally {
    isOver = true;
    for (const child of children) child.kill('SIGKILL');
    await watch.close().catch(() => undefined);
    await Promise.all([...masters, database].map((server) => server.stop()));
  }
}

export { DATABASES };
