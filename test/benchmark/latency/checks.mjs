import { isPeer, OURS } from '../cost/contenders.mjs';
import { ratioOf } from '../measure/rounds.mjs';
import { atMost } from '../promises.mjs';

export function checksOf({ masters, contenders }) {
  const peers = Object.entries(contenders).filter(([name]) => isPeer(name));
  if (!contenders[OURS] || peers.length === 0) return [];
  const [[name, fastest]] = peers.sort(([, a], [, b]) => a.both.p50.median - b.both.p50.median);
  const ratio = ratioOf(contenders[OURS].both.p50, fastest.both.p50);
  return [atMost(`N = ${masters}: acquire and release p50 at most 1.1 of the fastest peer, ${name}`, ratio, 1.1)];
}
