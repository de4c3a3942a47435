import { describe, expect, it } from '@jest/globals';
import { refusalFrom, tell } from '../../../lib/redis/replies.js';

const because = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });

describe('What a server says', () => {
  it.each([
    ["ERR unknown command 'auth', with args beginning with: 'user' 'hunter2' ", []],
    ['ERR unknown command `SET`, with args beginning with: `k`, `hunter2`, ', []],
    ['WRONGPASS invalid password hunter2', ['hunter2']],
    ['ERR first line\r\nhunter2', []],
    ["NOPERM User hunter2 has no permissions to run the 'set' command", []],
    ['NOPERM User a hunter2 b has no permissions to access the key', []],
    ['ERR abchunter2', ['abc', 'abchunter2']],
    [`ERR ${'x'.repeat(195)}hunter2`, ['hunter2']],
  ])('is told without its secrets: %s', (message, secrets) => {
    expect(tell(because(message), secrets)).not.toMatch(/hunt/);
    expect(JSON.stringify(refusalFrom(because(message), secrets))).not.toMatch(/hunt/);
  });

  it('keeps its code and its reason', () => {
    const error = because("NOPERM User app has no permissions to run the 'set' command");
    expect(refusalFrom(error, [])).toEqual({
      kind: 'refused',
      code: 'NOPERM',
      reason: "This user has no permissions to run the 'set' command",
    });
  });
});
