import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { before, OURS, TUNED } from '../contenders.mjs';
import { contention, SECTION, trace } from '../measure/contention.mjs';
import { median } from '../measure/figures.mjs';
import { atLeast, atMost, exactly, figure, GOALS, printTable, times } from '../report.mjs';
import { Pool } from '../worker/processes.mjs';

const PEERS = [...TUNED.flatMap((tuned) => [tuned.replace('-10ms', ''), tuned]), 'redis-semaphore'];
/** Compared with one master only. */
const OF_ONE_MASTER = ['effect-distributed-lock'];

const SCENES = [
  { processes: 8, waiters: 1 },
  { processes: 4, waiters: 8 },
  { processes: 1, waiters: 128 },
];
const PROCESSES = Math.max(...SCENES.map(({ processes }) => processes));
/** Masters that have just started wait so long, in milliseconds. */
const LONGEST_TTL = 10_000;

/** In milliseconds. */
const WARM_UP = 200;

const LENGTHS = {
  usual: { rounds: 3, duration: 700 },
  quick: { rounds: 1, duration: 500 },
};

/** Measures how one key goes from one waiter to the next, and what that costs. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5], only }) {
  const figures = [];
  const pool = new Pool(PROCESSES);
  for (const count of masters) {
    const all = [OURS, ...PEERS, ...(count === 1 ? OF_ONE_MASTER : []), ...before];
    const contenders = all.filter((name) => !only || name === OURS || only.includes(name));
    const servers = await Promise.all(Array.from({ length: count }, () => RedisServer.start()));
    const urls = servers.map(({ url }) => url);
    const settings = { ttl: LONGEST_TTL };
    const connect = (contender) => pool.run('connect', { contender, urls, settings });
    // These boot an application each, which ends its process if the masters do not answer in time.
    for (const contender of [OURS, ...before]) await connect(contender);
    await Promise.all(contenders.filter((name) => name !== OURS && !before.includes(name)).map(connect));
    try {
      const bench = { pool, urls, ...(quick ? LENGTHS.quick : LENGTHS.usual) };
      const ping = await roundTrip(bench);
      for (const contender of contenders) await trace(bench, contender, { ...SCENES[0], section: SECTION }, WARM_UP);
      for (const scene of SCENES) {
        const found = { masters: count, ping, ...(await contention(bench, contenders, scene)) };
        printContention(found);
        figures.push(found);
      }
    } finally {
      await pool.run('close');
      await Promise.all(servers.map((server) => server.stop()));
    }
  }
  await pool.end();
  return { figures, checks: figures.flatMap(checksOf) };
}

/** Milliseconds of a PING to one master after a pause, as that of a section: a process that sleeps wakes up late. */
async function roundTrip({ pool, urls: [first] }) {
  const [found] = await pool.run('ping', { urls: [first], count: 400, pause: 2 }, 1);
  return median(found);
}

const mastersOf = (count) => `${count} ${count === 1 ? 'master' : 'masters'}`;

function printContention({ masters, ping, processes, waiters, contenders }) {
  const ours = contenders[OURS];
  const title =
    `${mastersOf(masters)}, ${processes} ${processes === 1 ? 'process' : 'processes'} x ${waiters} waiting for one key, ` +
    `1 ms section (ms; a PING takes ${figure(ping)}; CPU and commands for each section)`;
  printTable(title, [
    [
      ...['', 'sections/s', 'ours / it', 'hand-offs/s', 'to another process p50', 'p99', 'in PINGs'],
      ...['wait p50', 'longest', 'to an even share', 'commands', 'CPU us', 'failures', 'overlaps'],
      ...['luckiest / unluckiest', 'overtaken by'],
    ],
    ...Object.entries(contenders).map(([name, it]) => [
      ...[name, figure(it.sectionRate), times(ours.sectionRate / it.sectionRate), figure(it.handOffRate)],
      ...[figure(it.away.p50), figure(it.away.p99), times(it.away.p50 / ping)],
      ...[figure(it.medianWait), figure(it.longestWait), times(it.longestWait / it.evenShare)],
      ...[figure(it.commands), figure(it.cpu), it.failures, it.overlaps, times(it.luck), it.mostOvertaken],
    ]),
  ]);
}

function checksOf({ masters, ping, processes, waiters, contenders }) {
  const where = `N = ${masters}, ${processes} x ${waiters}`;
  const { [OURS]: ours, redlock5 } = contenders;
  const sections = { '4 x 8': GOALS.sectionsOfProcesses, '1 x 128': GOALS.sectionsOfCallers }[
    `${processes} x ${waiters}`
  ];
  return [
    ...(sections && redlock5
      ? [
          atLeast(
            `${where}: sections/s at least ${sections} of redlock5`,
            ours.sectionRate / redlock5.sectionRate,
            sections,
          ),
        ]
      : []),
    ...(waiters === 1
      ? [atMost(`${where}: to the next process within ${GOALS.handOff} PINGs`, ours.away.p50 / ping, GOALS.handOff)]
      : []),
    atMost(
      `${where}: longest wait at most ${GOALS.longestWait} of an even share`,
      ours.longestWait / ours.evenShare,
      GOALS.longestWait,
    ),
    exactly(`${where}: no failure`, ours.failures, 0),
    exactly(`${where}: no overlap`, ours.overlaps, 0),
  ];
}
