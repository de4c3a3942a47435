import { inspect } from 'node:util';
import { describe, expect, it, jest } from '@jest/globals';
import { redactUrl } from '../../../lib/settings/display.js';
import { showNames } from '../../../lib/redlock/names.js';
import { isLockError } from '../../../lib/errors.js';
import {
  LockError,
  LockLostError,
  LockServiceStoppedError,
  type MasterReport,
  QuorumUnavailableError,
} from '../../../lib/redlock/errors.js';
import { LockNotAcquiredError, majorityHolder } from '../../../lib/waiting/lock-not-acquired.error.js';
import { LockReentryError } from '../../../lib/locks/lock-reentry.error.js';
import { RedlockConfigError } from '../../../lib/settings/config.error.js';
import type { LockHolder } from '../../../lib/redlock/holder.js';
import { GRANTED } from '../../../lib/masters/master.interface.js';
import { anyNames } from '../../support/hostile.js';
import { fc } from '../../support/properties.js';
import { throwing } from '../../support/throwing.js';

const WEB: LockHolder = { instance: 'web:1', since: new Date(5) };

const all: [LockError, string, number][] = [
  [new LockNotAcquiredError(['a'], [], 0, undefined), 'LOCK_NOT_ACQUIRED', 423],
  [new QuorumUnavailableError('lock "a"', ['a'], [], 2, 3), 'QUORUM_UNAVAILABLE', 503],
  [new LockLostError(['a'], 'expired'), 'LOCK_LOST', 500],
  [new LockReentryError(['a'], ['a'], 'nested'), 'LOCK_REENTRY', 500],
  [new LockServiceStoppedError(['a']), 'LOCK_SERVICE_STOPPED', 503],
  [new RedlockConfigError('ttl', 0, 'must be more'), 'LOCK_CONFIG', 500],
];

describe('An error', () => {
  it.each(all.map(([error, code, statusCode]) => ({ error, code, statusCode })))(
    'with the code $code has the status $statusCode',
    ({ error, code, statusCode }) => {
      expect(error).toBeInstanceOf(LockError);
      expect(error).toMatchObject({ code, statusCode, name: error.constructor.name });
    },
  );

  it('says how long a master waits before it votes', () => {
    const answer = { kind: 'quarantined', reason: 'waits 9.8 s after a restart', remaining: 9_800 } as const;
    const { message } = new QuorumUnavailableError('lock "a"', ['a'], [{ master: 'a:1', answer }], 1, 1);
    expect(message).toContain('(a:1: waits 9.8 s after a restart, then votes by itself (see restartGuard))');
  });

  it.each([
    [{ password: 'hunter2' }, 'an object (Object)'],
    [Object.create(null), 'an object (no class)'],
    [['hunter2'], 'an array of 1'],
    [[], '[]'],
    [function key() {}, 'function key'],
    [10n, '10n'],
    [Symbol('s'), 'Symbol(s)'],
    [undefined, 'undefined'],
    [new Proxy({}, { get: throwing(new Error('no')) }), 'object'],
  ])('shows an invalid value by its kind, not its content', (value, shown) =>
    expect(new RedlockConfigError('o', value, 'must be better').message).toBe(`o must be better, got ${shown}`),
  );
});

