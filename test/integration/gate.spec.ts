import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Keyspace } from '../../lib/settings/keyspace.js';
import type { MasterReply, MasterRequest } from '../../lib/masters/master.interface.js';
import {
  acquiring,
  ANY_CONNECTION,
  ask,
  drawing,
  extending,
  inspecting,
  picking,
  releasing,
  sharing,
} from '../support/ask.js';
import { MARKER } from '../support/guarded.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

const MAX_TTL = 60_000;
const [A, B, C, SHARED, FREE] = ['a', 'b', 'c', 'shared', 'free'].map((name) => `lock:${name}`) as [
  ...[string, string, string, string, string],
];
const TOKEN = 'f@1@x';
const PLACE = { queues: [`queue:${FREE}`], waiter: 'process', waited: 5, reserveFor: 50 };

const masters = sharedMasters(1);

let redis: Redis;
let contender: Contender;
let run: string;

beforeEach(async () => {
  redis = new Redis(masters.servers[0]!.port);
  [, run = ''] = /run_id:(\w+)/.exec(await redis.info('server'))!;
  await setGate(-1);
  contender = await Contender.on(masters.urls, { ttl: MAX_TTL, restartGuard: true, masterTimeout: 5_000 });
  for (const request of [acquiring([A], TOKEN), acquiring([B, C], TOKEN), sharing([SHARED], TOKEN)]) {
    expect(await answerTo(request)).toMatchObject({ kind: 'granted' });
  }
});

afterEach(async () => {
  await contender.close();
  redis.disconnect();
});

/** The marker is that of this run of the server, which votes so many milliseconds from now. */
async function setGate(after: number): Promise<void> {
  const [seconds] = (await redis.time()) as unknown as [string];
  await redis.hset(MARKER, { run, from: Number(seconds) * 1_000 + after });
}

function answerTo(request: MasterRequest): Promise<MasterReply> {
  return ask(contender.masters[0]!, request);
}

/** The whole `maxTtl`, less the time in which the answer came. */
function expectFullWait(answer: MasterReply): void {
  expect(answer).toMatchObject({ kind: 'quarantined', remaining: expect.any(Number) });
  expect((answer as { remaining: number }).remaining).toBeGreaterThan(MAX_TTL - 1_000);
}

/** Everything that is stored, except for the times that are left. */
async function contents(): Promise<unknown> {
  const names = (await redis.keys('*')).sort();
  return Promise.all(names.map(async (name) => [name, await redis.dump(name)]));
}

const GIVING: readonly (readonly [string, MasterRequest])[] = [
  ['an acquisition', acquiring([FREE], TOKEN)],
  ['an acquisition that would wait', acquiring([A], 'other', { queue: { ...PLACE, queues: [`queue:${A}`] } })],
  ['an acquisition of several keys', acquiring([FREE, 'lock:free too'], TOKEN)],
  ['a shared acquisition', sharing([FREE], TOKEN)],
  ['a shared acquisition that would wait', sharing([A], TOKEN, { queue: { ...PLACE, queues: [`queue:${A}`] } })],
  ['a permit', picking([A, FREE], TOKEN)],
  ['an extension', extending([A], TOKEN)],
  ['an extension of several keys', extending([B, C], TOKEN)],
  ['a shared extension', { ...extending([SHARED], TOKEN), isShared: true }],
  ['a shared extension that heals', { ...extending([SHARED], TOKEN), isShared: true, heals: true }],
  ['a draw', drawing([A], TOKEN)],
  ['a repeated draw', drawing([A], TOKEN, { isFirst: false, atLeast: 7 })],
  ['a probe', { op: 'probe', keys: [new Keyspace('lock:').probe] }],
];

const TAKING: readonly (readonly [string, MasterRequest, 'gone'?])[] = [
  ['a release', releasing([A], TOKEN)],
  ['a release that keeps the key for a while', releasing([A], TOKEN, 5_000)],
  ['a release of several keys', releasing([B, C], TOKEN)],
  ['a shared release', { ...releasing([SHARED], TOKEN), isShared: true }],
  ['a shared release of several keys', { ...releasing([SHARED, FREE], TOKEN), isShared: true }, 'gone'],
  ['an end of a wait', { op: 'leave', keys: [FREE], queues: PLACE.queues, waiter: 'process' }],
  ['an inspection', inspecting(FREE)],
  ['a writer key', { op: 'defer-readers', keys: [FREE], writerKeys: ['lock:writer'], waiter: 'process', waited: 5 }],
];

