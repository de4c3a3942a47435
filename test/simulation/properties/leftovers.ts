import { NUL } from '../../../lib/core/keyspace.js';
import { getEventListeners } from 'node:events';
import type { Endpoint } from '../network/endpoint.js';
import type { SimNode } from '../node.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** Data that stays on a master: bounded, and the same for every key, except for states, which stay for a month. */
const STAYS = /\0(?:(?:incarnation|fences)$|state:)/;

/** No key of a lock is left on a master unless a fault may have kept its release from arriving. */
export function checkReleased({ endpoints, scheduler, settings }: World): void {
  for (const endpoint of endpoints) {
    if (endpoint.mayKeepKeys) continue;
    const locks = keysOf(endpoint).filter((key) => !key.startsWith(settings.keyPrefix + NUL));
    if (locks.length > 0) fail(scheduler.now, `${endpoint.name} still has ${JSON.stringify(locks)}`);
  }
}

/** No key is left anywhere after everything that expires has expired. */
export function checkNothingLeft({ endpoints, scheduler }: World): void {
  for (const endpoint of endpoints) {
    const keys = keysOf(endpoint).filter((key) => !STAYS.test(key));
    if (keys.length > 0) fail(scheduler.now, `${endpoint.name} still has ${JSON.stringify(keys)}`);
  }
}

/** No timer, listener or promise of the library is left in a process that has nothing else to do, such as waiting. */
export function checkIdle({ nodes, actors, scheduler }: World, isCalm: (node: SimNode) => boolean): void {
  for (const node of nodes) {
    const { process } = node;
    const left = process.pendingTimers - (node.guard?.pendingTimers ?? 0);
    if (process.isDead || left === 0 || !isCalm(node)) continue;
    outlives(scheduler.now, `${process.name} has ${left} timers left`);
  }
  for (const actor of actors) {
    if (actor.node.process.isDead) continue;
    if (actor.pending > 0) outlives(scheduler.now, `${actor.pending} promises of ${actor.name} have not settled`);
    const listeners = actor.signal ? getEventListeners(actor.signal, 'abort').length : 0;
    if (listeners > 0) outlives(scheduler.now, `${actor.name} still listens to the signal of its caller`);
  }
}

function keysOf({ server }: Endpoint): string[] {
  return server?.data.keys() ?? [];
}

function fail(at: number, message: string): never {
  throw new Violation('nothing is left', at, message);
}

function outlives(at: number, message: string): never {
  throw new Violation('nothing outlives its lock', at, message);
}
