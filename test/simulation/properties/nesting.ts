import type { Actor } from '../actor.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** Milliseconds from one look at the keys to the next. */
const LOOKS_EVERY = 20;
/** How long a nested call takes at most to take keys that are free: a poll, and an attempt. */
const TAKES_WITHIN = 1_000;

/** Without faults, a nested call does not wait for keys that no call has while all holders wait, too. */
export function watchNested(actor: Actor, world: World): void {
  const { actors, scheduler, endpoints, assumptions } = world;
  if (!world.isQuiet || !assumptions.ratesAreNormal) return;
  const { keys } = actor.node.redlock['keyspace'].namesOf(actor.operation.resources);
  const isTaken = () => endpoints.some(({ server }) => server && keys.some((key) => server.data.exists(key)));
  const works = (holder: Actor) => holder.isHolding && !actors.some(({ outer, isDone }) => outer === holder && !isDone);
  let since = scheduler.now;
  const look = (): void => {
    if (!actor.isWaiting) return;
    if (isTaken() || actors.some(works)) since = scheduler.now;
    if (scheduler.now - since > TAKES_WITHIN) {
      const message = `${actor.name} waits for ${actor.operation.resources.join(', ')}, which no call has`;
      world.report(new Violation('no two calls of one process wait for each other', scheduler.now, message));
    } else scheduler.after(LOOKS_EVERY, look);
  };
  look();
}
