import { describe, expect, it } from '@jest/globals';
import { MAX_CHARACTERS, MAX_NAMES } from '../../../lib/settings/resources.js';
import { redactedMessageOf, refusalFrom, replyFrom } from '../../../lib/redis/replies.js';
import { isPlain, RequestEncoder } from '../../../lib/redis/request-encoding.js';
import { type PendingRequest, RequestQueue } from '../../../lib/redis/request-queue.js';
import { acquiring, writerKeysOf, extending, picking, sharing } from '../../support/ask.js';
import { TestClock } from '../support/test-clock.js';

const QUEUE = { queues: ['queue of a'], waiter: 'me', waited: 12.3, reserveFor: 50 };
const acquisition = acquiring(['a'], 'secret', { ttl: 999.5, queue: QUEUE });
const release = {
  op: 'release',
  keys: ['a'],
  queues: ['queue of a'],
  token: 'secret',
  keepFor: 0,
  ttl: 1_000,
} as const;

describe('One request of the usual kind', () => {
  it('is sent as a list of arguments, which a server need not parse', () => {
    const encoder = new RequestEncoder();
    expect(encoder.encode([acquisition], true)).toEqual([
      'take',
      'a',
      'secret',
      '1000',
      'queue of a',
      'me',
      '13',
      '50',
    ]);
    expect(encoder.encode([release], true)).toEqual(['give', 'a', 'secret', 'queue of a']);
  });

  it('has no place in a queue if this process would not be notified', () =>
    expect(new RequestEncoder().encode([acquisition], false)).toEqual(['take', 'a', 'secret', '1000']));
});

describe('Any other requests', () => {
  const decoded = (parts: readonly string[]): unknown => {
    expect(parts).toHaveLength(1);
    return JSON.parse(parts[0]!);
  };

  it('are sent as one JSON text', () => {
    const encoder = new RequestEncoder();
    expect(decoded(encoder.encode([extending(['a', 'b'], 'secret', 5)], true))).toEqual([
      ['extend', ['a', 'b'], 'secret', '5', 0, 0],
    ]);
    expect(decoded(encoder.encode([acquisition, release], true))).toEqual([
      ['take', 'a', 'secret', '1000', 'queue of a', 'me', '13', '50'],
      ['give', 'a', 'secret', 'queue of a'],
    ]);
    const pair = acquiring(['a', 'b'], 'secret', { ttl: 5, queue: QUEUE });
    expect(decoded(encoder.encode([pair], true))).toEqual([
      ['acquire', ['a', 'b'], 'secret', '5', false, 12, ['queue of a'], 'me', 50],
    ]);
  });
});

describe('A request for shared keys', () => {
  const encoded = (...requests: Parameters<RequestEncoder['encode']>[0]): unknown =>
    JSON.parse(new RequestEncoder().encode(requests, true)[0]!);
  const shared = sharing(['a'], 'secret', { ttl: 999.5, waited: 12.3, queue: QUEUE });

  it('is never sent as one for an exclusive key', () => {
    expect(encoded(shared)).toEqual([
      ['acquire', ['a'], 'secret', '1000', writerKeysOf(['a']), 12, ['queue of a'], 'me', 50],
    ]);
    const released = new RequestEncoder().encode([{ ...release, isShared: true }], true);
    expect(released).toEqual(['part', 'a', 'secret', 'queue of a']);
    expect(encoded({ ...extending(['a'], 'secret', 5), isShared: true })).toEqual([
      ['extend', ['a'], 'secret', '5', 0, 1],
    ]);
    expect([isPlain(sharing(['a'], 'secret')), isPlain(acquiring(['a'], 'secret'))]).toEqual([false, true]);
  });

  it('has no place in a queue if this process would not be notified', () => {
    const writerKey = writerKeysOf(['a'])[0];
    expect(new RequestEncoder().encode([shared], false)).toEqual(['join', 'a', 'secret', '1000', writerKey, '13']);
  });

  it('leaves the queue as the waiter that it is', () => {
    const leave = { op: 'leave', keys: ['a'], queues: ['queue of a'], waiter: 'me' } as const;
    expect(encoded(leave, { ...leave, isShared: true })).toEqual([
      ['leave', ['a'], 'me', ['queue of a'], 0],
      ['leave', ['a'], 'me', ['queue of a'], 1],
    ]);
  });

  it('is kept waiting by a writer key that is named like the key', () => {
    const want = {
      op: 'defer-readers',
      keys: ['a'],
      writerKeys: writerKeysOf(['a']),
      waiter: 'me',
      waited: 12.3,
    } as const;
    expect(encoded(want)).toEqual([['defer_readers', writerKeysOf(['a']), 'me', 12]]);
  });
});

