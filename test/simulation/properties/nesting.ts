import type { Actor } from '../actor.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** Milliseconds from one look at the keys to the next. */
const LOOKS_EVERY = 20;
/** How long a nested call takes at most to take keys that are free: a poll, and an attempt. */
const TAKES_WITHIN = 1_000;

/**
 * Without faults, a nested call gets its keys while all holders wait, too: no call has them, or only one that waits for
 * the rest of its own. Across processes, the two may wait for each other.
 */
export function watchNested(actor: Actor, world: World): void {
  const { actors, scheduler, endpoints, assumptions } = world;
  if (!world.isQuiet || !assumptions.ratesAreNormal) return;
  const { keys } = actor.node.redlock['keyspace'].namesOf(actor.operation.resources);
  const look = () => endpoints.map(({ server }) => keys.map((key) => server?.data.get(key)).join()).join(';');
  const isElsewhere = ({ node, isDone }: Actor) => !isDone && node !== actor.node;
  const works = (holder: Actor) => holder.isHolding && !actors.some(({ outer, isDone }) => outer === holder && !isDone);
  let [since, seen] = [scheduler.now, look()];
  const check = (): void => {
    if (!actor.isWaiting) return;
    const now = look();
    if (now !== seen || actors.some((other) => works(other) || isElsewhere(other))) since = scheduler.now;
    seen = now;
    if (scheduler.now - since > TAKES_WITHIN) {
      const message = `${actor.name} waits for ${actor.operation.resources.join(', ')}, and no call works`;
      world.report(new Violation('no two calls of one process wait for each other', scheduler.now, message));
    } else scheduler.after(LOOKS_EVERY, check);
  };
  check();
}
