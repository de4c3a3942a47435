import { describe, expect, it, jest } from '@jest/globals';
import { MAX_DURATION, parseDuration } from '../../../../lib/core/settings/duration.js';
import { RedlockConfigError } from '../../../../lib/core/errors.js';
import { checkOptionNames } from '../../../../lib/core/settings/option-names.js';
import {
  ACQUIRE_OPTION_NAMES,
  type AcquireOptions,
  REDLOCK_OPTION_NAMES,
} from '../../../../lib/core/settings/options.js';
import { type CallSettings, resolveCall, resolveSettings } from '../../../../lib/core/settings/settings.js';
import { anything, optionObjects } from '../../../support/hostile.js';
import { fc, runs } from '../../../support/properties.js';

const settings = resolveSettings({});

/** As the lock service does for each call. */
function settingsOf(options: AcquireOptions): CallSettings {
  checkOptionNames('options', options, ACQUIRE_OPTION_NAMES);
  return resolveCall(settings, options);
}

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

const refusalOf = (action: () => unknown): RedlockConfigError => {
  const outcome = attempt(action);
  if ('result' in outcome) throw new Error('it was not refused');
  return outcome.refusal;
};

describe('A duration', () => {
  it('is a whole number of milliseconds within its bounds, whatever is given', () => {
    fc.assert(
      fc.property(anything, ({ value }) => {
        const outcome = attempt(() => parseDuration('wait', value, 0));
        if ('refusal' in outcome) return;
        expect(Number.isInteger(outcome.result)).toBe(true);
        expect(outcome.result >= 0 && outcome.result <= MAX_DURATION).toBe(true);
        expect(['number', 'string']).toContain(typeof value);
      }),
      { numRuns: runs(2_000) },
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

  it('of any number is that number or refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.integer(), fc.maxSafeInteger()), (number) => {
        const fits = Number.isInteger(number) && number >= 10 && number <= MAX_DURATION;
        expect('result' in attempt(() => parseDuration('ttl', number, 10))).toBe(fits);
      }),
      { numRuns: runs(1_000) },
    );
  });
});

describe('The options of a call', () => {
  it('work or are refused by name, whatever is given', () => {
    fc.assert(
      fc.property(optionObjects(ACQUIRE_OPTION_NAMES), (options) => {
        const outcome = attempt(() => settingsOf(options.value as AcquireOptions));
        if ('refusal' in outcome) return;
        const { wait, maxHold, minHold, extend, signal } = outcome.result;
        expect([wait, maxHold, minHold, outcome.result.ttl].every(Number.isInteger)).toBe(true);
        expect(outcome.result.ttl >= 10 && outcome.result.ttl <= Math.min(settings.maxTtl, maxHold)).toBe(true);
        expect(typeof extend).toBe('boolean');
        expect(signal === undefined || typeof signal.aborted === 'boolean').toBe(true);
      }),
      { numRuns: runs(3_000) },
    );
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a number', 5],
    ['a string', 'wait'],
    ['a list', []],
    ['a map', new Map([['wait', 0]])],
    ['a date', new Date()],
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

  it('that cannot be read are refused as a whole', () => {
    const options = {
      get wait(): number {
        throw new TypeError('from inside');
      },
    };
    expect(refusalOf(() => settingsOf(options)).option).toBe('options');
  });

  it('include no signal that only looks like one', () => {
    const signal = Object.create(AbortSignal.prototype) as AbortSignal;
    expect(refusalOf(() => settingsOf({ ttl: 10, signal })).option).toBe('signal');
  });
});

describe('The options of a service', () => {
  it('work or are refused by name, whatever is given', () => {
    fc.assert(
      fc.property(optionObjects(REDLOCK_OPTION_NAMES), ({ value: options }) => {
        const outcome = attempt(() => {
          checkOptionNames('options', options, REDLOCK_OPTION_NAMES);
          return resolveSettings(options);
        });
        if ('refusal' in outcome) return;
        const { ttl, wait, maxHold, masterTimeout, driftFactor, maxTtl } = outcome.result;
        expect([ttl, wait, maxHold, masterTimeout, maxTtl].every(Number.isInteger)).toBe(true);
        expect(ttl <= maxTtl && ttl <= maxHold && driftFactor <= 0.5).toBe(true);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('with a name of 1 MiB are refused without a comparison letter by letter', () => {
    const name = 'masterTimeout'.repeat(80_000);
    const lowerCase = jest.spyOn(String.prototype, 'toLowerCase');
    const { message } = refusalOf(() => checkOptionNames('options', { [name]: 1 }, REDLOCK_OPTION_NAMES));
    const compared = lowerCase.mock.contexts.map((text) => (text as string).length);
    lowerCase.mockRestore();
    expect(message.length).toBeLessThan(400);
    expect(compared).not.toContain(name.length);
  });
});