it('A request for one of several keys names the keys in the order in which to try them, and is never a plain SET', () => {
  const request = picking(['b', 'a'], 'secret', { ttl: 5, queue: QUEUE });
  const [text = ''] = new RequestEncoder().encode([request], true);
  expect(JSON.parse(text)).toEqual([['pick', ['b', 'a'], 'secret', '5', ['queue of a'], 'me', 12, 50]]);
  expect(isPlain(picking(['a'], 'secret'))).toBe(false);
});

const nothing = (): void => undefined;

/** A queue, and the number of keys of each request in each command that it has sent. */
function rig() {
  const clock = new TestClock();
  const sent: number[][] = [];
  const send = (asked: readonly PendingRequest[]) => sent.push(asked.map(({ request }) => request.keys.length));
  const connection = { greetedIn: 0, problem: undefined, reopen: nothing };
  const queue = new RequestQueue({ clock, isAlone: false, settings: { masterTimeout: 50 }, connection, send });
  const add = (...keys: string[]) => queue.add({ request: { op: 'inspect', keys }, reply: nothing });
  const addKeys = (count: number, length = 1) => add(...Array.from({ length: count }, () => 'x'.repeat(length)));
  /** The next requests are gathered: one is under way. */
  addKeys(1);
  sent.length = 0;
  const probe = () => queue.add({ request: { op: 'probe', keys: ['p'] }, reply: nothing });
  return { clock, sent, addKeys, probe };
}

// Protocol 4.8
describe('Requests of one turn', () => {
  it('share a command as long as they have no more keys than one request may have', async () => {
    const { clock, sent, addKeys } = rig();
    addKeys(MAX_NAMES - 1);
    addKeys(1);
    addKeys(1);
    await clock.settle();
    expect(sent).toEqual([[MAX_NAMES - 1, 1], [1]]);
  });

  it('share a command as long as their keys have no more characters than those of one request may have', async () => {
    const { clock, sent, addKeys } = rig();
    addKeys(1, MAX_CHARACTERS - 1);
    addKeys(1);
    addKeys(1);
    await clock.settle();
    expect(sent).toEqual([[1, 1], [1]]);
  });

  it('are sent at once when there are 128, and nothing is sent after them', async () => {
    const { clock, sent, addKeys } = rig();
    for (let i = 0; i < 127; i++) addKeys(1);
    expect(sent).toEqual([]);
    addKeys(1);
    await clock.settle();
    expect(sent).toEqual([Array.from({ length: 128 }, () => 1)]);
  });

  it('do not share a command with a probe, and keep their order', async () => {
    const { clock, sent, addKeys, probe } = rig();
    addKeys(2);
    addKeys(3);
    probe();
    addKeys(4);
    addKeys(5);
    await clock.settle();
    expect(sent).toEqual([[2, 3], [1], [4, 5]]);
  });
});

const because = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });

