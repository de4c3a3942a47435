import { describe, expect, it } from '@jest/globals';
import { type CHECKS, type InstanceRecord, judge, problemOf, type Reply, type Story } from '../../soak/checks.js';
import type { SoakEvent, TickEvent } from '../../soak/trace.js';

const EPOCH = 1_800_000_000_000;
type Check = keyof typeof CHECKS;

const held = (section: string, key: string, from: number, to: number): SoakEvent[] => [
  { kind: 'granted', section, keys: [key], mode: 'exclusive', asked: from, at: from, until: from },
  { kind: 'looked', section, at: to, until: to },
];
const tick = (event: TickEvent['event'], second: number, at: number, attempt = 1): SoakEvent => ({
  ...{ kind: 'tick', job: 'mail', event, tick: EPOCH + 1_000 * second, attempt, at },
});
const ran = (second: number, attempt = 1, at = 1_000 * second): SoakEvent[] => [
  tick('start', second, at, attempt),
  tick('end', second, at + 100, attempt),
];
const elected = (term: number, at: number): SoakEvent => ({ kind: 'election', line: { event: 'elected', term, at } });
const leads = (term: number, before: number): SoakEvent => ({
  ...{ kind: 'election', line: { event: 'leads', term, before, after: before + 1 } },
});
const closed = (...left: string[]): SoakEvent => ({ kind: 'closed', at: 9_000, left });
const ended = (name: string, ...events: (SoakEvent | SoakEvent[])[]): InstanceRecord => ({
  ...{ name, events: [...events.flat(), closed()], toldAt: 8_900, exit: 0 },
});
const reply = (change: Partial<Reply>): Reply => ({
  ...{ request: 'POST /orders/1', instance: 'a', asked: 50, at: 100, status: 201, ...change },
});
const heapOf = (growth: number): SoakEvent[] =>
  Array.from({ length: 100 }, (_, i) => ({ kind: 'heap', at: 6_000 * i, bytes: 1e6 + 6 * i * growth + 1e3 * (i % 3) }));

/** Two instances and six ticks, without Redis in the second and third one. */
function story(change: Partial<Story> = {}, a: SoakEvent[] = [], b: SoakEvent[] = []): Story {
  return {
    instances: [
      ended(
        'a',
        held('a.1', 'order:1', 10, 20),
        ran(0),
        ran(1, 1, 1_000),
        [elected(1, 5), leads(1, 6), leads(1, 30)],
        a,
      ),
      ended('b', held('b.1', 'order:1', 20, 30), held('b.2', 'order:1', 3_100, 3_110), ran(3), ran(4), ran(5), b),
    ],
    outages: [{ from: 1_500, to: 2_900 }],
    slow: [],
    epoch: EPOCH,
    ticks: [EPOCH - 500, EPOCH + 6_500],
    replies: [reply({}), reply({ status: 423, retryAfter: '1' }), reply({ status: 503, retryAfter: '2' })],
    stock: [{ item: '1', count: 2 }],
    ledger: [
      { item: '1', version: 1, token: '7', base: 0, request: 'x' },
      { item: '1', version: 2, token: '8', base: 1, request: 'y' },
    ],
    confirmed: { sales: ['x'], invoices: ['z'] },
    charged: ['z'],
    ...change,
  };
}

const problemsOf = (told: Story): Partial<Record<Check, readonly string[]>> =>
  Object.fromEntries(judge(told).flatMap(([name, { problems }]) => (problems.length > 0 ? [[name, problems]] : [])));
const killed = (name: string, killedAt: number, ...events: (SoakEvent | SoakEvent[])[]): InstanceRecord => ({
  ...{ name, killedAt, events: events.flat(), exit: 'SIGKILL' },
});
const withInstance = (instance: InstanceRecord, told = story()): Story => ({
  ...{ ...told, instances: [...told.instances, instance] },
});

