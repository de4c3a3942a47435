import { before, BEFORE, contendersFor, FLOOR, isPeer, OURS, PLAIN } from '../contenders.mjs';
import { onField, warmUp } from '../measure/field.mjs';
import { inRounds, ratioOf, spread } from '../measure/figures.mjs';
import { latencies } from '../measure/trace.mjs';
import { atMost, figure, GOALS, printTable, range, times } from '../report.mjs';

const TTL = 3_000;
/** What the proxy adds to each round trip, in milliseconds. */
const DELAY = 0.5;
/** The time in which a process is new, in milliseconds, and whose first seconds are compared. */
const FIRST = 3_000;
const NEWCOMERS = [FLOOR, OURS, PLAIN, 'redlock5', BEFORE];
/** A slow contender has fewer locks in a round, in milliseconds. */
const LONGEST_ROUND = 500;

const LENGTHS = {
  usual: { rounds: 5, count: 600 },
  quick: { rounds: 3, count: 300 },
  // As many as in `cost`, and for the same reason.
  comparison: { rounds: 101, count: 300 },
};

/** Measures how long an uncontended lock takes, with no other at the same time. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5], only }) {
  const lengths = quick ? LENGTHS.quick : before.length > 0 ? LENGTHS.comparison : LENGTHS.usual;
  const figures = [];
  for (const count of masters) {
    const field = { masters: count, contenders: contendersFor(count, only), ttl: TTL };
    const found = await onField(field, async (bench) => {
      const newcomers = bench.crew.members.filter((member) => NEWCOMERS.includes(member));
      const first = await oneByOne(bench, { rounds: 1, duration: FIRST, members: newcomers });
      await warmUp(bench, { quick });
      return { first, steady: await oneByOne(bench, { ...lengths, duration: LONGEST_ROUND, warmUps: 1 }) };
    });
    const far = await onField({ ...field, proxied: count }, async (bench) => {
      await bench.proxy.delayBy(DELAY);
      await warmUp(bench, { quick: true });
      return oneByOne(bench, { rounds: 3, count: 150, duration: LONGEST_ROUND, warmUps: 1 });
    });
    printLatency(`N = ${count}, one`, found.steady, { base: FLOOR });
    printLatency(`N = ${count}, in the first 3 s of a process, one`, found.first, { base: FLOOR });
    printLatency(`N = ${count}, with ${DELAY} ms of network, one`, far, { base: FLOOR });
    figures.push({ masters: count, ...found, far });
  }
  return { figures, checks: figures.flatMap(checksOf) };
}

/** Measures how long a lock takes on an idle machine, per contender. */
export async function oneByOne({ crew, ttl }, { rounds, warmUps, members = crew.members, ...task }) {
  const measured = await inRounds({ rounds, warmUps }, members, (contender) =>
    crew.run(contender, 'cycles', { ...task, ttl }),
  );
  const found = {};
  for (const [contender, results] of measured) {
    const of = (name) => {
      const perRound = results.map((times) => latencies(times[name]));
      return { p50: spread(perRound.map(({ p50 }) => p50)), p99: spread(perRound.map(({ p99 }) => p99)) };
    };
    found[contender] = { acquire: of('acquire'), both: of('both') };
  }
  return found;
}

export function printLatency(where, contenders, { base, title = base, rivalOf = () => base }) {
  printTable(`${where} at a time: milliseconds, medians of the rounds (smallest-largest)`, [
    [...['', 'acquire p50', 'acquire p99'], ...['and release p50', `to ${title}`, 'and release p99', `to ${title}`]],
    ...Object.entries(contenders).map(([name, { acquire, both }]) => [
      ...[name, range(acquire.p50), figure(acquire.p99.median)],
      ...['p50', 'p99'].flatMap((share) => [
        range(both[share]),
        times(ratioOf(both[share], contenders[rivalOf(name)].both[share])),
      ]),
    ]),
  ]);
}

function checksOf({ masters, first, steady, far }) {
  const { [OURS]: ours, [BEFORE]: earlier, redlock5 } = steady;
  if (!ours) return [];
  const to = (contenders, name, share) => ratioOf(contenders[OURS].both[share], contenders[name].both[share]);
  const fastestOf = (contenders) =>
    Object.keys(contenders)
      .filter(isPeer)
      .sort((a, b) => contenders[a].both.p50.median - contenders[b].both.p50.median)[0];
  const both = `N = ${masters}: acquire and release`;
  const check = (contenders, name, share, where, bound) =>
    atMost(`${both} ${where} at most ${bound} of ${name}`, to(contenders, name, share), bound);
  const [peer, farPeer] = [fastestOf(steady), fastestOf(far)];
  return [
    ...(peer ? [check(steady, peer, 'p50', 'p50', GOALS.p50)] : []),
    ...(farPeer ? [check(far, farPeer, 'p50', `p50 with ${DELAY} ms of network`, GOALS.farP50)] : []),
    ...(redlock5 ? [check(first, 'redlock5', 'p99', 'p99 of the first 3 s', GOALS.firstP99)] : []),
    ...(earlier ? [check(steady, BEFORE, 'p50', 'p50', 1.03)] : []),
  ];
}
