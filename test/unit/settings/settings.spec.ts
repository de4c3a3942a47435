import { describe, expect, it, jest } from '@jest/globals';
import { RedlockConfigError } from '../../../lib/settings/config.error.js';
import { MAX_DURATION, parseDuration } from '../../../lib/settings/duration.js';
import { checkOptionNames } from '../../../lib/settings/table.js';
import type { AcquireOptions, RedlockOptions } from '../../../lib/settings/options.js';
import {
  ACQUIRE_OPTIONS,
  type CallSettings,
  driftOf,
  REDLOCK_OPTIONS,
  resolveCall,
  resolveSettings,
  resolveTtl,
} from '../../../lib/settings/settings.js';
import { anything, optionObjects } from '../../support/hostile.js';
import { fc } from '../../support/properties.js';
import { shareOf } from '../../support/share.js';

const settings = resolveSettings({});

/** The outcome of an action: a result, or an error that is informative and short. */
function attempt<T>(action: () => T): { result: T } | { refusal: RedlockConfigError } {
  try {
    return { result: action() };
  } catch (error) {
    expect(error).toBeInstanceOf(RedlockConfigError);
    const refusal = error as RedlockConfigError;
    expect(refusal.message).toMatch(/^\S.* (?:must|may) .*, got ./);
    expect(refusal.message.startsWith(refusal.option)).toBe(true);
    expect(refusal.message.length).toBeLessThan(400);
    return { refusal };
  }
}

function refusalOf(action: () => unknown): RedlockConfigError {
  const outcome = attempt(action);
  if ('result' in outcome) throw new Error('it was not refused');
  return outcome.refusal;
}

describe('A duration', () => {
  it.each([
    ['0.5s', 500],
    ['1.1s', 1_100],
    ['2.3m', 138_000],
    ['0ms', 0],
  ])('of %p is %p ms', (value, expected) => expect(parseDuration('wait', value, 0)).toBe(expected));

  it.each([
    ...[NaN, 1.5, Infinity, -Infinity, '5 s', '', ' ', null, undefined, {}, [], [10], true, 10n],
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
    const { option, message } = refusalOf(() => parseDuration('wait', value, 0));
    expect(option).toBe('wait');
    expect(message).toContain(
      "wait must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h'",
    );
  });

  it.each([
    ['wait', '10', "'10ms' or '10s', or be the number 10"],
    ['wait', '5000', "'5000ms' or '5s', or be the number 5000"],
    // On a command line it cannot be a number.
    ['--timeout', '2000', "'2000ms' or '2s'"],
  ])('for %s of %p lacks a unit', (option, value, units) => {
    expect(refusalOf(() => parseDuration(option, value, 0)).message).toBe(
      `${option} must have a unit, as in ${units}, got "${value}"`,
    );
  });

  it.each([-1, 2 ** 31, Number.MAX_SAFE_INTEGER, '597h'])('of %p is out of bounds', (value) =>
    expect(refusalOf(() => parseDuration('wait', value, 0)).message).toContain(`must be from 0 to ${MAX_DURATION} ms`),
  );
});

