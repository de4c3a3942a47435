import { describe, expect, it } from '@jest/globals';
import { type CHECKS, type InstanceRecord, judge, problemOf, type Reply, type Story } from '../../soak/checks.js';
import type { SoakEvent } from '../../soak/trace.js';

const EPOCH = 1_800_000_000_000;
const ENDS = 'each process ends by itself, and leaves nothing';

const granted = (at: number): SoakEvent => {
  return { kind: 'granted', section: `a.${at}`, keys: ['a'], mode: 'exclusive', asked: at, at, until: at };
};
const ran = (second: number): SoakEvent[] =>
  (['start', 'end'] as const).map((event, index) => ({
    ...{ kind: 'tick', job: 'mail', event, tick: EPOCH + 1_000 * second, attempt: 1, at: 1_000 * second + 100 * index },
  }));
const closed = (...left: string[]): SoakEvent => ({ kind: 'closed', at: 9_000, left });
const process = (more: Partial<InstanceRecord>): InstanceRecord => {
  return { name: 'c', events: [closed()], toldAt: 8_900, exit: 0, ...more };
};
const reply = (change: Partial<Reply>): Reply => ({
  ...{ request: 'POST /orders/1', instance: 'a', asked: 50, at: 100, status: 201, ...change },
});
const heap = Array.from({ length: 100 }, (_, i): SoakEvent => {
  return { kind: 'heap', at: 6_000 * i, bytes: 1e6 + 24_000 * i + 1e3 * (i % 3) };
});

/** A process that runs five of six ticks, because there is no Redis in the third one, and another process. */
function story(change: Partial<Story> = {}, other = process({})): Story {
  const events = [granted(10), granted(3_100), ...[0, 1, 3, 4, 5].flatMap(ran), closed()];
  return {
    ...{ instances: [process({ name: 'a', events }), other], outages: [{ from: 1_500, to: 2_900 }], slow: [] },
    ...{ epoch: EPOCH, ticks: [EPOCH - 500, EPOCH + 5_500], replies: [reply({ status: 423, retryAfter: '1' })] },
    ...{ stock: [], ledger: [], confirmed: { sales: [], invoices: ['z'] }, charged: ['z'], ...change },
  };
}

/** What the checks say that have looked at something. Those of sections, elections and sales are tested with the torture. */
const problemsOf = (told: Story): unknown =>
  Object.fromEntries(
    judge(told).flatMap(([name, { problems, seen }]) => (problems.length > 0 && seen > 0 ? [[name, problems]] : [])),
  );

describe('The checks of the soak', () => {
  it.each<[string, keyof typeof CHECKS, Story, RegExp]>([
    [
      'a lost tick',
      'no tick lost or run twice',
      story({ outages: [{ from: 3_050, to: 3_060 }] }),
      /:02\.000Z never ran/,
    ],
    ['a lost invoice', 'no invoice lost', story({ charged: [] }), /invoice z/],
    [
      'an answer of 500',
      'no error to a client but 423 and 503 with Retry-After',
      story({ replies: [reply({ status: 500 })] }),
      /500/,
    ],
    [
      'a Redis that answers, and no lock',
      'locks again after each outage',
      story({ outages: [{ from: 1_500, to: 5_000 }] }),
      /Infinity ms/,
    ],
    [
      'an unhandled rejection',
      'no unhandled rejection, exception or warning',
      story({}, process({ events: [{ kind: 'unhandled', at: 1, message: 'Error: oh' }, closed()] })),
      /c: Error: oh/,
    ],
    ['a process that hangs', ENDS, story({}, process({ exit: 'hung' })), /c ended with hung/],
    ['a timer', ENDS, story({}, process({ events: [closed('Timeout')] })), /Timeout/],
    [
      'a heap that grows',
      'heap flat',
      story({}, process({ events: [...heap, closed()] })),
      /heap of c grows by 4\d\d\d b/,
    ],
  ])('notice %s', (_, check, told, problem) =>
    expect(problemsOf(told)).toEqual({ [check]: [expect.stringMatching(problem)] }),
  );

  it('show nothing where nothing was looked at', () => {
    const told = story({ replies: [], confirmed: { sales: [], invoices: [] }, outages: [], instances: [] });
    expect(judge(told).filter(([, { problems }]) => problems.length > 0)).toHaveLength(9);
  });

  it('accept an outage of the process that was killed, and of no other', () => {
    const cut = reply({ status: undefined, error: 'socket hang up' });
    expect(problemOf(cut, 99)).toBeUndefined();
    expect(problemOf(cut, 101)).toMatch(/got no answer: socket hang up/);
    expect(problemOf(reply({ status: 503 }))).toMatch(/got 503, Retry-After undefined/);
  });
});