describe('The checks of the soak', () => {
  it('find nothing in a run without a fault, and miss no tick that was due while no process could lock', () => {
    expect(problemsOf(story())).toEqual({});
  });

  it.each<[string, Check, Story, RegExp]>([
    [
      'two holders',
      'no two holders of one key at a time',
      story({}, held('a.2', 'order:1', 25, 28)),
      /b\.1.* and a\.2/,
    ],
    [
      'a lost tick',
      'no tick lost or run twice',
      story({ outages: [{ from: 3_050, to: 3_060 }] }),
      /:02\.000Z never ran/,
    ],
    ['a tick of two instances', 'no tick lost or run twice', story({}, ran(4)), /ran again although/],
    ['a tick that ran again', 'no tick lost or run twice', story({}, ran(4, 2, 4_200)), /ran again although/],
    [
      'a tick that never ended',
      'no tick lost or run twice',
      story({ ticks: [EPOCH - 500, EPOCH + 7_500] }, [tick('start', 6, 6_050)]),
      /has not ended/,
    ],
    [
      'two leaders',
      'no two leaders, and growing terms',
      story({}, [], [elected(2, 20), leads(2, 21), leads(2, 25)]),
      /two leaders/,
    ],
    ['a term that does not grow', 'no two leaders, and growing terms', story({}, [], [elected(1, 40)]), /not larger/],
    ['a lost update', 'no lost update', story({ stock: [{ item: '1', count: 1 }] }), /1 lost updates/],
    [
      'a confirmed sale without a row',
      'no lost update',
      story({ confirmed: { sales: ['v'], invoices: ['z'] } }),
      /sale v/,
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
      story({}, [{ kind: 'unhandled', at: 1, message: 'Error: oh' }]),
      /a: Error: oh/,
    ],
    [
      'a process that hangs',
      'each process ends by itself, and leaves nothing',
      withInstance({ name: 'c', events: [], toldAt: 1, exit: 'hung' }),
      /c ended with hung/,
    ],
    [
      'an exit code',
      'each process ends by itself, and leaves nothing',
      withInstance({ ...ended('c'), exit: 1 }),
      /c ended with 1/,
    ],
    [
      'a timer',
      'each process ends by itself, and leaves nothing',
      withInstance({ ...ended('c'), events: [closed('Timeout')] }),
      /Timeout/,
    ],
    ['a heap that grows', 'heap flat', story({}, heapOf(4_000)), /heap of a grows by 4\d\d\d bytes/],
  ])('notice %s', (_, check, told, problem) => {
    const found = problemsOf(told);
    expect(Object.keys(found)).toEqual([check]);
    expect(found[check]).toEqual([expect.stringMatching(problem)]);
  });

  it('accept a heap that has grown, and does no more', () => {
    expect(problemsOf(story({}, heapOf(0)))).toEqual({});
  });

  it('show nothing where nothing was looked at', () => {
    const empty = { replies: [], ledger: [], stock: [], confirmed: { sales: [], invoices: [] }, outages: [] };
    const found = problemsOf({ ...story(empty), instances: [] });
    expect(Object.keys(found)).toHaveLength(9);
  });

  it.each<[string, Story]>([
    ['whose process was killed', withInstance(killed('c', 4_050, tick('start', 4, 4_010)), story({}, [], []))],
    [
      'that was handed on at the end of its process',
      withInstance({ ...ended('c', tick('start', 4, 4_010), tick('aborted', 4, 4_030)), toldAt: 4_020 }),
    ],
  ])('accept a tick that runs again %s', (_, told) => {
    const [a, b, c] = told.instances;
    const again = b!.events.map((event) =>
      event.kind === 'tick' && event.tick === EPOCH + 4_000 ? { ...event, attempt: 2 } : event,
    );
    expect(problemsOf({ ...told, instances: [a!, { ...b!, events: again }, c!] })).toEqual({});
  });

  it('accept an outage of the process that was killed, and of no other', () => {
    const cut = reply({ status: undefined, error: 'socket hang up' });
    expect(problemOf(cut, 99)).toBeUndefined();
    expect(problemOf(cut, 101)).toMatch(/got no answer: socket hang up/);
    expect(problemOf(cut)).toMatch(/socket hang up/);
    expect(problemOf(reply({ status: 503 }))).toMatch(/got 503, Retry-After undefined/);
  });
});
