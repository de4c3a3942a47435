import { GOALS } from '../goals.mjs';
import { ratioOf } from '../measure/rounds.mjs';
import { atMost, noMore } from '../promises.mjs';

export function checksOf({ memory, master }) {
  return [
    noMore('@WithLock adds at most 5 us to LockService.withLock', memory.added.median, 'us', 5),
    atMost(
      `one master: client CPU of @WithLock at most ${GOALS.decorator} of acquire and release`,
      ratioOf(master.decorated, master.byHand),
      GOALS.decorator,
    ),
  ];
}
