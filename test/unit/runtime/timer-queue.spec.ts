import { beforeEach, describe, expect, it } from '@jest/globals';
import { fc } from '../../support/properties.js';
import type { Timer } from '../../../lib/core/clock.js';
import { TimerQueue } from '../../../lib/runtime/timer-queue.js';

describe('A queue of timers', () => {
  let queue: TimerQueue;
  let kept: boolean[];
  let ran: string[];

  beforeEach(() => {
    kept = [];
    ran = [];
    queue = new TimerQueue((keepsAlive) => kept.push(keepsAlive));
  });

  const add = (due: number, name = String(due)): Timer => queue.add(due, () => ran.push(name));

  it('runs due timers in the order of their time, and then of their creation', () => {
    for (const [due, name] of [
      [7, 'c'],
      [3, 'a'],
      [7, 'd'],
      [5, 'b'],
      [9, 'e'],
    ] as const)
      add(due, name);
    queue.run(2);
    expect(ran).toEqual([]);
    queue.run(7);
    expect(ran).toEqual(['a', 'b', 'c', 'd']);
    expect(queue.nextDue).toBe(9);
  });

  it('forgets cancelled timers, wherever they stand', () => {
    const timers = ['first', 'middle', 'last', 'kept'].map((name) => add(3, name));
    for (const i of [1, 0, 2]) timers[i]!.cancel();
    timers[1]!.cancel();
    queue.run(3);
    expect(ran).toEqual(['kept']);
    expect(queue.nextDue).toBeUndefined();
  });

  it('reports whether any of its timers keeps the process alive', () => {
    const timer = add(1);
    const other = add(2);
    other.unref();
    other.unref();
    expect(kept).toEqual([true]);
    timer.cancel();
    expect([kept, queue.keepsAlive]).toEqual([[true, false], false]);
    other.cancel();
    add(3);
    queue.run(3);
    expect([kept, queue.keepsAlive]).toEqual([[true, false, true, false], false]);
  });

  it('lets a callback cancel and add timers, including timers that are due now', () => {
    const victim = add(5, 'victim');
    queue.add(4, () => {
      victim.cancel();
      add(4, 'added');
    });
    queue.run(5);
    expect(ran).toEqual(['added']);
  });

  it('continues after a callback that throws', () => {
    queue.add(1, () => {
      throw new Error('from a callback');
    });
    add(2);
    expect(() => queue.run(2)).toThrow('from a callback');
    queue.run(2);
    expect(ran).toEqual(['2']);
  });

  it('does what a sorted list does', () => {
    const action = fc.record({ due: fc.nat(40), cancel: fc.option(fc.nat(60)), until: fc.option(fc.nat(40)) });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
        const queue = new TimerQueue(() => undefined);
        const pending: { id: number; due: number; timer: Timer }[] = [];
        const ran: number[] = [];
        const expected: number[] = [];
        actions.forEach(({ due, cancel, until }, id) => {
          pending.push({ id, due, timer: queue.add(due, () => ran.push(id)) });
          const victim = pending.findIndex((timer) => timer.id === cancel);
          if (victim >= 0) pending.splice(victim, 1)[0]!.timer.cancel();
          if (until === null) return;
          queue.run(until);
          const over = pending.filter((timer) => timer.due <= until).sort((a, b) => a.due - b.due || a.id - b.id);
          expected.push(...over.map((timer) => timer.id));
          for (const timer of over) pending.splice(pending.indexOf(timer), 1);
        });
        expect(ran).toEqual(expected);
        expect(queue.nextDue).toBe(pending.length === 0 ? undefined : Math.min(...pending.map(({ due }) => due)));
        expect(queue.keepsAlive).toBe(pending.length > 0);
      }),
    );
  });
});
