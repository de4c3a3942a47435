import { BEFORE, isPeer, OURS } from '../cost/contenders.mjs';
import { GOALS } from '../goals.mjs';
import { ratioOf } from '../measure/rounds.mjs';
import { atMost } from '../promises.mjs';

export function checksOf({ masters, contenders }) {
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
