import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Lock } from '../../../lib/locks/lock.js';
import { resolveCall, resolveSettings } from '../../../lib/settings/settings.js';
import { type Request, Rig } from '../support/rig.js';
import { hangs, obeysAfter, only, tellsAfter } from '../support/scripted-master.js';

const TTL = 9_000;
const asNext: Request = { ttl: TTL, wait: 5_000 };

interface Pair {
  first?: Request;
  next?: Request;
  of?: string | string[];
  nextOf?: string | string[];
}

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

/** A holder, and a call of the same process that waits for it. */
async function holderAndNext({ first, next, of = 'a', nextOf = 'a' }: Pair = {}) {
  const holder = await rig.lock(of, { ttl: TTL, ...first });
  const call = rig.acquire(nextOf, { ...asNext, ...next });
  const waiting = rig.follow(call);
  await rig.settle();
  rig.forget();
  return { holder, call, waiting };
}

const asked = (): number[][] => [rig.counts('acquire'), rig.counts('extend'), rig.counts('release')];

const NONE = [0, 0, 0];
const ONCE = [1, 1, 1];

// Protocol 5.8
describe('A lock for which another call of its process waits', () => {
  it('is passed on: the next work begins before any master is asked, and one extension follows', async () => {
    const { holder, waiting } = await holderAndNext();
    rig.scriptAll(hangs);
    void holder.release();
    await rig.settle();
    const next = waiting.value!;
    expect([holder.isHeld, next.isHeld, next.attempts, next.remaining()]).toEqual([false, true, 0, next.remaining()]);
    expect(asked()).toEqual([NONE, ONCE, NONE]);
  });

  it('lasts for a whole ttl from then on, and is released by the last holder', async () => {
    const { holder, waiting } = await holderAndNext();
    const whole = holder.remaining();
    await rig.clock.advance(4);
    await rig.settle(holder.release());
    expect([waiting.value!.remaining(), rig.keys]).toEqual([whole, ONCE]);
    await rig.settle(waiting.value!.release());
    expect([asked(), rig.keys, rig.losses, rig.clock.pendingTimers]).toEqual([[NONE, ONCE, ONCE], NONE, [], 0]);
  });

  it('goes from call to call in the order of their arrival, until it was held for 5 ms', async () => {
    const holder = await rig.lock('a', { ttl: TTL });
    const turns: string[] = [];
    const take = async (lock: Lock, name: string): Promise<void> => {
      turns.push(`${name} ${lock.attempts}`);
      await rig.clock.advance(2);
      await lock.release();
    };
    const calls = ['1', '2', '3', '4', '5'].map((name) => rig.acquire('a', asNext).then((lock) => take(lock, name)));
    await rig.settle();
    await rig.settle(holder.release());
    await rig.settle(Promise.all(calls));
    expect(turns).toEqual(['1 0', '2 0', '3 0', '4 1', '5 0']);
  });

  it.each<[string, Pair]>([
    ['the next call has another ttl', { next: { ttl: TTL - 1 } }],
    ['the next call wants it shared', { next: { mode: 'shared' } }],
    ['it is shared', { first: { mode: 'shared' } }],
    ['it is a permit', { first: { permits: 1 }, next: { permits: 1 } }],
    ['the next call wants another resource, too', { nextOf: ['a', 'b'] }],
    ['it has another resource, too', { of: ['a', 'b'] }],
    ['its key outlives it', { first: { minHold: 100 } }],
  ])('is released if %s', async (_, pair) => {
    const { holder } = await holderAndNext(pair);
    void holder.release();
    await rig.settle();
    const [, extended, released] = asked();
    expect([extended, released!.some((times) => times > 0)]).toEqual([NONE, true]);
  });

  it.each<[string, (lock: Lock) => unknown]>([
    ['a fencing token was drawn', (lock) => lock.fencingToken()],
    ['its state was read', (lock) => lock.state.get()],
    ['it was held for 5 ms', () => rig.clock.advance(5)],
  ])('is released if %s', async (_, use) => {
    const { holder, waiting } = await holderAndNext();
    await use(holder);
    await rig.settle(holder.release());
    expect([asked()[2], waiting.value!.attempts > 0]).toEqual([ONCE, true]);
  });

  it('is released if a master has not answered its acquisition yet: its keys may still be set there', async () => {
    rig.masters[2]!.behaviour = only('acquire', tellsAfter(5));
    const { holder, waiting } = await holderAndNext();
    await rig.settle(holder.release());
    expect([asked()[2], waiting.value!.attempts]).toEqual([ONCE, 1]);
  });

  it('is released if the next call goes on after a shutdown', async () => {
    const settings = resolveSettings({});
    const holder = await rig.lock('a', { ttl: TTL });
    const call = { ...resolveCall(settings, asNext), outlivesShutdown: true };
    const waiting = rig.follow(rig.redlock.acquire(['a'], call));
    await rig.settle();
    await rig.settle(holder.release());
    expect(waiting.value!.attempts).toBe(1);
  });

  it('is released if little is left of its ttl', async () => {
    const { holder } = await holderAndNext({ first: { ttl: 20 }, next: { ttl: 20 } });
    await rig.clock.advance(4);
    void holder.release();
    await rig.settle();
    expect(asked()[2]).toEqual(ONCE);
  });

  it('is released if the next call was given up', async () => {
    const controller = new AbortController();
    const { holder, waiting } = await holderAndNext({ next: { signal: controller.signal } });
    controller.abort(new Error('given up'));
    await rig.settle(holder.release());
    expect([waiting.state, asked()[2], rig.keys]).toEqual(['rejected', ONCE, NONE]);
  });

  it('is released by the next call if that is given up in the same turn', async () => {
    const controller = new AbortController();
    const { holder, waiting } = await holderAndNext({ next: { signal: controller.signal } });
    const released = holder.release();
    controller.abort(new Error('given up'));
    await rig.settle(released);
    expect([waiting.state, rig.keys, rig.losses, rig.clock.pendingTimers]).toEqual(['rejected', NONE, [], 0]);
  });

  it('leaves nothing behind if the service closes in the turn in which it is passed on', async () => {
    const { holder, waiting } = await holderAndNext();
    void holder.release();
    await rig.settle(rig.redlock.close());
    expect([waiting.state, rig.keys, rig.clock.pendingTimers]).toEqual(['rejected', NONE, 0]);
  });
});

