import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { before } from '../contenders.mjs';
import {
  contention,
  crowdInOneProcess,
  handOffLatency,
  handOffsByCrowd,
  localHandOff,
  LONGEST_TTL,
  uncontended,
} from '../measure/contention.mjs';
import { atLeast, atMost, exactly, figure, GOALS, noMore, printTable, range, times } from '../report.mjs';
import { Pool } from '../worker/processes.mjs';

const CONTENDERS = ['ours', 'redlock5', 'redlock5-10ms', 'redlock4', ...before];
const PROCESSES = 8;

const LENGTHS = {
  usual: { rounds: 3, duration: 1_800, samples: 400 },
  quick: { rounds: 1, duration: 700, samples: 120 },
};

/** Measures the hand-over of one key between waiting processes, and its cost. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5] }) {
  const lengths = quick ? LENGTHS.quick : LENGTHS.usual;
  const figures = [];
  const pool = new Pool(PROCESSES);
  for (const count of masters) {
    const servers = await Promise.all(Array.from({ length: count }, () => RedisServer.start()));
    const urls = servers.map(({ url }) => url);
    for (const contender of CONTENDERS) await pool.run('connect', { contender, urls, settings: { ttl: LONGEST_TTL } });
    try {
      const bench = { pool, urls, ...lengths };
      const found = {
        masters: count,
        uncontended: await uncontended(bench, CONTENDERS),
        contention: [
          await contention(bench, { processes: 8, waiters: 1 }),
          await contention(bench, { processes: 4, waiters: 2 }),
          await contention(bench, { processes: 4, waiters: 8 }),
        ],
        crowd: await crowdInOneProcess(bench, 128),
        handOffs: await handOffsByCrowd(bench),
        latency: await handOffLatency(bench),
        localHandOff: count === Math.max(...masters) ? await localHandOff(bench) : undefined,
      };
      printWaiting(found);
      figures.push(found);
    } finally {
      await pool.run('close');
      await Promise.all(servers.map((server) => server.stop()));
    }
  }
  await pool.end();
  return { figures, checks: figures.flatMap(checksOf) };
}

const masters = (count) => `${count} ${count === 1 ? 'master' : 'masters'}`;

/** Prints tables of the results for one number of masters. */
function printWaiting(found) {
  const name = masters(found.masters);
  printUncontended(name, found.uncontended);
  for (const scene of found.contention) printContention(name, scene);
  printCrowd(name, found.crowd);
  printHandOffs(name, found.handOffs);
  printLatency(name, found.latency);
  if (found.localHandOff) printLocalHandOff(name, found.localHandOff);
}

function printUncontended(name, { contenders, pingAll, refusal }) {
  printTable(`${name}, without contention (ms)`, [
    ['', 'commands', 'acquire', 'acquire + release', 'acquire in PINGs to all'],
    ...Object.entries(contenders).map(([contender, { commands, acquire, both }]) => [
      ...[contender, figure(commands), figure(acquire), figure(both), times(acquire / pingAll)],
    ]),
    ['ours, held, wait: 0', figure(refusal.commands), figure(refusal.time), '', times(refusal.time / pingAll)],
  ]);
}

function printContention(name, { processes, waiters, contenders }) {
  const { ours } = contenders;
  printTable(
    `${name}, ${processes} processes x ${waiters} waiting for one key, 1 ms section (waits in ms, commands per section)`,
    [
      [
        ...[
          '',
          'hand-offs/s',
          'ours / it',
          'sections/s',
          'ours / it',
          'wait p50',
          'longest',
          'ours / it',
          'commands',
          'failures',
          'overlaps',
        ],
        ...['luckiest / unluckiest', 'overtaken by'],
      ],
      ...Object.entries(contenders).map(([contender, it]) => [
        ...[contender, figure(it.handOffRate), times(ours.handOffRate / it.handOffRate)],
        ...[
          figure(it.sectionRate),
          times(ours.sectionRate / it.sectionRate),
          figure(it.medianWait),
          figure(it.longestWait),
        ],
        ...[times(ours.longestWait / it.longestWait), figure(it.commands), it.failures, it.overlaps],
        ...[times(it.luck), it.mostOvertaken],
      ]),
    ],
  );
}

function printCrowd(name, { waiters, handOffRate, longestWait, commands, failures }) {
  printTable(`${name}, 1 process x ${waiters} waiting for one key`, [
    ['', 'hand-offs/s', 'longest wait', 'commands', 'failures'],
    ['ours', figure(handOffRate), figure(longestWait), figure(commands), failures],
  ]);
}

