import { describe, expect, it } from '@jest/globals';
import { refusalFrom, redactedMessageOf, replyFrom } from '../../../lib/redis/replies.js';

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
  ])('has the code NOPERM for a permission that a script lacks, in the wording of %s', (_, message, reason) => {
    expect(refusalFrom(because(message), [])).toEqual({ kind: 'refused', code: 'NOPERM', reason });
  });

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

describe('The answer of a script', () => {
  it.each([
    ['1500 +3', { kind: 'held', remaining: 1_500, sharedBy: 3 }],
    ['0 +0', { kind: 'held', remaining: 0, sharedBy: 0 }],
    ['1500 2+3', { kind: 'held', remaining: 1_500, waiting: 2, sharedBy: 3 }],
    ['1500 2', { kind: 'held', remaining: 1_500, waiting: 2 }],
    ['-1 ', { kind: 'held', remaining: undefined }],
    ['-8 12', { kind: 'granted', picked: 12 }],
    ['-8 0!', { kind: 'granted', picked: 0, hasWaiters: true }],
    ['-2 7', { kind: 'granted', fence: 7 }],
  ])('%s is understood', (reply, answer) => {
    expect(replyFrom(reply)).toEqual(answer);
  });
});
