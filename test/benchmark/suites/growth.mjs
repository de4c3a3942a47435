import { OURS } from '../contenders.mjs';
import { onField } from '../measure/field.mjs';
import { inRounds, median, slope } from '../measure/figures.mjs';
import { CommandCounter, ServerLoad } from '../measure/servers.mjs';
import { exactly, figure, GOALS, noMore, printTable } from '../report.mjs';

/** Masters that have just started wait this long, in milliseconds. A held lock is extended after a third of it. */
const TTL = 6_000;
const MASTERS = 3;
/** In milliseconds, with 64 locks at a time. */
const WARM_UP = 2_000;
/** Locks and calls after which everything has grown that grows only once. */
const WARM = 2_000;

const LENGTHS = {
  usual: {
    held: [100, 1_000, 10_000, 50_000],
    waiting: [10, 100, 1_000, 5_000, 20_000],
    masters: [1, 3, 5, 7, 9],
    length: [10, 100, 300, 1_000],
    resources: [1, 4, 16, 64],
    permits: [1, 10, 100, 1_000],
    jobs: [1, 10, 100, 1_000],
    rounds: 5,
    duration: 200,
  },
  quick: {
    held: [100, 1_000, 5_000],
    waiting: [10, 100, 1_000],
    masters: [1, 3, 5],
    length: [10, 100, 1_000],
    resources: [1, 8, 64],
    permits: [1, 10, 100],
    jobs: [1, 10, 100],
    rounds: 3,
    duration: 100,
  },
};

/** Measures how the costs of this library grow, and compares each with the order that it should have. */
export async function run({ quick }) {
  const lengths = quick ? LENGTHS.quick : LENGTHS.usual;
  const curves = [];
  const add = (title, head, rows, orders) => curves.push(...printCurves(title, head, rows, orders));
  await onCrew(['holder', 'waiter'], async (field) => {
    for (const member of field.crew.members)
      await field.crew.run(member, 'load', { concurrency: 64, duration: WARM_UP, ttl: TTL });
    for (const [name, order] of Object.entries({ length: 'constant', resources: 'linear', permits: 'constant' })) {
      const rows = await shapes(field, name, lengths);
      add(`Growth: ${SHAPES[name]}`, name, rows, { 'client us': order, 'server us': order });
    }
    for (const [title, keysOf] of Object.entries({ 'one key': () => 1, 'as many keys': (count) => count })) {
      const rows = await waiting(field, lengths.waiting, keysOf);
      add(`Growth: calls that wait for ${title}`, 'calls', rows, {
        'KiB each': 'constant',
        'CPU % meanwhile': 'linear',
        'us each when served': 'constant',
      });
    }
    add('Growth: locks that are held and extended', 'held', await held(field, lengths.held), {
      'KiB each': 'constant',
      'CPU %': 'linear',
      'commands/s': 'linear',
      'event loop p99 ms': 'linear',
    });
  });
  add('Growth: masters, 64 locks at a time', 'masters', await masters(lengths), {
    'client us': 'linear',
    'server us': 'linear',
  });
  const { rows, twice } = await jobs(lengths.jobs);
  add('Growth: jobs on three processes, each due every 2 s', 'jobs', rows, {
    'CPU ms for a tick of all': 'linear',
    'commands for a tick of all': 'linear',
  });
  printTable('Exponents of the upper half of each curve', [
    ['', 'from', 'to', 'cost', 'first', 'last', 'exponent', 'expected'],
    ...curves.map(({ name, column, order, points }) => {
      const [[from, first], [to, last]] = [points[0], points.at(-1)];
      return [name, from, to, column, figure(first), figure(last), exponentOf(points).toFixed(2), order];
    }),
  ]);
  const [[most, kib]] = curves.find(({ head, column }) => head === 'held' && column === 'KiB each').points.slice(-1);
  return {
    figures: curves,
    checks: [
      ...curves.map(checkOf),
      noMore(`${most} held: at most ${GOALS.heldKiB} KiB each`, kib, 'KiB', GOALS.heldKiB),
      exactly('no tick of a job ran twice', twice, 0),
    ],
  };
}

const SHAPES = {
  length: 'characters of a key',
  resources: 'keys of a call',
  permits: 'permits of a name, all but eight of them held',
};

/** Servers, and processes of this library that are connected to all of them. */
const onCrew = (names, work) =>
  onField({ masters: MASTERS, contenders: names.map((name) => `${OURS}@${name}`), ttl: TTL }, work);

const stepsOf = (crew) => (member, step, task) => crew.run(member, 'growth', { step, ttl: TTL, ...task });

async function held({ crew, urls }, counts) {
  const step = stepsOf(crew);
  const [holder] = crew.members;
  // Lets everything grow that grows only once.
  await step(holder, 'hold', { count: WARM });
  await step(holder, 'letGo');
  const rows = [];
  let [before, bytes] = [0, 0];
  for (const count of counts) {
    const found = await step(holder, 'hold', { count });
    bytes += found.bytes * (count - before);
    before = count;
    const counter = await CommandCounter.start(urls);
    const { share, delay } = await step(holder, 'idle', { duration: TTL });
    const commands = await counter.stop();
    rows.push([count, bytes / count / 1024, 100 * share, commands / (TTL / 1_000), delay]);
  }
  await step(holder, 'letGo');
  return rows;
}

