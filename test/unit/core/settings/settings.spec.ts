import { describe, expect, it } from '@jest/globals';
import { MAX_DURATION, parseDuration } from '../../../../lib/core/settings/duration.js';
import { RedlockConfigError } from '../../../../lib/core/errors.js';
import { checkOptionNames } from '../../../../lib/core/settings/option-names.js';
import { resolveResources } from '../../../../lib/core/settings/resources.js';
import type { AcquireOptions, RedlockOptions } from '../../../../lib/core/settings/options.js';
import {
  driftOf,
  masterTimeoutFor,
  resolveCall,
  resolveSettings,
  resolveTtl,
} from '../../../../lib/core/settings/settings.js';

const settings = resolveSettings({});

function errorOf(action: () => unknown): RedlockConfigError {
  try {
    action();
  } catch (error) {
    if (error instanceof RedlockConfigError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('A duration', () => {
  it.each([
    [0, 0],
    [250, 250],
    ['250ms', 250],
    ['10s', 10_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['0.5s', 500],
    ['1.1s', 1_100],
    ['2.3m', 138_000],
    ['0ms', 0],
  ])('of %p is %p ms', (value, expected) => expect(parseDuration('wait', value, 0)).toBe(expected));

  it.each([
    ...[NaN, 1.5, Infinity, -Infinity, '10', '5 s', '', ' ', null, undefined, {}, [], [10], true, 10n],
    ...[
      '1e3ms',
      '-5s',
      '+5s',
      '5S',
      '5sec',
      '.5s',
      '5.s',
      '0x10ms',
      '1d',
      ' 5s',
      '5s\n',
      '0.5ms',
      '1.0005s',
      '1_000ms',
    ],
    ...[new Date(0), Symbol('5s'), () => 5, `${'9'.repeat(400)}ms`],
  ])('cannot be %p', (value) => {
    const { option, message } = errorOf(() => parseDuration('wait', value, 0));
    expect(option).toBe('wait');
    expect(message).toContain(
      "wait must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h'",
    );
  });

  it.each([-1, 2 ** 31, Number.MAX_SAFE_INTEGER, '597h'])('of %p is out of bounds', (value) => {
    expect(errorOf(() => parseDuration('wait', value, 0)).message).toContain(`must be from 0 to ${MAX_DURATION} ms`);
  });

  it('appears in the message when it is refused', () => {
    expect(errorOf(() => parseDuration('wait', '5 s', 0)).message).toMatch(/, got "5 s"$/);
    expect(errorOf(() => parseDuration('wait', 1.5, 0)).message).toMatch(/, got 1.5$/);
    expect(errorOf(() => parseDuration('wait', null, 0)).message).toMatch(/, got null$/);
  });
});

describe('Settings', () => {
  it('have the documented defaults, and are frozen', () => {
    expect(settings).toEqual({
      ttl: 10_000,
      wait: 5_000,
      maxHold: 3_600_000,
      masterTimeout: 50,
      driftFactor: 0.01,
      maxTtl: 30_000,
      restartGuard: false,
      durable: false,
      keyPrefix: 'lock:',
      instance: 'unnamed',
    });
    expect(Object.isFrozen(settings)).toBe(true);
  });

  it('treat an undefined option as absent', () => {
    const absent = { ttl: undefined, wait: undefined, maxHold: undefined, maxTtl: undefined, keyPrefix: undefined };
    expect(resolveSettings(absent as unknown as RedlockOptions)).toEqual(settings);
  });

  it.each(['', ' ', 'two words', 'zwölf', 'a'.repeat(101), 5, null])(
    'refuse %j as the name of a process',
    (instance) => {
      const options = { instance } as unknown as RedlockOptions;
      expect(() => resolveSettings(options)).toThrow(
        /^instance must be 1 to 100 printable ASCII characters without spaces, got /,
      );
    },
  );

  it('raise maxTtl and maxHold to a longer ttl', () => {
    expect(resolveSettings({ ttl: '2h' })).toMatchObject({ ttl: 7_200_000, maxTtl: 7_200_000, maxHold: 7_200_000 });
  });

  it.each(['ttl', 'wait', 'maxHold', 'masterTimeout', 'maxTtl', 'driftFactor', 'keyPrefix'])(
    'refuse null for %s, which is a value and not an absence',
    (name) => expect(errorOf(() => resolveSettings({ [name]: null })).option).toBe(name),
  );

  it.each([0, -1, NaN, 1.5, Infinity, 2 ** 31, '10', '5 s', '', null, {}, [], '1e3ms', 9, true])(
    'refuse a ttl of %p, for the module and for a call',
    (ttl) => {
      expect(errorOf(() => resolveSettings({ ttl: ttl as number })).option).toBe('ttl');
      expect(errorOf(() => resolveCall(settings, { ttl: ttl as number })).option).toBe('ttl');
      expect(errorOf(() => resolveTtl(settings, ttl as number)).option).toBe('ttl');
    },
  );

  it.each<[keyof RedlockOptions, unknown, string]>([
    ['ttl', '31s', 'ttl must be at most maxTtl, which is 30000 ms: raise maxTtl for the module, got 31000'],
    ['masterTimeout', '3s', 'masterTimeout must be at most a quarter of the ttl, which is 10000 ms, got "3s"'],
    ['masterTimeout', 0, `masterTimeout must be from 1 to ${MAX_DURATION} ms, got 0`],
    ['maxHold', '9s', 'maxHold must be at least the ttl, which is 10000 ms, got "9s"'],
    ['driftFactor', -0.1, 'driftFactor must be a number from 0 to 0.5, got -0.1'],
    ['driftFactor', NaN, 'driftFactor must be a number from 0 to 0.5, got NaN'],
    ['driftFactor', '0.1', 'driftFactor must be a number from 0 to 0.5, got "0.1"'],
    ['keyPrefix', 5, 'keyPrefix must be a string, got 5'],
    ['wait', -1, `wait must be from 0 to ${MAX_DURATION} ms, got -1`],
  ])('report what is wrong with %s: %p', (name, value, message) => {
    const options = { [name]: value, ...(name === 'ttl' && { maxTtl: '30s' }) };
    expect(errorOf(() => resolveSettings(options as RedlockOptions)).message).toBe(message);
  });

  it('allow half the ttl as drift, and none', () => {
    expect(driftOf(resolveSettings({ driftFactor: 0.5 }), 1_000)).toBe(502);
    expect(driftOf(resolveSettings({ driftFactor: 0 }), 1_000)).toBe(2);
  });

  it('give a master a quarter of a short ttl to answer', () => {
    expect([masterTimeoutFor(settings, 10_000), masterTimeoutFor(settings, 100)]).toEqual([50, 25]);
  });
});

describe('The settings of a call', () => {
  it('default to those of the service', () => {
    const call = resolveCall(settings, {});
    expect(call).toEqual({
      ...{ ttl: 10_000, wait: 5_000, extend: false, maxHold: 3_600_000, minHold: 0, signal: undefined },
      ...{ isShared: false, permits: undefined },
    });
  });

  it('are one object for calls with equal options, which thousands of held locks then keep together', () => {
    expect(resolveCall(settings, { ttl: 5_000, extend: true })).toBe(
      resolveCall(settings, { ttl: '5s', extend: true }),
    );
  });

  it.each<AcquireOptions>([
    ...[{ ttl: 6_000 }, { wait: 1 }, { extend: false }, { maxHold: 9_000 }, { minHold: 1 }],
    ...[{ mode: 'shared' as const }, { permits: 2 }, { signal: new AbortController().signal }],
  ])('are not mistaken for those of the call before, which differ in %p', (other) => {
    const options: AcquireOptions = { ttl: 5_000, extend: true };
    const call = resolveCall(settings, options);
    expect(resolveCall(settings, { ...options, ...other })).not.toEqual(call);
  });

  it('keep no signal for later calls', () => {
    const { signal } = new AbortController();
    expect(resolveCall(settings, { signal })).toMatchObject({ signal });
    expect(resolveCall(settings, {}).signal).toBeUndefined();
    expect(resolveCall(settings, { signal })).not.toBe(resolveCall(settings, { signal }));
  });

  it.each<[AcquireOptions | Record<string, unknown>, string]>([
    [{ minHold: '31s' }, 'minHold must be at most maxTtl, which is 30000 ms: raise maxTtl for the module, got "31s"'],
    [{ minHold: '15s', maxHold: '12s' }, 'minHold must be at most maxHold, which is 12000 ms, got "15s"'],
    [{ maxHold: '5s' }, 'maxHold must be at least the ttl, which is 10000 ms, got "5s"'],
    [{ extend: 'yes' }, 'extend must be true or false, got "yes"'],
    [{ extend: null }, 'extend must be true or false, got null'],
    [{ signal: {} }, 'signal must be an AbortSignal, got an object (Object)'],
    [{ signal: null }, 'signal must be an AbortSignal, got null'],
    [
      { wait: null },
      `wait must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h', got null`,
    ],
  ])('refuse %p', (options, message) => {
    expect(errorOf(() => resolveCall(settings, options)).message).toBe(message);
  });

  it('refuse a ttl above maxTtl and name the option to change', () => {
    expect(errorOf(() => resolveCall(settings, { ttl: '1m' })).message).toBe(
      'ttl must be at most maxTtl, which is 30000 ms: raise maxTtl for the module, got 60000',
    );
  });
});

describe('An option name that does not exist', () => {
  const check = (given: object) => errorOf(() => checkOptionNames('options', given, ['ttl', 'wait', 'masterTimeout']));

  it.each([
    ['TTL', 'ttl'],
    ['wiat', 'wait'],
    ['waits', 'wait'],
    ['waitxx', 'wait'],
    ['wa', 'wait'],
    ['mastertimeout', 'masterTimeout'],
    ['masterTimeuot', 'masterTimeout'],
  ])('such as %s is answered with the nearest name', (name, nearest) => {
    expect(check({ [name]: 1 }).message).toContain(`did you mean ${nearest}?`);
    expect(check({ [name]: 1 }).message).toContain(name);
  });

  it.each([
    ['shared', 'mode'],
    ['permit', 'permits'],
    ['limit', 'permits'],
    ['concurrency', 'permits'],
  ])('such as %s is answered with what it means here', (name, meant) => {
    const error = errorOf(() => checkOptionNames('options', { [name]: 5 }, ['wait', 'mode', 'permits']));
    expect(error.message).toContain(`did you mean ${meant}?`);
  });

  it('that resembles none is answered with all names', () => {
    expect(check({ colour: 3 }).message).toContain('ttl, wait, masterTimeout');
  });

  it('never shows its value, which could be a password', () => {
    const error = check({ password: 'hunter2' });
    expect(`${error.message}${JSON.stringify(error)}`).not.toContain('hunter2');
  });
});

describe('Resources', () => {
  it('are one name or several, without duplicates', () => {
    expect(resolveResources('resource', 'a')).toEqual(['a']);
    expect(resolveResources('resource', ['b', 'a', 'b'])).toEqual(['b', 'a']);
  });

  it.each([
    [''],
    [[]],
    [['a', '']],
    [[undefined]],
    [new Array<string>(2)],
    [null],
    [undefined],
    [5],
    [{}],
    [['a', 5]],
    [[['a']]],
    [Symbol('a')],
  ])('cannot be %p', (value) => {
    expect(errorOf(() => resolveResources('resource', value)).message).toContain(
      'resource must be a non-empty string or a non-empty array of them, got ',
    );
  });

  it('cannot be mistaken for internal names', () => {
    expect(errorOf(() => resolveResources('resource', ['a', '\0queue:a'])).message).toContain(
      'resource must not contain a NUL character',
    );
  });
});
