import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import {
  LockLostError,
  LockNotAcquiredError,
  LockReentryError,
  QuorumUnavailableError,
  RedlockConfigError,
} from '../../../lib/core/errors.js';
import { redactUrl, showNames } from '../../../lib/core/display.js';
import { anyNames } from '../../support/hostile.js';
import { fc } from '../../support/properties.js';
import { Rig } from '../support/rig.js';
import { says, unreachable } from '../support/scripted-master.js';

/** Everything that a logger could print of an error. */
const printed = (error: unknown): string =>
  [String(error), (error as Error).stack, JSON.stringify(error), inspect(error, { depth: 10 })].join('\n');

const SECRET = 'hunter2';
const LONG = 'x'.repeat(2 ** 20);

describe('An invalid value', () => {
  it.each([
    ['an object', { password: SECRET }],
    ['a list', [`redis://:${SECRET}@host`]],
    ['a URL', `redis://user:${SECRET}@host:6379`],
    ['a URL without a scheme', `user:${SECRET}@host:6379`],
    ['a URL in which the @ is encoded', `redis://:${SECRET}%40host`],
    ['a password that ends with an @', `redis://:a%40${SECRET}`],
    ['a password with an @ before its end', `redis://:${SECRET}@${SECRET}@host`],
    ['a password with a slash', `redis://:a/${SECRET}@host`],
    ['a parameter', `redis://host?password=${SECRET}`],
    ['a parameter after a wrong separator', `redis://host/0&password=${SECRET}`],
    ['a parameter after a semicolon', `redis+sentinel://host/m;${SECRET}`],
    ['a parameter after a comma', `redis+sentinel://host/m,sentinelPassword=${SECRET}`],
    ['a parameter with an @', `redis://host?password=a@${SECRET}`],
    ['a parameter after a line break', `redis://host?x\n${SECRET}`],
    ['a long user', `redis://${'u'.repeat(200)}:${SECRET}@host`],
    ['the name of a forged class', { constructor: { name: SECRET } }],
  ])('is never printed with its password: %s', (_, value) => {
    const error = new RedlockConfigError('masters', value, 'must be better');
    expect(printed(error)).not.toContain(SECRET);
    expect(error.value).toBe(value);
  });

  it('keeps what helps to find it', () => {
    expect(redactUrl('redis://user:secret@host:6379/x')).toBe('redis://***@host:6379/x');
    expect(redactUrl('redis://a/b@host')).toBe('redis://***');
    expect(redactUrl('redis://host:port/1?x=1')).toBe('redis://host:port/1');
    expect(showNames(['x'.repeat(98), 'y'.repeat(99)])).toBe(`"${'x'.repeat(98)}", "${'y'.repeat(99)}…`);
    expect(new RedlockConfigError('wait', '5 s?', 'must be better').message).toBe('wait must be better, got "5 s?"');
  });

  it('of 1 MiB is shown by its beginning, however it is printed', () => {
    for (const value of [LONG, [LONG], { a: LONG }, Symbol(LONG), Object.assign(() => 0, { x: LONG })]) {
      const error = new RedlockConfigError('wait', value, 'must be better');
      expect(error.message.length).toBeLessThan(150);
      expect(printed(error).length).toBeLessThan(10_000);
    }
  });
});

describe('A message', () => {
  const MOST = 10 * (101 + ', '.length) + ' and 990 more'.length;

  it('names resources by their beginnings, and at most ten', () => {
    const names = Array.from({ length: 1_000 }, (_, i) => `${i}${'\n'.repeat(200)}`);
    expect(showNames(names).length).toBeLessThanOrEqual(MOST);
    expect(showNames(names)).toMatch(/ and 990 more$/);
    expect(showNames(['a', 'b'])).toBe('"a", "b"');
    for (const error of [
      new LockLostError(names, 'expired'),
      new LockNotAcquiredError(names, [], 0, 0),
      new LockReentryError(names, names, 'partial'),
    ]) {
      expect(error.message.length).toBeLessThan(2 * MOST + 200);
    }
  });

  it('of an outage is short, however long the name of the resource is', async () => {
    const rig = new Rig();
    rig.scriptAll(says(unreachable));
    const attempt = rig.follow(rig.acquire(LONG.slice(0, 2 ** 16), { wait: 0 }));
    await rig.clock.settle();
    expect(attempt.reason).toBeInstanceOf(QuorumUnavailableError);
    expect((attempt.reason as Error).message).toMatch(/^cannot lock "x{99}…: 2 of 3 masters must vote/);
    expect((attempt.reason as Error).message.length).toBeLessThan(500);
  });

  it('is one printable line, whatever the resource is called', () => {
    fc.assert(
      fc.property(fc.nat(101), anyNames, (before, rest) => {
        const name = 'x'.repeat(before) + rest;
        for (const error of [
          new LockLostError([name], 'expired'),
          new RedlockConfigError('resource', name, 'must be better'),
          new RedlockConfigError('resource', Symbol(name), 'must be better'),
        ]) {
          expect(error.message).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}\u202a-\u202e\u2066-\u2069]/u);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