describe('An error reply of a server', () => {
  it.each([
    ["ERR unknown command 'auth', with args beginning with: 'user' 'hunter2' ", []],
    ['ERR unknown command `SET`, with args beginning with: `k`, `hunter2`, ', []],
    ['WRONGPASS invalid password hunter2', ['hunter2']],
    ['ERR first line\r\nhunter2', []],
    ["NOPERM User hunter2 has no permissions to run the 'set' command", []],
    ['NOPERM User a hunter2 b has no permissions to access the key', []],
    ['ERR abchunter2', ['abc', 'abchunter2']],
    [`ERR ${'x'.repeat(195)}hunter2`, ['hunter2']],
  ])('is shown without its secrets: %s', (message, secrets) => {
    expect(redactedMessageOf(because(message), secrets)).not.toMatch(/hunt/);
    expect(JSON.stringify(refusalFrom(because(message), secrets))).not.toMatch(/hunt/);
  });

  it.each(['user', 'a', 'script'])('names a missing permission whatever the password is: %s', (password) => {
    const message = "ERR The user executing the script can't run this command or subcommand";
    expect(refusalFrom(because(message), [password])).toEqual({
      ...{ kind: 'refused', code: 'NOPERM' },
      reason: "The user executing the script can't run this command or subcommand",
    });
  });

  it('keeps its code and its reason', () => {
    const error = because("NOPERM User app has no permissions to run the 'set' command");
    expect(refusalFrom(error, [])).toEqual({
      kind: 'refused',
      code: 'NOPERM',
      reason: "this user has no permissions to run the 'set' command",
    });
  });

  const SHA1 = 'db8d8f6383e1a67ce23db65efd679a334c123806';
  it.each([
    [
      'Redis 7.0',
      `ERR The user executing the script can't run this command or subcommand script: ${SHA1}, on @user_script:1.`,
      "The user executing the script can't run this command or subcommand",
    ],
    [
      'Redis 8.0 and Valkey 8.1',
      `ERR ACL failure in script: User app has no permissions to run the 'set' command script: ${SHA1}, on @user_script:1.`,
      "this user has no permissions to run the 'set' command",
    ],
    [
      'Redis 8.0 and Valkey 8.1, for a key',
      `ERR ACL failure in script: No permissions to access a key script: ${SHA1}, on @user_script:1.`,
      'No permissions to access a key',
    ],
    [
      'Valkey 9.1',
      'ERR ACL failure in script: No permissions to access a key script: on @user_script:1.',
      'No permissions to access a key',
    ],
  ])('has the code NOPERM for a permission that a script lacks, in the wording of %s', (_, message, reason) =>
    expect(refusalFrom(because(message), [])).toEqual({ kind: 'refused', code: 'NOPERM', reason }),
  );

  it.each([
    ['Redis', `OOM command not allowed when used memory > 'maxmemory'. script: ${SHA1}, on @user_script:1.`],
    ['Valkey 9.1', "OOM command not allowed when used memory > 'maxmemory'. script: on @user_script:1."],
  ])('omits the place in the script, in the wording of %s', (_, message) => {
    expect(refusalFrom(because(message), [])).toEqual({
      kind: 'refused',
      code: 'OOM',
      reason: "command not allowed when used memory > 'maxmemory'.",
    });
  });
});

it.each([
  ['held 1500 +3', { kind: 'held', remaining: 1_500, sharedBy: 3 }],
  ['held 0 +0', { kind: 'held', remaining: 0, sharedBy: 0 }],
  ['held 1500 2+3', { kind: 'held', remaining: 1_500, waiting: 2, sharedBy: 3 }],
  ['held 1500 2', { kind: 'held', remaining: 1_500, waiting: 2 }],
  ['held -1 ', { kind: 'held', remaining: undefined }],
  ['picked 12', { kind: 'granted', picked: 12 }],
  ['picked 0!', { kind: 'granted', picked: 0, hasWaiters: true }],
  ['drawn 7', { kind: 'granted', fence: 7 }],
  ['quarantined 9800', { kind: 'quarantined', reason: '', remaining: 9_800 }],
])('The answer of a script %s is understood', (reply, answer) => expect(replyFrom(reply)).toEqual(answer));