// Protocol 8.2
describe('While a server waits', () => {
  it.each(GIVING)('%s is refused, and changes nothing', async (_, request) => {
    await setGate(MAX_TTL);
    const before = await contents();
    const answer = await answerTo(request);
    expect(answer).toMatchObject({ kind: 'quarantined', reason: expect.stringMatching(/^waits \d+\.\d s /) });
    const { remaining } = answer as { remaining: number };
    expect(remaining).toBeGreaterThan(MAX_TTL - 10_000);
    expect(remaining).toBeLessThanOrEqual(MAX_TTL);
    expect(await contents()).toEqual(before);
  });

  // Protocol 8.3
  it.each(TAKING.map(([title, request, kind = 'granted']) => ({ title, request, kind })))(
    '$title is carried out',
    async ({ request, kind }) => {
      await setGate(MAX_TTL);
      expect(await answerTo(request)).toMatchObject({ kind });
    },
  );

  it('the requests of one turn are each judged alone', async () => {
    await setGate(MAX_TTL);
    const mixed = [
      ...[inspecting(A), releasing([A], TOKEN), acquiring([A], 'other'), releasing([B, C], TOKEN)],
      ...[extending([SHARED], TOKEN), acquiring([FREE], 'other'), inspecting(FREE)],
    ];
    const answers = await Promise.all(mixed.map(answerTo));
    expect(answers.map(({ kind }) => kind)).toEqual([
      ...['held', 'granted', 'quarantined', 'granted'],
      ...['quarantined', 'quarantined', 'granted'],
    ]);
    expect(await redis.exists(A, B, C, FREE)).toBe(0);
  });
});

describe('A server without a marker', () => {
  it.each(GIVING)('gets one by the first %s, for the time of this process, and waits', async (_, request) => {
    await redis.del(MARKER);
    const before = await contents();
    expectFullWait(await answerTo(request));
    const { from, ...marker } = await redis.hgetall(MARKER);
    expect(marker).toEqual({ run });
    expect(Math.abs(Number(from) - Date.now() - MAX_TTL)).toBeLessThan(30_000);
    expect(await redis.pttl(MARKER)).toBe(-1);
    await redis.del(MARKER);
    expect(await contents()).toEqual(before);
  });

  it.each(TAKING)('gets none by %s', async (...[, request]) => {
    await redis.del(MARKER);
    await answerTo(request);
    expect(await redis.exists(MARKER)).toBe(0);
  });

  it('gets one also where a marker lacks its moment', async () => {
    await redis.hdel(MARKER, 'from');
    expectFullWait(await answerTo(acquiring([FREE], TOKEN)));
    expect(Object.keys(await redis.hgetall(MARKER)).sort()).toEqual(['from', 'run']);
  });
});

it('A server that votes grants what was refused, and leaves the marker as it is', async () => {
  const before = await redis.hgetall(MARKER);
  for (const [, request] of GIVING) {
    const answer = await answerTo(request);
    expect(answer.kind).toMatch(/^(?:granted|held)$/);
  }
  expect(await redis.hgetall(MARKER)).toEqual(before);
});

describe('A server whose marker has been written anew since a holder opened the state', () => {
  const ENTRY = `state:${A}`;
  const LIFE = 172_800_000;
  let earlier: string;
  let present: string;

  const markerNow = async (): Promise<string> => `${run}-${(await redis.hget(MARKER, 'from')) ?? ''}`;
  const opening = (marker: string, number: number): MasterRequest => ({
    ...{ op: 'open-state', keys: [A], entry: ENTRY, token: TOKEN, marker, since: ANY_CONNECTION, number, life: LIFE },
  });
  const writing = (marker: string): MasterRequest => ({
    ...{ op: 'write-state', keys: [A], entry: ENTRY, token: TOKEN, marker, since: ANY_CONNECTION, life: LIFE },
    ...{ version: { number: 1, sequence: 0 }, json: '1' },
  });

  beforeEach(async () => {
    earlier = await markerNow();
    expect(await answerTo(opening(earlier, 1))).toMatchObject({ kind: 'granted' });
    await setGate(-30_000);
    present = await markerNow();
  });

  // Protocol 10.4
  it.each([
    ['write', writing],
    ['opening', (marker: string) => opening(marker, 2)],
  ])('refuses the %s of that holder, although the key is still its own, and changes nothing', async (_, request) => {
    const before = await contents();
    expect(await answerTo(request(earlier))).toMatchObject({
      kind: 'quarantined',
      reason: expect.stringContaining('its data has changed'),
    });
    expect(await contents()).toEqual(before);
    expect(await answerTo(request(present))).toMatchObject({ kind: 'granted' });
  });
});
