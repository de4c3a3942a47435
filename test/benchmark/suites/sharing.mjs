import { admittedByCounters, PERMITS } from '../contenders/permits.mjs';
import { trace } from '../measure/contention.mjs';
import { onField, warmUp } from '../measure/field.mjs';
import { inRounds, ratioOf, spread } from '../measure/figures.mjs';
import { atLeast, atMost, exactly, figure, noMore, printTable, range, times } from '../report.mjs';
import { oneByOne } from './latency.mjs';
import { Pool } from '../worker/processes.mjs';

const TTL = 3_000;
/** As `--only` names the peer that has permits. */
const WITH_PERMITS = 'redis-semaphore';

const LENGTHS = {
  usual: {
    crowds: { duration: 250, rounds: 7 },
    oneByOne: { rounds: 7, count: 1_000 },
    semaphores: { duration: 800, rounds: 3 },
  },
  quick: {
    crowds: { duration: 160, rounds: 5 },
    // Many calls, or the first ones of the process, which are slower, would weigh too much.
    oneByOne: { rounds: 5, count: 500 },
    semaphores: { duration: 400, rounds: 2 },
  },
};

/** Measures permits beside locks on as many keys, shared locks beside exclusive ones, and permits of a peer. */
export async function run({ quick, masters = [1, 3], only }) {
  const lengths = quick ? LENGTHS.quick : LENGTHS.usual;
  const withPeer = !only || only.includes(WITH_PERMITS);
  const figures = [];
  for (const count of masters) {
    const field = { masters: count, contenders: [EXCLUSIVE, SHARED, PERMIT], ttl: TTL };
    figures.push(await onField(field, (bench) => measure(bench, { ...lengths, quick, withPeer })));
  }
  return { figures, checks: figures.flatMap(checksOf) };
}

async function measure(bench, { quick, withPeer, ...lengths }) {
  const masters = bench.urls.length;
  await warmUp(bench, { quick });
  const permits = await crowds(bench, CROWDS.permits, lengths.crowds);
  printCrowds(masters, permits);
  const shared = await crowds(bench, CROWDS.shared, lengths.crowds);
  printCrowds(masters, shared);
  // Without the member for permits: what is promised of one at a time concerns shared locks.
  const locks = { members: [EXCLUSIVE, SHARED], run: (...task) => bench.crew.run(...task) };
  const single = await oneByOne({ ...bench, crew: locks }, lengths.oneByOne);
  printOneByOne(masters, single);
  const atLimit = await semaphores(bench, { ...lengths.semaphores, withPeer });
  printSemaphores(masters, atLimit);
  return { masters, permits, shared, oneByOne: single, semaphores: atLimit };
}

/** Members of the crew. */
const EXCLUSIVE = 'ours';
const SHARED = 'ours-shared';
const PERMIT = 'ours-permits';

/** The crowds that compete with each other, each with a title, a member of the crew, and the number of its keys. */
const CROWDS = {
  permits: {
    callers: 64,
    subject: { title: `${PERMITS} permits of one name`, member: PERMIT, keys: 1 },
    others: [{ title: `locks on ${PERMITS} keys`, member: EXCLUSIVE, keys: PERMITS }],
  },
  shared: {
    callers: 16,
    subject: { title: 'shared locks on one key', member: SHARED, keys: 1 },
    others: [
      { title: 'shared locks on a key of each caller', member: SHARED, keys: 16 },
      { title: 'locks on a key of each caller', member: EXCLUSIVE, keys: 16 },
      { title: 'locks on one key', member: EXCLUSIVE, keys: 1 },
    ],
  },
};

/** Measures locks per second, and CPU of the client, of crowds in one process each that do nothing under the lock. */
async function crowds({ crew, ttl }, { callers, subject, others }, { duration, rounds }) {
  const measured = await inRounds({ rounds, warmUps: 2 }, [subject, ...others], async ({ member, keys }) => {
    const task = { concurrency: callers, shared: keys, duration, ttl };
    const { locks, elapsed, cpu, failures } = await crew.run(member, 'load', task);
    return { rate: (locks / elapsed) * 1000, client: cpu / locks, failures };
  });
  const [mine, ...rest] = [...measured].map(([{ title }, found]) => ({
    title,
    rate: spread(found.map(({ rate }) => rate)),
    client: spread(found.map(({ client }) => client)),
    failures: found.flatMap(({ failures }) => Object.keys(failures)),
  }));
  return { callers, subject: mine, others: rest };
}

/** In milliseconds. Long enough that holders overlap. */
const SECTION = 1;
const PROCESSES = 4;
const WAITERS = 16;

/** The peer with permits. Over several masters it keeps a counter on each of them. */
const PEER = 'redis-semaphore-permits';

const SCENES = [
  { title: PERMIT, contender: PERMIT },
  { title: `ours, locks on ${PERMITS} keys`, contender: EXCLUSIVE, keys: PERMITS },
  { title: PEER, contender: PEER },
];

