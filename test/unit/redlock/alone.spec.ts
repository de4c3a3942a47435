// The algorithm with nothing around it: masters of a stranger, a trivial kind of lock, and a wait that polls.
import { beforeEach, describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { Call, type Cancellation } from '../../../lib/redlock/call.js';
import type { LockError } from '../../../lib/redlock/errors.js';
import { QuorumUnavailableError } from '../../../lib/redlock/errors.js';
import { TokenSource } from '../../../lib/redlock/holder.js';
import type { Lease } from '../../../lib/redlock/lease.js';
import type { Plan } from '../../../lib/redlock/round.js';
import type { Primitive } from '../../../lib/redlock/primitive.js';
import { Redlock } from '../../../lib/redlock/redlock.js';
import type { Reply, Request, RoundRequest, Server } from '../../../lib/redlock/server.js';
import type { Terms } from '../../../lib/redlock/terms.js';
import type { Waiting } from '../../../lib/redlock/waiting.js';

interface KeyRequest extends RoundRequest {
  readonly token: string;
  readonly heals?: boolean;
}

/** A server with one key, in fifteen lines. */
class OneKey implements Server {
  owner = '';
  until = 0;
  isDown = false;

  constructor(
    private readonly clock: ManualClock,
    readonly name: string,
  ) {}

  ask(request: Request, reply: (answer: Reply) => void): void {
    if (!this.isDown) reply(this.answer(request as KeyRequest));
  }

  private answer({ op, token, ttl, heals }: KeyRequest): Reply {
    const { wall: now } = this.clock.read();
    if (this.until <= now) this.owner = '';
    if (this.owner !== '' && this.owner !== token) return { kind: 'held', remaining: this.until - now };
    if (op === 'extend' && this.owner === '' && heals !== true) return { kind: 'gone' };
    this.owner = op === 'release' ? '' : token;
    if (op !== 'release') this.until = now + ttl;
    return { kind: 'granted' };
  }
}

const primitive: Primitive = {
  acquire: (token, ttl) => ({ op: 'acquire', token, ttl, withdrawn: false }),
  extend: (token, ttl, _, heals) => ({ op: 'extend', token, ttl, heals, withdrawn: false }),
  release: (token, _, ttl) => ({ op: 'release', token, ttl }),
};

let clock: ManualClock;
let masters: readonly OneKey[];
let redlock: Redlock;
let losses: LockError[];

/** A call that asks all masters every ten milliseconds. */
class PollingCall extends Call implements Waiting, Terms<Lease> {
  readonly resources = ['a'];
  readonly since = clock.read();
  readonly cancellation: Cancellation = { isStopped: false, interrupt: undefined, stop: () => {}, check: () => {} };

  constructor(
    private readonly wait: number,
    extend: boolean,
  ) {
    super();
    this.call = { ttl: 1_000, extend, minHold: 0, maxHold: 60_000 };
  }

  readonly call;

  get terms() {
    return this.call;
  }

  begin(): this {
    return this;
  }

  plan(attempt: number): Plan | Promise<undefined> {
    const since = clock.read();
    const isOver = attempt > 1 && since.monotonic - this.since.monotonic >= this.wait;
    return isOver ? Promise.resolve(undefined) : { primitive, since, timeout: 50 };
  }

  pause(): Promise<void> {
    return new Promise((resolve) => clock.schedule(10, resolve));
  }

  failure(): Promise<LockError> {
    return Promise.resolve(new QuorumUnavailableError('lock', this.resources, [], 2, 3));
  }

  granted(): this {
    return this;
  }

  failed(reason: unknown): unknown {
    return reason;
  }

  note(): void {}
  beginning(): void {}
  unused(): void {}
  end(): void {}
  ended(): void {}
}

beforeEach(() => {
  clock = new ManualClock();
  masters = ['m1', 'm2', 'm3'].map((name) => new OneKey(clock, name));
  losses = [];
  let tokens = 0;
  const random = { token: () => `token${++tokens}`, fraction: () => 0.5 };
  redlock = new Redlock({
    ...{ masters, clock, random, timing: { masterTimeout: 50, driftFactor: 0.01 } },
    tokens: new TokenSource(random, 'alone'),
    controller: () => new AbortController(),
    reopened: () => undefined,
    lost: (loss) => losses.push(loss),
    inDanger: () => undefined,
  });
});

function acquire(wait = 0, extend = false): Promise<Lease> {
  return redlock.start(new PollingCall(wait, extend), { begin: (lease) => lease, isAwaited: false });
}

describe('The algorithm alone', () => {
  it('excludes others until the release, with a quorum of the masters', async () => {
    masters[2]!.isDown = true;
    const lease = await acquire();
    const refused = acquire().catch((error: unknown) => error);
    await clock.advance(10);
    expect(await refused).toBeInstanceOf(QuorumUnavailableError);
    const waiting = acquire(100);
    await clock.advance(15);
    await lease.release();
    await clock.advance(10);
    expect((await waiting).isHeld).toBe(true);
  });

  it('extends a lock while work runs, and sets the key again on a master that has lost it', async () => {
    const lease = await acquire(0, true);
    masters[0]!.owner = '';
    await clock.advance(5_000);
    expect([lease.isHeld, masters.map(({ owner }) => owner === lease.mutex.token)]).toEqual([true, [true, true, true]]);
    await lease.release();
    expect(masters.map(({ owner }) => owner)).toEqual(['', '', '']);
  });

  it('loses a lock that no quorum has any more, and tells it', async () => {
    const lease = await acquire(0, true);
    for (const master of masters.slice(1)) master.owner = '';
    await clock.advance(400);
    expect(losses).toMatchObject([{ cause: 'gone' }]);
    expect([lease.isHeld, clock.pendingTimers]).toEqual([false, 0]);
  });
});