function printHandOffs(name, crowds) {
  printTable(
    `${name}, from release to work of the next holder, 1 ms section: milliseconds, medians of the rounds (smallest-largest)`,
    [
      ['waiters', '', 'p50', 'p99', 'samples', 'to another process: p50', 'p99', 'samples'],
      ...crowds.flatMap(({ waiting, contenders }) =>
        contenders.map(({ name: contender, all, away }, i) => [
          ...[i === 0 ? waiting : '', contender],
          ...[all, away].flatMap(({ p50, p99, samples }) => [range(p50), range(p99), samples]),
        ]),
      ),
    ],
  );
}

function printLatency(name, { roundTrip, pingToOne, pingToAll, hotPing, ours, atOnce, 'redlock5-10ms': tuned }) {
  const row = (title, { p50, p99, samples }) => [
    ...[
      title,
      figure(p50),
      figure(p99),
      times(p50 / roundTrip.p50),
      times(p50 / pingToOne.p50),
      times(p50 / pingToAll.p50),
      samples,
    ],
  ];
  printTable(`${name}, from release in one process to work in the other (ms)`, [
    ['', 'p50', 'p99', 'in round trips', 'in PINGs to one', 'in PINGs to all', 'samples'],
    row('round trip: SET in a script, a quorum, two processes', roundTrip),
    row('PING to one, at the same pace', pingToOne),
    row('PING to all, at the same pace', pingToAll),
    row('PING to one, without pauses', hotPing),
    row('ours', ours),
    row('ours, where the holder wants it again at once', atOnce),
    row('redlock5-10ms', tuned),
  ]);
}

function printLocalHandOff(name, scenes) {
  for (const { waiters, section, handOvers } of scenes) {
    const today = handOvers[1];
    printTable(`${name}, prototype, 1 process x ${waiters} waiting for one key, ${section} ms section`, [
      ['', 'hand-offs/s', 'to today', 'CPU of the client (us)'],
      ...handOvers.map(({ handOver, perSecond, cpu }) => [
        ...[handOver, figure(perSecond), times(perSecond / today.perSecond), figure(cpu)],
      ]),
    ]);
  }
}

/** Compares the promises of waiting by notification with the results for one number of masters. */
function checksOf(found) {
  const on = `N = ${found.masters}`;
  return [
    ...uncontendedChecks(on, found),
    ...found.contention.flatMap((scene) => contentionChecks(on, scene, found)),
    atMost(
      `${on}, 1 x ${found.crowd.waiters}: commands as uncontended`,
      found.crowd.commands / (2 * found.masters),
      1.02,
    ),
    atMost(`${on}: hand-off p50 at most 4 round trips`, found.latency.ours.p50 / found.latency.roundTrip.p50, 4),
  ];
}

function uncontendedChecks(on, { masters, uncontended }) {
  const { commands } = uncontended.contenders.ours;
  return [
    exactly(`${on}: acquire and release are 2 N commands`, commands, 2 * masters),
    // One master may have granted what another one refused, so a release follows the attempt. It travels together with
    // the next request. The plain SET of a single master does not say why it is refused, so a script is asked.
    atMost(
      `${on}: a refused attempt with wait: 0 is ${masters === 1 ? 'SET, an explanation' : 'N commands'} and their release`,
      uncontended.refusal.commands,
      masters === 1 ? 3 : 2 * masters,
    ),
  ];
}

function contentionChecks(on, { processes, waiters, contenders }, { masters }) {
  const where = `${on}, ${processes} x ${waiters}`;
  const { ours, redlock5, 'redlock5-10ms': tuned } = contenders;
  return [
    atLeast(`${where}: 10 times the hand-offs of redlock 5`, ours.handOffRate / redlock5.handOffRate, 10),
    atLeast(`${where}: 2 times the hand-offs of redlock 5 at 10 ms`, ours.handOffRate / tuned.handOffRate, 2),
    atMost(`${where}: longest wait a fifth of redlock 5's`, ours.longestWait / redlock5.longestWait, 0.2),
    // With one master, queueing alone turns 2 commands into 3.
    ...(masters > 1
      ? [atMost(`${where}: 1.5 times the uncontended commands`, ours.commands / (2 * masters), 1.5)]
      : []),
    ...(masters === 5 && processes === 4 && waiters === 2 ? sectionChecks(where, ours, redlock5) : []),
    exactly(`${where}: no failure`, ours.failures, 0),
    exactly(`${where}: no overlap`, ours.overlaps, 0),
  ];
}

function sectionChecks(where, ours, redlock5) {
  const { sectionRate, longestWait } = GOALS;
  return [
    atLeast(
      `${where}: sections/s at least ${sectionRate} of redlock5 with its defaults`,
      ours.sectionRate / redlock5.sectionRate,
      sectionRate,
    ),
    noMore(`${where}: longest wait at most ${longestWait} ms`, ours.longestWait, 'ms', longestWait),
  ];
}