/**
 * Several processes want the permits of one name. They ask the masters in different orders, which shows how many
 * holders a contender admits.
 */
async function semaphores({ urls, ttl }, { duration, rounds, withPeer }) {
  const scenes = SCENES.filter(({ contender }) => contender !== PEER || withPeer);
  const crowd = { processes: PROCESSES, waiters: WAITERS, section: SECTION };
  const pool = new Pool(PROCESSES);
  try {
    for (const { contender } of scenes) await pool.run('connect', { contender, urls, settings: { ttl } });
    const measured = await inRounds({ rounds, warmUps: 1 }, scenes, async ({ contender, keys }) => {
      const { trace: found } = await trace({ pool, urls }, contender, { ...crowd, keys }, duration);
      const { sectionRate, medianWait, longestWait, mostAtOnce, failures } = found;
      return { sectionRate, medianWait, longestWait, mostAtOnce, failures };
    });
    await pool.run('close');
    const found = [...measured].map(([{ title }, results]) => [title, summaryOf(results)]);
    return { ...crowd, contenders: Object.fromEntries(found) };
  } finally {
    await pool.end();
  }
}

function summaryOf(rounds) {
  const of = (name) => rounds.map((round) => round[name]);
  return {
    rate: spread(of('sectionRate')),
    medianWait: spread(of('medianWait')),
    longestWait: spread(of('longestWait')),
    mostAtOnce: Math.max(...of('mostAtOnce')),
    failures: of('failures').flat(),
  };
}

function printCrowds(masters, { callers, subject, others }) {
  const to = (other, name) => (other === subject ? '' : times(ratioOf(subject[name], other[name])));
  printTable(`N = ${masters}, ${callers} callers in one process: medians of the rounds (smallest-largest)`, [
    ['', 'locks/s', `${subject.title} / it`, 'client us/lock', 'of it', 'failures'],
    ...[subject, ...others].map((it) => [
      ...[it.title, range(it.rate), to(it, 'rate'), range(it.client), to(it, 'client'), it.failures.length],
    ]),
  ]);
}

function printOneByOne(masters, found) {
  const row = (title, { acquire, both }) => [
    ...[title, range(acquire.p50), figure(acquire.p99.median)],
    ...[range(both.p50), times(ratioOf(both.p50, found[EXCLUSIVE].both.p50)), figure(both.p99.median)],
  ];
  printTable(`N = ${masters}, one at a time, each with a key of its own: milliseconds`, [
    ['', 'acquire p50', 'acquire p99', 'and release p50', 'to exclusive', 'and release p99'],
    row('exclusive', found[EXCLUSIVE]),
    row('shared', found[SHARED]),
  ]);
}

function printSemaphores(masters, { processes, waiters, section, contenders }) {
  const where = `${processes} processes x ${waiters} callers`;
  const ours = contenders[PERMIT];
  printTable(`N = ${masters}, ${where}, ${PERMITS} permits of one name, ${section} ms section (waits in ms)`, [
    ['', 'sections/s', 'ours / it', 'wait p50', 'longest', 'most at once', 'can admit', 'failures'],
    ...Object.entries(contenders).map(([name, it]) => [
      ...[name, range(it.rate), times(ratioOf(ours.rate, it.rate)), range(it.medianWait), range(it.longestWait)],
      ...[it.mostAtOnce, name === PEER ? admittedByCounters(masters) : PERMITS, it.failures.length],
    ]),
  ]);
}

/** Compares the promises of shared locks and permits with the results for one number of masters. */
function checksOf({ masters, permits, shared, oneByOne, semaphores }) {
  const on = `N = ${masters}`;
  const [ownKeys] = permits.others;
  const time = (name) => oneByOne[name].both.p50;
  const { processes, waiters, contenders } = semaphores;
  const ours = contenders[PERMIT];
  const crowds = [permits, shared].flatMap(({ subject, others }) => [subject, ...others]);
  const failures = [...crowds, ours].reduce((sum, found) => sum + found.failures.length, 0);
  return [
    atLeast(
      `${on}, ${permits.callers} callers: locks/s of ${permits.subject.title} at least 0.5 of ${ownKeys.title}`,
      ratioOf(permits.subject.rate, ownKeys.rate),
      0.5,
    ),
    atMost(
      `${on}: acquire and release p50 of a shared lock at most 1.3 of an exclusive one`,
      ratioOf(time(SHARED), time(EXCLUSIVE)),
      1.3,
    ),
    noMore(
      `${on}, ${processes} x ${waiters}: never more than ${PERMITS} hold ${PERMITS} permits`,
      ours.mostAtOnce,
      'at once',
      PERMITS,
    ),
    exactly(`${on}: no failure of ours`, failures, 0),
  ];
}
