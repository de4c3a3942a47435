import { FEW, librariesFor, OURS } from '../contenders.mjs';
import { onField } from '../measure/field.mjs';
import { sleep } from '../measure/figures.mjs';
import { latencies } from '../measure/trace.mjs';
import { atMost, exactly, figure, printTable, times } from '../report.mjs';

const TTL = 3_000;
const MASTERS = 5;

const LENGTHS = {
  usual: { duration: 500, rounds: 3 },
  quick: { duration: 400, rounds: 2 },
};

/** Measures how failing masters affect latency and throughput. Each contender has servers of its own. */
export async function run({ quick, only = FEW }) {
  const lengths = quick ? LENGTHS.quick : LENGTHS.usual;
  const contenders = librariesFor(MASTERS, only);
  const found = {};
  const scenes = [
    ['slow', `One of five slower by ${SLOW} ms`, slow],
    ['hung', 'One hung of five', hung],
    ['oneDead', 'One dead of five', (field, name) => dead(field, name, { ...lengths, count: 1 })],
    ['twoDead', 'Two dead of five', (field, name) => dead(field, name, { ...lengths, count: 2 })],
  ];
  for (const [key, title, scene] of scenes) {
    found[key] = {};
    const proxied = scene === slow ? 1 : 0;
    for (const name of contenders) {
      found[key][name] = await alone(name, (field) => scene(field, name, lengths), proxied);
    }
    printScene(`${title}, 8 at a time`, found[key]);
  }
  return { figures: found, checks: checksOf(found) };
}

/** Keeps the other libraries measurable, whatever one library does when masters fail. */
function alone(name, scene, proxied = 0) {
  const field = { masters: MASTERS, contenders: [name], ttl: TTL, proxied };
  return onField(field, scene).catch((error) => ({ gaveUp: String(error.message).slice(0, 80) }));
}

const CONCURRENCY = 8;
/**
 * Time for a master that hung or came back to run the commands that it has missed, before the next measurement, in
 * milliseconds.
 */
const RECOVERY = 300;

/** Milliseconds that a slow master adds to each round trip. */
const SLOW = 30;

/** Measures one contender with all masters up and with one that hangs, in turn. */
function hung(field, contender, lengths) {
  const victim = field.servers.at(-1);
  return inTurn(field, contender, {
    ...lengths,
    fail: () => victim.pause(),
    recover: () => victim.resume(),
  });
}

/** Measures one contender with all masters fast and with one that is slow, in turn. The last one is behind a proxy. */
function slow(field, contender, lengths) {
  return inTurn(field, contender, {
    ...lengths,
    fail: () => field.proxy.delayBy(SLOW),
    recover: () => field.proxy.delayBy(0),
  });
}

async function inTurn({ crew, ttl }, contender, { duration, rounds, fail, recover }) {
  const strain = (length) => crew.run(contender, 'strain', { concurrency: CONCURRENCY, duration: length, ttl });
  await strain(duration);
  const up = [];
  const down = [];
  for (let round = 0; round < rounds; round++) {
    up.push(await strain(duration));
    await fail();
    try {
      down.push(await strain(duration));
    } finally {
      await recover();
    }
    await sleep(RECOVERY);
  }
  return { up: summaryOf(up), down: summaryOf(down) };
}

/** Measures one contender with all masters up, and after the crash of some. */
async function dead({ crew, servers, ttl }, contender, { duration, count }) {
  const strain = (length) => crew.run(contender, 'strain', { concurrency: CONCURRENCY, duration: length, ttl });
  await strain(duration);
  const up = await strain(duration);
  await Promise.all(servers.slice(-count).map((server) => server.kill()));
  const down = await strain(2 * duration);
  return { up: summaryOf([up]), down: summaryOf([down]) };
}

function summaryOf(runs) {
  const times = runs.flatMap((run) => run.times);
  const sum = (of) => runs.map(of).reduce((total, value) => total + value, 0);
  const seconds = sum(({ elapsed }) => elapsed) / 1000;
  return {
    ...latencies(times),
    rate: sum(({ locks }) => locks) / seconds,
    failures: runs.flatMap(({ failures }) => Object.entries(failures)),
  };
}

function printScene(title, contenders) {
  const row = (name, when, found) => [
    ...[name, when, figure(found.p50), figure(found.p99), figure(found.rate)],
    found.failures.reduce((sum, [, count]) => sum + count, 0),
  ];
  printTable(`${title} (latency of acquire and release in ms)`, [
    ['', '', 'p50', 'p99', 'locks/s', 'failures', 'p99 to all up'],
    ...Object.entries(contenders).flatMap(([name, { up, down, gaveUp }]) =>
      gaveUp
        ? [[name, gaveUp, '-', '-', '-', '-', '-']]
        : [
            [...row(name, 'all up', up), ''],
            [...row('', 'failing', down), times(down.p99 / up.p99)],
          ],
    ),
  ]);
  for (const [name, { down }] of Object.entries(contenders)) {
    if (down?.failures.length > 0) console.log(`  ${name}: ${down.failures[0][0]}`);
  }
}

function checksOf({ slow, hung, oneDead, twoDead }) {
  if (!hung[OURS]) return [];
  const gaveUp = [slow, hung, oneDead, twoDead].map((scene) => scene[OURS].gaveUp).find(Boolean);
  if (gaveUp) return [{ promise: 'masters that fail can be measured', found: gaveUp, kept: false }];
  return [
    ...pathChecks('one slow of five', slow[OURS]),
    ...pathChecks('one hung of five', hung[OURS]),
    ...pathChecks('one dead of five', oneDead[OURS]),
    exactly('two dead of five: no failure of ours', twoDead[OURS].down.failures.length, 0),
  ];
}

function pathChecks(on, { up, down }) {
  return [
    atMost(`${on}: p99 of ours at most 1.5 of its p99 with all up`, down.p99 / up.p99, 1.5),
    exactly(`${on}: no failure of ours`, down.failures.length, 0),
  ];
}