// Protocol 7.6
describe('The loss of a lock that is passed on', () => {
  it('does not follow from what the release of the next holder shows after the extension', async () => {
    const { holder, call, waiting } = await holderAndNext();
    await rig.settle(holder.release());
    expect(waiting.state).toBe('fulfilled');
    for (const { memory } of rig.masters) memory.flush();
    const next = await call;
    await next.release();
    expect([holder.loss, next.loss?.cause]).toEqual([undefined, 'gone']);
  });

  it('is told no later than by a release if the masters are silent, even if the next holder releases it meanwhile', async () => {
    const { holder, call } = await holderAndNext();
    rig.scriptAll(hangs);
    const released = rig.follow(holder.release());
    void call.then(async (lock) => {
      await rig.clock.advance(40);
      await lock.release();
    });
    await rig.clock.advance(100);
    expect([released.state, released.at]).toEqual(['fulfilled', 50]);
  });

  it('keeps the next work from beginning on it if it is known by then: the call acquires it anew', async () => {
    const { holder, waiting } = await lostBefore();
    await rig.settle(holder.release());
    expect([holder.loss?.cause, waiting.value!.isHeld, waiting.value!.attempts]).toEqual(['gone', true, 1]);
  });

  /** Masters forget the lock while its first holder works. */
  async function lostBefore() {
    const pair = await holderAndNext();
    for (const { memory } of rig.masters) memory.flush();
    return pair;
  }

  it('is told to the holder before when its release resolves, and to the next one', async () => {
    const { holder, waiting } = await lostBefore();
    rig.scriptAll(obeysAfter(1));
    const released = rig.follow(holder.release());
    await rig.settle();
    expect([waiting.value!.isHeld, released.state]).toEqual([true, 'pending']);
    await rig.clock.advance(1);
    expect([released.state, holder.loss?.cause]).toEqual(['fulfilled', 'gone']);
    const { isHeld, loss } = waiting.value!;
    expect([isHeld, loss?.cause, rig.losses.length]).toEqual([false, 'gone', 2]);
  });

  it('is told to both if the next one has released it before the masters answer', async () => {
    const { holder, call } = await lostBefore();
    rig.scriptAll(obeysAfter(1));
    const released = rig.follow(holder.release());
    const next = rig.follow(call.then((lock) => lock.release().then(() => lock.loss)));
    await rig.clock.advance(2);
    expect([released.state, holder.loss?.cause, next.value?.cause]).toEqual(['fulfilled', 'gone', 'gone']);
  });

  it('is told to the holder before if the next call is given up in the same turn', async () => {
    const controller = new AbortController();
    const { holder } = await holderAndNext({ next: { signal: controller.signal } });
    for (const { memory } of rig.masters) memory.flush();
    const released = holder.release();
    controller.abort(new Error('given up'));
    await released;
    expect([holder.loss?.cause, rig.losses.length]).toEqual(['gone', 1]);
  });
});
