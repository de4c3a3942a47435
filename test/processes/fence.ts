// Takes locks on a few hot keys as fast as it can, and reports each lock with its fencing token to a register. It must
// survive masters that die, networks that break, and pauses of its own process at any moment.
import { Keyspace } from '../../lib/core/keyspace.js';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Instant } from '../../lib/core/clock.js';
import { SystemClock } from '../../lib/runtime/system-clock.js';
import { LockError } from '../../lib/core/errors.js';
import { SystemRandom } from '../../lib/runtime/system-random.js';
import { Redlock } from '../../lib/core/redlock.js';
import type { RedlockOptions } from '../../lib/core/settings/options.js';
import { resolveCall, resolveSettings } from '../../lib/core/settings/settings.js';
import { RequestEncoder } from '../../lib/redis/request-encoding.js';
import { redisMasters } from '../../lib/redis/master-source.js';
import { RestartGuard } from '../../lib/redis/guard/restart-guard.js';
import { type Protocol, useProtocol } from '../support/wrong-protocols.js';

export interface FenceTask {
  readonly id: number;
  readonly urls: readonly string[];
  readonly options: RedlockOptions;
  readonly keys: readonly string[];
  readonly register: number;
  readonly milliseconds: number;
  /** How far the wall clock is ahead, in milliseconds. */
  readonly ahead: number;
  /** How masters draw a token; by default as the library does. */
  readonly protocol?: Protocol;
  /** Waits for the register before each step: to acquire, to request the token, to write. */
  readonly steered?: boolean;
}

/** One critical section. Times are microseconds of the machine's monotonic clock, which all processes share. */
export interface Section {
  readonly keys: readonly string[];
  readonly token: number;
  /** When the lock was requested. */
  readonly asked: number;
  /** When the lock was held and the token was known. */
  readonly since: number;
  /** When the lock was last seen to be held. */
  readonly until: number;
}

/**
 * A message to the register. It answers `claim` and `write` with its verdict, and `ready` when the process may go on.
 */
export type Message =
  | { readonly op: 'claim' | 'write'; readonly id: number; readonly keys: readonly string[]; readonly token: number }
  | { readonly op: 'ready'; readonly id: number }
  | { readonly op: 'section'; readonly section: Section };

class SkewedClock extends SystemClock {
  override read(): Instant {
    const { monotonic, wall } = super.read();
    return { monotonic, wall: wall + ahead };
  }
}

const task = JSON.parse(process.argv[2] ?? '') as FenceTask;
const { id, urls, options, keys, register, milliseconds, ahead, protocol = 'right', steered = false } = task;
const clock = new SkewedClock();
const random = new SystemRandom();
const settings = resolveSettings(options, urls.length);
const dependencies = { clock, random, observer: {} };
const clockLags = (by: number): void => redlock.noteStandstill(by);
const guard = settings.restartGuard
  ? new RestartGuard({ ...dependencies, settings, clockLags, instance: `process ${id}` })
  : undefined;
const masters = redisMasters('masters', urls, { ...dependencies, settings, guard, encoder: new RequestEncoder() });
const endProtocol = useProtocol(protocol, masters, urls, new Keyspace(settings.keyPrefix).counters);
const redlock: Redlock = new Redlock(masters, settings, { ...dependencies, witness: guard });

const socket = connect(register, '127.0.0.1').setNoDelay();
const answers = createInterface(socket)[Symbol.asyncIterator]();
const send = (message: Message): void => void socket.write(`${JSON.stringify(message)}\n`);
const ask = async (op: 'claim' | 'write', names: readonly string[], token: number): Promise<boolean> => {
  send({ op, id, keys: names, token });
  return (await answers.next()).value === 'accepted';
};
/** Waits for the next step if the process is steered. */
const step = async (): Promise<void> => {
  if (!steered) return;
  send({ op: 'ready', id });
  await answers.next();
};
const now = (): number => Number(process.hrtime.bigint() / 1_000n);

if (steered) await redlock.connect(10_000);
else void redlock.open();
const end = performance.now() + milliseconds;
do {
  try {
    await enter();
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
  }
} while (performance.now() < end);
await redlock.close();
endProtocol();
socket.end();

async function enter(): Promise<void> {
  const chosen = Math.random() < 0.2 ? keys : [keys[Math.floor(Math.random() * keys.length)] as string];
  const extend = !steered && Math.random() < 0.5;
  await step();
  const asked = now();
  const call = resolveCall(settings, { wait: 1_000, extend });
  await using lock = await redlock.acquire(chosen, call);
  await step();
  const token = await lock.fencingToken();
  const since = now();
  await step();
  let until = since;
  if (await ask('claim', chosen, token)) {
    await sleep(Math.random() * 10);
    // In this order, because this process may be paused between the two.
    const at = now();
    if (lock.isHeld) until = at;
    await ask('write', chosen, token);
  }
  send({ op: 'section', section: { keys: chosen, token, asked, since, until } });
}