describe('A printed error', () => {
  const HELD = { master: 'a:1', answer: { kind: 'held', remaining: 8_200 } } as const;
  const config = new RedlockConfigError('ttl', 0, 'must be more');
  const held = new LockNotAcquiredError(['a'], [HELD], 0, 8_200);

  it.each([
    ['by console.error', true],
    // Node prints an uncaught error without asking it.
    ['as an uncaught error', false],
  ])('has a message and a stack, and no empty or repeated properties, %s', (_, customInspect) => {
    const [first, ...others] = inspect(config, { customInspect }).split('\n');
    expect(first).toBe('RedlockConfigError: ttl must be more, got 0');
    expect(others.length).toBeGreaterThan(0);
    expect(others.filter((line) => !/^ {4}at /.test(line))).toEqual([]);
  });

  it('has the answers of the masters in its message and nowhere else', () => {
    const text = inspect(held);
    expect(text).toMatch(
      /^LockNotAcquiredError: "a" is held by another holder: .*\(a:1: held for 8200 ms more\)\n {4}at /,
    );
    expect(text.match(/8200/g)).toHaveLength(1);
  });

  it.each([
    [5, [HELD], 0, 'none of the 5 permits of "a" was free: not acquired (a:1: held for 8200 ms more)'],
    [1, [HELD], 10, 'the only permit of "a" was not free: not acquired within 10 ms (a:1: held for 8200 ms more)'],
    [5, [], 10, 'all 5 permits of "a" are held or awaited by calls in this process: not acquired within 10 ms'],
    [1, [], 10, 'the only permit of "a" is held or awaited by calls in this process: not acquired within 10 ms'],
  ])('names the number of permits, %s, and none of their holders', (permits, answers, waited, message) => {
    const named = answers.map(({ master, answer }) => ({ master, answer: { ...answer, holder: WEB } }));
    const error = new LockNotAcquiredError(['a'], named, waited, undefined, permits);
    expect(error).toMatchObject({ message, permits, holder: undefined });
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ permits });
  });

  it.each<[string, (LockHolder | 'free' | undefined)[], string | undefined]>([
    ['all masters', [WEB, WEB, WEB], 'web:1'],
    ['the only one that answered', [WEB, undefined, undefined], 'web:1'],
    ['two of three', [WEB, { ...WEB, instance: 'other:1' }, WEB], 'web:1'],
    ['one of two', [WEB, 'free', undefined], undefined],
    ['each master another', [WEB, { ...WEB, instance: 'other:1' }], undefined],
    ['none', [undefined, 'free'], undefined],
  ])('names a holder only if more than half of the reports do: %s', (_, reports, instance) => {
    const answers = reports.map((report, i): MasterReport => {
      const held = { kind: 'held', remaining: 5, ...(report !== 'free' && report && { holder: report }) } as const;
      return { master: `m${i}`, answer: report === undefined ? undefined : report === 'free' ? GRANTED : held };
    });
    expect(majorityHolder(answers)?.instance).toBe(instance);
  });

  it('has its message, its code and its own properties as JSON', () => {
    expect(JSON.parse(JSON.stringify(config))).toEqual({
      name: 'RedlockConfigError',
      code: 'LOCK_CONFIG',
      message: 'ttl must be more, got 0',
    });
    expect(JSON.parse(JSON.stringify(held))).toMatchObject({
      code: 'LOCK_NOT_ACQUIRED',
      message: held.message,
      retryAfter: 8_200,
      answers: [HELD],
    });
  });
});

describe('An error of another copy of this package', () => {
  const otherCopy = async () => {
    jest.resetModules();
    return import('../../../lib/errors.js');
  };

  it('is recognized', async () => {
    const other = await otherCopy();
    const held = new other.LockNotAcquiredError(['a'], [], 0, undefined);
    const lost = new other.LockLostError(['a'], 'expired');
    expect(held).not.toBeInstanceOf(LockError);
    const config = new other.RedlockConfigError('ttl', 0, 'must be more');
    expect([held, lost, config].map(isLockError)).toEqual([true, true, true]);
    expect([held, lost, config].map((error) => isLockError(error, 'LOCK_NOT_ACQUIRED'))).toEqual([true, false, false]);
    expect([held, lost, config].map((error) => isLockError(error, 'LOCK_CONFIG'))).toEqual([false, false, true]);
  });

  it('is not confused with an unrelated error that has the same code', () => {
    const error = Object.assign(new Error('busy'), { code: 'LOCK_NOT_ACQUIRED' });
    expect([isLockError(error), isLockError(error, 'LOCK_NOT_ACQUIRED')]).toEqual([false, false]);
  });
});

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
      new QuorumUnavailableError(`lock ${showNames(names)}`, names, [], 2, 3),
    ]) {
      expect(error.message.length).toBeLessThan(2 * MOST + 300);
    }
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
