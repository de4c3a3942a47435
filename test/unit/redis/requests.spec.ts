import { describe, expect, it } from '@jest/globals';
import { MAX_CHARACTERS, MAX_NAMES } from '../../../lib/settings/resources.js';
import { redactedMessageOf, refusalFrom } from '../../../lib/redis/replies.js';
import { RequestEncoder } from '../../../lib/redis/request-encoding.js';
import { type PendingRequest, RequestQueue } from '../../../lib/redis/request-queue.js';
import { acquiring, writerKeysOf, sharing } from '../../support/ask.js';
import { TestClock } from '../support/test-clock.js';

const QUEUE = { queues: ['queue of a'], waiter: 'me', waited: 12.3, reserveFor: 50 };
const acquisition = acquiring(['a'], 'secret', { ttl: 999.5, queue: QUEUE });

it('A request of the usual kind is sent as a list of arguments, without a place in a queue where nothing would notify', () => {
  const sent = (...asked: Parameters<RequestEncoder['encode']>): readonly string[] =>
    new RequestEncoder().encode(...asked);
  const listening = ['take', 'a', 'secret', '1000', 'queue of a', 'me', '13', '50'];
  expect(sent([acquisition], true)).toEqual(listening);
  expect(sent([acquisition], false)).toEqual(listening.slice(0, 4));
  const shared = sharing(['a'], 'secret', { ttl: 999.5, waited: 12.3, queue: QUEUE });
  expect(sent([shared], false)).toEqual(['join', 'a', 'secret', '1000', writerKeysOf(['a'])[0], '13']);
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