describe('Settings', () => {
  it('have the documented defaults, and are frozen', () => {
    expect(settings).toEqual({
      ttl: 10_000,
      wait: 5_000,
      maxHold: 3_600_000,
      masterTimeout: 250,
      driftFactor: 0.01,
      maxTtl: 10_000,
      restartGuard: false,
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

  it('raise maxTtl and maxHold to a longer ttl', () =>
    expect(resolveSettings({ ttl: '2h' })).toMatchObject({ ttl: 7_200_000, maxTtl: 7_200_000, maxHold: 7_200_000 }));

  it.each([0, '10'])('refuse a ttl of %p, for the module and for a call', (ttl) => {
    expect(refusalOf(() => resolveSettings({ ttl: ttl as number })).option).toBe('ttl');
    expect(refusalOf(() => resolveCall(settings, { ttl: ttl as number })).option).toBe('ttl');
    expect(refusalOf(() => resolveTtl(settings, ttl as number)).option).toBe('ttl');
  });

  it.each<[keyof RedlockOptions, unknown, string]>([
    ['masterTimeout', '3s', 'masterTimeout must be at most 2500 ms, a quarter of the ttl, got "3s"'],
    ['masterTimeout', 0, `masterTimeout must be from 1 to ${MAX_DURATION} ms, got 0`],
    ['maxHold', '9s', 'maxHold must be at least the ttl, which is 10000 ms, got "9s"'],
    ['driftFactor', -0.1, 'driftFactor must be a number from 0 to 0.5, got -0.1'],
    ['driftFactor', NaN, 'driftFactor must be a number from 0 to 0.5, got NaN'],
    ['driftFactor', '0.1', 'driftFactor must be a number from 0 to 0.5, got "0.1"'],
    ['keyPrefix', 5, 'keyPrefix must be a string, got 5'],
    ['wait', -1, `wait must be from 0 to ${MAX_DURATION} ms, got -1`],
  ])('report what is wrong with %s: %p', (name, value, message) => {
    expect(refusalOf(() => resolveSettings({ [name]: value })).message).toBe(message);
  });

  it('allow half the ttl as drift, and none', () => {
    expect(driftOf(resolveSettings({ driftFactor: 0.5 }), 1_000)).toBe(502);
    expect(driftOf(resolveSettings({ driftFactor: 0 }), 1_000)).toBe(2);
  });
});

// Protocol 8.1
describe('The largest ttl', () => {
  const GUARDED = { ttl: '3s', restartGuard: true } as const;
  const advice = 'raise the option `maxTtl` of the module, in all processes first';

  it('refuses a longer one of a call, and names both numbers and the option', () => {
    const guarded = resolveSettings(GUARDED);
    const { message, option } = refusalOf(() => resolveCall(guarded, { ttl: '4s' }));
    expect(option).toBe('ttl');
    expect(message).toBe(`ttl is 4000 ms, and must be at most maxTtl, which is 3000 ms: ${advice}, got "4s"`);
    expect(refusalOf(() => resolveTtl(guarded, '1h')).message).toContain('must be at most maxTtl');
  });

  it('refuses a longer one of the module', () => {
    const { message } = refusalOf(() => resolveSettings({ ...GUARDED, ttl: '31s', maxTtl: '30s' }));
    expect(message).toBe(`ttl is 31000 ms, and must be at most maxTtl, which is 30000 ms: ${advice}, got "31s"`);
    expect(refusalOf(() => resolveSettings({ maxTtl: '9s', restartGuard: true })).message).toMatch(/, got 10000$/);
  });

  it('is permitted itself, and does not limit minHold, which a loss of data can cut', () => {
    const guarded = resolveSettings({ ...GUARDED, maxTtl: '30s' });
    expect(resolveCall(guarded, { ttl: '30s' }).ttl).toBe(30_000);
    expect(resolveCall(guarded, { minHold: '10m' }).minHold).toBe(600_000);
  });

  it('limits nothing while the guard is off', () => {
    const open = resolveSettings({ ttl: '5s', maxTtl: '1s', restartGuard: false }, 3);
    expect(resolveCall(open, { ttl: '1m' }).ttl).toBe(60_000);
    expect(resolveTtl(open, '1m')).toBe(60_000);
  });

  it.each([
    [1, false],
    [2, false],
    [3, true],
    [5, true],
  ])('counts by default with three masters or more: %i', (masters, guarded) =>
    expect(resolveSettings({}, masters).restartGuard).toBe(guarded),
  );
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
  ])('refuse %p', (options, message) => expect(refusalOf(() => resolveCall(settings, options)).message).toBe(message));
});

describe('An option name that does not exist', () => {
  const check = (given: object) =>
    refusalOf(() => checkOptionNames('options', given, { ttl: 0, wait: 0, masterTimeout: 0 }));

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
    const error = refusalOf(() => checkOptionNames('options', { [name]: 5 }, { wait: 0, mode: 0, permits: 0 }));
    expect(error.message).toContain(`did you mean ${meant}?`);
  });

  it('that resembles none is answered with all names', () =>
    expect(check({ colour: 3 }).message).toContain('ttl, wait, masterTimeout'));

  it('never shows its value, which could be a password', () => {
    const error = check({ password: 'hunter2' });
    expect(`${error.message}${JSON.stringify(error)}`).not.toContain('hunter2');
  });
});

/** As the lock service does for each call. */
function settingsOf(options: AcquireOptions): CallSettings {
  checkOptionNames('options', options, ACQUIRE_OPTIONS);
  return resolveCall(settings, options);
}

