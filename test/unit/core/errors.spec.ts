import { describe, expect, it, jest } from '@jest/globals';
import {
  isLockError,
  isNotAcquired,
  LockError,
  LockLostError,
  LockNotAcquiredError,
  LockReentryError,
  LockServiceStoppedError,
  QuorumUnavailableError,
  RedlockConfigError,
} from '../../../lib/core/errors.js';

const all: [LockError, string, number][] = [
  [new LockNotAcquiredError(['a'], [], 0, undefined), 'LOCK_NOT_ACQUIRED', 423],
  [new QuorumUnavailableError('lock "a"', ['a'], [], 2, 3), 'QUORUM_UNAVAILABLE', 503],
  [new LockLostError(['a'], 'expired'), 'LOCK_LOST', 500],
  [new LockReentryError(['a'], ['a'], false), 'LOCK_REENTRY', 500],
  [new LockServiceStoppedError(['a']), 'LOCK_SERVICE_STOPPED', 503],
  [new RedlockConfigError('ttl', 0, 'must be more'), 'LOCK_CONFIG', 500],
];

describe('An error', () => {
  it.each(all)('%s has the code %s and the status %i', (error, code, statusCode) => {
    expect(error).toBeInstanceOf(LockError);
    expect(error).toMatchObject({ code, statusCode, name: error.constructor.name });
  });

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
