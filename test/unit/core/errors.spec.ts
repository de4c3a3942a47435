import { inspect } from 'node:util';
import { describe, expect, it, jest } from '@jest/globals';
import { ConsoleLogger } from '@nestjs/common';
import type { LockHolder } from '../../../lib/core/holder.js';
import { GRANTED } from '../../../lib/core/master.interface.js';
import {
  holderIn,
  isLockError,
  isNotAcquired,
  LockError,
  LockLostError,
  LockNotAcquiredError,
  LockReentryError,
  LockServiceStoppedError,
  QuorumUnavailableError,
  type MasterReport,
  RedlockConfigError,
} from '../../../lib/core/errors.js';

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

  it('shows only the beginning of a long name', () => {
    expect(new LockLostError(['x'.repeat(10_000)], 'expired').message.length).toBeLessThan(300);
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
    [
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('no');
          },
        },
      ),
      'object',
    ],
  ])('shows an invalid value by its kind, not its content', (value, shown) => {
    expect(new RedlockConfigError('o', value, 'must be better').message).toBe(`o must be better, got ${shown}`);
  });
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

  it('says that an operator released the lock by force', () => {
    const answer = { kind: 'held', remaining: 5_000, revoked: true } as const;
    expect(new LockLostError(['a'], 'owner-changed', [{ master: 'a:1', answer }]).message).toBe(
      'lost the lock on "a": an operator released it by force (a:1: released by force, held for 5000 ms more)',
    );
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
    expect(holderIn(answers)?.instance).toBe(instance);
  });

  it.each([
    ['text', false],
    ['JSON', true],
  ])('has its message in the log of Nest as %s', (_, json) => {
    const lines: string[] = [];
    const write = (line: unknown): boolean => lines.push(String(line)) > 0;
    const streams = [process.stdout, process.stderr].map((stream) =>
      jest.spyOn(stream, 'write').mockImplementation(write),
    );
    try {
      new ConsoleLogger({ json, colors: false }).error(config);
    } finally {
      for (const stream of streams) stream.mockRestore();
    }
    expect(lines.join('')).toContain('ttl must be more, got 0');
    expect(lines.join('')).not.toMatch(/expose|resources|answers|requirement/);
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
    return import('../../../lib/core/errors.js');
  };

  it('is recognized', async () => {
    const other = await otherCopy();
    const held = new other.LockNotAcquiredError(['a'], [], 0, undefined);
    const lost = new other.LockLostError(['a'], 'expired');
    expect(held).not.toBeInstanceOf(LockError);
    expect([held, lost].map(isLockError)).toEqual([true, true]);
    expect([held, lost].map(isNotAcquired)).toEqual([true, false]);
  });

  it('is not confused with an unrelated error that has the same code', () => {
    const error = Object.assign(new Error('busy'), { code: 'LOCK_NOT_ACQUIRED' });
    expect([isLockError(error), isNotAcquired(error)]).toEqual([false, false]);
  });
});
