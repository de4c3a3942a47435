import { BEFORE, isPeer, OURS } from '../cost/contenders.mjs';
import { ratioOf } from '../measure/rounds.mjs';
import { atMost } from '../promises.mjs';

export function checksOf({ masters, contenders }) {
  const peers = Object.entries(contenders).filter(([name]) => isPeer(name));
  if (!contenders[OURS] || peers.length === 0) return [];
  const [[name, fastest]] = peers.sort(([, a], [, b]) => a.both.p50.median - b.both.p50.median);
  const to = (other) => ratioOf(contenders[OURS].both.p50, other.both.p50);
  const both = `N = ${masters}: acquire and release p50 at most`;
  const before = contenders[BEFORE];
  return [
    atMost(`${both} 1.1 of the fastest peer, ${name}`, to(fastest), 1.1),
    ...(before ? [atMost(`${both} 1.03 of before`, to(before), 1.03)] : []),
  ];
}