async function waiting({ crew }, counts, keysOf) {
  const step = stepsOf(crew);
  const [holder, waiter] = crew.members;
  const { keys: warm } = await step(holder, 'hold', { count: keysOf(WARM) });
  await step(waiter, 'waitFor', { count: WARM, keys: warm });
  const warmed = step(waiter, 'serve');
  await step(holder, 'letGo');
  await warmed;
  const rows = [];
  for (const count of counts) {
    const { keys } = await step(holder, 'hold', { count: keysOf(count) });
    const { bytes } = await step(waiter, 'waitFor', { count, keys });
    const { share } = await step(waiter, 'idle', { duration: 2_000 });
    const served = step(waiter, 'serve');
    await step(holder, 'letGo');
    rows.push([count, bytes / 1024, 100 * share, (await served).cpu]);
  }
  return rows;
}

async function shapes({ crew, urls }, name, { duration, rounds, ...lengths }) {
  const step = stepsOf(crew);
  const [member] = crew.members;
  const load = await ServerLoad.watch(urls);
  const measured = await inRounds({ rounds, warmUps: 2 }, lengths[name], async (value) => {
    await step(member, 'beShaped', { [name]: value });
    const before = await load.cpu();
    const { cpu, count } = await step(member, 'shaped', { duration });
    const server = (await load.cpu()) - before;
    await step(member, 'letGo');
    return { client: cpu / count, server: server / count };
  }).finally(() => load.close());
  return medians(measured);
}

/** The first masters, as many as the name of the member says. */
const firstOf = (urls, member) => urls.slice(0, Number(member.split('@')[1]));

function masters({ masters: counts, rounds, duration }) {
  const contenders = counts.map((count) => `${OURS}@${count}`);
  return onField({ masters: Math.max(...counts), contenders, ttl: TTL, share: firstOf }, async ({ crew, urls }) => {
    const load = await ServerLoad.watch(urls);
    const task = { concurrency: 64, duration, ttl: TTL };
    for (const member of crew.members) await crew.run(member, 'load', { ...task, duration: WARM_UP });
    const measured = await inRounds({ rounds, warmUps: 1 }, crew.members, async (member) => {
      const before = await load.cpu();
      const { cpu, locks } = await crew.run(member, 'load', task);
      return { client: cpu / locks, server: ((await load.cpu()) - before) / locks };
    }).finally(() => load.close());
    return medians([...measured].map(([member, rounds]) => [Number(member.split('@')[1]), rounds]));
  });
}

function medians(measured) {
  const of = (rounds, name) => median(rounds.map((figures) => figures[name]));
  return [...measured].map(([value, rounds]) => [value, of(rounds, 'client'), of(rounds, 'server')]);
}

const PERIOD = 2_000;
const TICKS = 3;

function jobs(counts) {
  return onCrew([1, 2, 3], async ({ crew, urls }) => {
    const step = stepsOf(crew);
    const all = (name, task) => Promise.all(crew.members.map((member) => step(member, name, task)));
    const rows = [];
    let twice = 0;
    for (const count of counts) {
      await all('startJobs', { urls, count, period: PERIOD });
      await all('tick', { period: PERIOD, ticks: 2 });
      const before = await all('jobsSoFar');
      const counter = await CommandCounter.start(urls);
      await all('tick', { period: PERIOD, ticks: TICKS });
      const commands = await counter.stop();
      const after = await all('jobsSoFar');
      const grown = (name) => after.reduce((sum, found, i) => sum + found[name] - before[i][name], 0);
      twice += Math.max(0, grown('runs') - count * TICKS);
      rows.push([count, grown('cpu') / 1_000 / TICKS, commands / TICKS]);
      await all('endJobs');
    }
    return { rows, twice };
  });
}

/** Prints one table, and returns its curves. */
function printCurves(title, head, rows, orders) {
  const columns = Object.keys(orders);
  printTable(title, [[head, ...columns], ...rows.map(([count, ...values]) => [count, ...values.map(figure)])]);
  return columns.map((column, i) => ({
    ...{ name: `${title.replace('Growth: ', '')}: ${column}`, head, column, order: orders[column] },
    points: rows.map((row) => [row[0], row[i + 1]]),
  }));
}

/** The largest exponent that noise explains. */
const EXPONENTS = { constant: 0.2, linear: 1.2 };

/** Too little memory to be measured is left out. */
function exponentOf(points) {
  const upper = points.slice(Math.floor((points.length - 1) / 2)).filter(([, value]) => value > 0);
  return upper.length > 1 ? slope(upper) : NaN;
}

function checkOf({ name, order, points }) {
  const found = exponentOf(points);
  return {
    promise: `${name} grows as expected: ${order}, an exponent of at most ${EXPONENTS[order]}`,
    found: found.toFixed(2),
    kept: found <= EXPONENTS[order],
  };
}
