import { markdownTable } from '../../../scripts/page.mjs';
import { times } from '../report.mjs';
import { titleOf } from './titles.mjs';

const MASTERS = [1, 3, 5];
const LIBRARIES = [
  ...['ours', 'ours-plain', 'redlock5', 'redlock4', 'redlock-universal', 'redis-semaphore', 'redis-kit'],
  ...['nest-redlock', 'murlock'],
];
const PROMISED = '64 at a time';
const P50 = 'and release p50';
const CPU = 'client us/lock';
const SERVER = 'server us/lock';
const RATE = 'locks/s';

/** The parts of docs/performance.md, as Markdown, by their names. */
export function partsOf(table) {
  const cost = (masters, atATime = PROMISED) => table('cost', `N = ${masters}, ${atATime}`);
  const latency = (masters) => table('latency', `N = ${masters}, one at a time`);
  return {
    libraries: librariesPart(cost, latency),
    waiting: waitingPart(table),
    features: featuresPart(table, cost, latency),
    cluster: clusterPart(table),
    network: networkPart(table),
    failing: failingPart(table),
  };
}

/** To the bare commands, as the rounds were compared. */
function librariesPart(cost, latency) {
  const beside = (found, name, column) => (found.names.includes(name) ? found.text(name, column, 1) : '');
  const row = (title, name, many, one) => [
    ...[title, beside(many(1), name, RATE), beside(many(3), name, RATE), beside(many(3), name, CPU)],
    ...(one ? [beside(one(1), name, P50), beside(one(3), name, P50)] : ['', '']),
  ];
  return markdownTable([
    ['', 'locks/s, 1 master', 'locks/s, 3', 'CPU, 3', 'time, 1', 'time, 3'],
    ...LIBRARIES.map((name) => row(titleOf(name), name, cost, latency)),
    row(`${titleOf('ours')}, 16 at a time`, 'ours', (masters) => cost(masters, '16 at a time')),
  ]);
}

function waitingPart(table) {
  const rows = [1, 5].flatMap((masters) =>
    ['8 processes x 1', '4 processes x 8'].map((crowd) => {
      const found = table('waiting', `${masters} master${masters > 1 ? 's' : ''}, ${crowd} waiting`);
      return [
        `${masters}, ${crowd.replace('processes ', '')}`,
        ...['ours', 'redlock5', 'redlock5-10ms'].map((name) => found.text(name, 'hand-offs/s')),
        found.text('redlock5', 'sections/s', 1),
        ...['ours', 'redlock5', 'redlock5-10ms'].map((name) => found.text(name, 'longest')),
      ];
    }),
  );
  return markdownTable([
    [
      ...['masters, waiters', 'hand-offs/s', '`redlock`', 'at 10 ms', 'sections/s to `redlock`'],
      ...['longest wait, ms', '`redlock`', 'at 10 ms'],
    ],
    ...rows,
  ]);
}

/** Ratios of the medians of two rows of one table or, for the number of masters, of two tables of one run. */
function featuresPart(table, cost, latency) {
  const quotient = (found, column, row, base, baseOf = found) =>
    times(found.number(row, column) / baseOf.number(base, column));
  const guard = (of, column) => MASTERS.map((masters) => quotient(of(masters), column, 'ours', 'ours-plain'));
  const masters = (of, column) => MASTERS.map((n) => quotient(of(n), column, 'ours', 'ours', of(1)));
  const shared = (n) => table('sharing', `N = ${n}, one at a time`).text('shared', 'to exclusive');
  const permits = (n) =>
    table('sharing', `N = ${n}, 64 callers`).text('locks on 10 keys', '10 permits of one name / it');
  const call = (name) => table('nest', 'A locked call on one master').text(name, 'to acquire and release');
  return markdownTable([
    ['', '1 master', '3', '5'],
    ['guard: CPU', ...guard(cost, CPU)],
    ['guard: time', ...guard(latency, P50)],
    ['masters: CPU', ...masters(cost, CPU)],
    ['masters: time', ...masters(latency, P50)],
    ['shared: time', shared(1), shared(3), ''],
    ['permits: locks/s', permits(1), permits(3), ''],
    ['`withLock`: CPU', call('LockService.withLock'), '', ''],
    ['`@WithLock`: CPU', call('@WithLock'), '', ''],
  ]);
}

function clusterPart(table) {
  const one = table('cluster', 'One at a time');
  const many = table('cluster', PROMISED);
  const rows = [
    ['in all partitions', 'cluster'],
    ['with `batchPartitions`', 'cluster-batched'],
    ['with one tag', 'cluster-one-tag'],
  ].map(([title, name]) => [
    title,
    one.text(name, P50, 1),
    ...[CPU, SERVER, RATE].map((column) => many.text(name, column, 1)),
  ]);
  return markdownTable([['keys', 'time', 'client CPU', 'server CPU', 'locks/s'], ...rows]);
}

function networkPart(table) {
  const acquire = (masters, added) => {
    const found = table('network', `N = ${masters}, each with a key`);
    return times(found.number([added, 'ours'], 'acquire p50') / found.number([added, 'ours'], 'a PING'));
  };
  return markdownTable([
    ['added', '1 master', '5'],
    ...['0 ms', '0.5 ms', '30 ms'].map((added) => [added, ...[1, 5].map((masters) => acquire(masters, added))]),
  ]);
}

function failingPart(table) {
  const scenes = {
    'one slow': 'One of five slower',
    'one hung': 'One hung of five, 8',
    'one dead': 'One dead',
    'two dead': 'Two dead',
  };
  const names = ['ours', 'redlock5', 'redis-semaphore'];
  return markdownTable([
    ['', ...names.map(titleOf)],
    ...Object.entries(scenes).map(([title, scene]) => {
      const found = table('failing', scene);
      return [title, ...names.map((name) => found.text([name, 'failing'], 'p99 to all up'))];
    }),
  ]);
}