describe('A duration in general', () => {
  it('is a whole number of milliseconds within its bounds, whatever is given', () => {
    fc.assert(
      fc.property(anything, ({ value }) => {
        const outcome = attempt(() => parseDuration('wait', value, 0));
        if ('refusal' in outcome) return;
        expect(Number.isInteger(outcome.result)).toBe(true);
        expect(outcome.result >= 0 && outcome.result <= MAX_DURATION).toBe(true);
        expect(['number', 'string']).toContain(typeof value);
      }),
      { numRuns: shareOf(2_000) },
    );
  });

  it('means the same as a number and as a string', () => {
    const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
    const unit = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]));
    fc.assert(
      fc.property(fc.nat(20_000_000), unit, (amount, of) => {
        const milliseconds = amount * units[of];
        const fits = milliseconds <= MAX_DURATION;
        expect(attempt(() => parseDuration('wait', `${amount}${of}`, 0))).toEqual(
          fits ? { result: milliseconds } : { refusal: expect.any(RedlockConfigError) },
        );
        expect('result' in attempt(() => parseDuration('wait', milliseconds, 0))).toBe(fits);
      }),
    );
  });
});

describe('The options of a call', () => {
  it('work or are refused by name, whatever is given', () => {
    fc.assert(
      fc.property(optionObjects(Object.keys(ACQUIRE_OPTIONS)), (options) => {
        const outcome = attempt(() => settingsOf(options.value as AcquireOptions));
        if ('refusal' in outcome) return;
        const { wait, maxHold, minHold, extend, signal } = outcome.result;
        expect([wait, maxHold, minHold, outcome.result.ttl].every(Number.isInteger)).toBe(true);
        expect(outcome.result.ttl >= 10 && outcome.result.ttl <= maxHold).toBe(true);
        expect(typeof extend).toBe('boolean');
        expect(signal === undefined || typeof signal.aborted === 'boolean').toBe(true);
      }),
      { numRuns: shareOf(3_000) },
    );
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a map', new Map([['wait', 0]])],
    ['a function', () => 0],
    ['the signal itself', new AbortController().signal],
  ])('cannot be %s', (_, options) => {
    expect(refusalOf(() => settingsOf(options as AcquireOptions))).toMatchObject({
      option: 'options',
      requirement: 'must be an object of options that can be read',
    });
  });

  it('must be own properties: an inherited option would be lost', () => {
    const inherited = Object.create({ wait: 0 }) as AcquireOptions;
    expect(refusalOf(() => settingsOf(inherited)).message).toBe('options must not inherit an option, got "wait"');
    expect(refusalOf(() => settingsOf({ __proto__: { extend: true } } as AcquireOptions)).value).toBe('extend');
    const parsed = JSON.parse('{"__proto__": {"wait": 0}}') as AcquireOptions;
    expect(refusalOf(() => settingsOf(parsed)).value).toBe('__proto__');
  });

  it('may be frozen, without a prototype, or a namespace of a module', () => {
    const bare = Object.assign(Object.create(null) as object, { wait: 0 });
    const namespace = Object.assign(Object.create(null) as object, { wait: 0, [Symbol.toStringTag]: 'Module' });
    for (const options of [Object.freeze({ wait: 0 }), bare, namespace]) {
      expect(settingsOf(options)).toMatchObject({ wait: 0 });
    }
  });

  it('include no signal that only looks like one', () => {
    const signal = Object.create(AbortSignal.prototype) as AbortSignal;
    expect(refusalOf(() => settingsOf({ ttl: 10, signal })).option).toBe('signal');
  });
});

describe('The options of a service', () => {
  it('with a name of 1 MiB are refused without a comparison letter by letter', () => {
    const name = 'masterTimeout'.repeat(80_000);
    const lowerCase = jest.spyOn(String.prototype, 'toLowerCase');
    const { message } = refusalOf(() => checkOptionNames('options', { [name]: 1 }, REDLOCK_OPTIONS));
    const compared = lowerCase.mock.contexts.map((text) => (text as string).length);
    lowerCase.mockRestore();
    expect(message.length).toBeLessThan(400);
    expect(compared).not.toContain(name.length);
  });
});
