import { before, BEFORE, contendersFor, FLOOR, isPeer, OURS } from '../contenders.mjs';
import { onField, warmUp } from '../measure/field.mjs';
import { inRounds, ratioOf, spread } from '../measure/figures.mjs';
import { latencies } from '../measure/trace.mjs';
import { atMost, figure, GOALS, printTable, range, times } from '../report.mjs';

const TTL = 3_000;

const LENGTHS = {
  usual: { rounds: 7, count: 1_000 },
  quick: { rounds: 5, count: 500 },
  // As many as in `cost`, and for the same reason.
  comparison: { rounds: 101, count: 300 },
};

/** Measures how long an uncontended lock takes, with no other at the same time. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5], only }) {
  const lengths = quick ? LENGTHS.quick : before.length > 0 ? LENGTHS.comparison : LENGTHS.usual;
  const figures = [];
  for (const count of masters) {
    const field = { masters: count, contenders: contendersFor(count, only), ttl: TTL };
    const contenders = await onField(field, async (bench) => {
      await warmUp(bench, { quick });
      return oneByOne(bench, lengths);
    });
    printLatency(`N = ${count}, one`, contenders, { base: FLOOR });
    figures.push({ masters: count, contenders });
  }
  return { figures, checks: figures.flatMap(checksOf) };
}

/** Measures how long a lock takes on an idle machine, per contender, in the steady state. */
export async function oneByOne({ crew, ttl }, { rounds, count }) {
  const measured = await inRounds({ rounds, warmUps: 1 }, crew.members, (contender) =>
    crew.run(contender, 'cycles', { count, ttl }),
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

function checksOf({ masters, contenders }) {
  if (!contenders[OURS]) return [];
  const peers = Object.entries(contenders).filter(([name]) => isPeer(name));
  const [fastest] = peers.sort(([, a], [, b]) => a.both.p50.median - b.both.p50.median);
  const to = (other, share) => ratioOf(contenders[OURS].both[share], other.both[share]);
  const both = (share) => `N = ${masters}: acquire and release ${share} at most`;
  const before = contenders[BEFORE];
  return [
    ...(fastest ? ['p50', 'p99'] : []).map((share) => {
      const [name, peer] = fastest;
      return atMost(`${both(share)} ${GOALS[share]} of the fastest peer, ${name}`, to(peer, share), GOALS[share]);
    }),
    ...(before ? [atMost(`${both('p50')} 1.03 of before`, to(before, 'p50'), 1.03)] : []),
  ];
}
