import { getEventListeners } from 'node:events';
import { isLockKey } from '../lock-keys.js';
import type { Endpoint } from '../network/endpoint.js';
import type { SimNode } from '../node.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** Data that stays on a master: bounded, and the same for every key, except for states, which stay for a month. */
const STAYS = /\0(?:(?:run|fences)$|state:)/;

/** No key of a lock is left on a master unless a fault may have kept its release from arriving. */
export function checkReleased({ endpoints, scheduler, isQuiet }: World): void {
  for (const endpoint of endpoints) {
    if (endpoint.mayKeepKeys) continue;
    // All waiters have left their queues and writer keys, too, unless a process did not read the answers of a master.
    const locks = keysOf(endpoint).filter((key) => isLockKey(key) || (isQuiet && !STAYS.test(key)));
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

/** Every set of holders expires exactly when its last member ends, so it blocks no longer than that. */
export function checkSharedKeys({ endpoints, scheduler }: World): void {
  for (const { name, server } of endpoints) {
    if (!server) continue;
    const { data } = server;
    for (const key of data.keys()) {
      const last = isLockKey(key) ? data.zrange(key).at(-1) : undefined;
      if (!last) continue;
      const left = last[1] - Math.floor(server.time() / 1_000);
      if (Math.max(0, left) === data.pttl(key)) continue;
      throw new Violation(
        'a shared key lives as long as its holders',
        scheduler.now,
        `${name} keeps ${JSON.stringify(key)} for ${data.pttl(key)} ms, and its members for ${left} ms`,
      );
    }
  }
}

/** No process remembers a resource that it does not use. */
export function checkForgotten({ nodes, scheduler }: World): void {
  for (const { process, redlock, isThere } of nodes) {
    if (!isThere) continue;
    const queued = [...redlock['queue']['queues'].keys(), ...redlock['permitBook']['usages'].keys()];
    if (queued.length > 0) outlives(scheduler.now, `${process.name} still remembers ${queued.join(', ')}`);
  }
}

/** No timer, listener or promise of the library is left in a process that has nothing else to do, such as waiting. */
export function checkIdle({ nodes, actors, scheduler }: World, isCalm: (node: SimNode) => boolean): void {
  for (const node of nodes) {
    const { process } = node;
    const left = process.pendingTimers - node.masterTimers;
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
