import { describe, expect, it } from '@jest/globals';
import { RedlockConfigError } from '../../../lib/settings/config.error.js';
import { Keyspace } from '../../../lib/settings/keyspace.js';
import { keyPrefix, resolveResources } from '../../../lib/settings/resources.js';
import { resolveSettings } from '../../../lib/settings/settings.js';
import { anyNames, names, prefixes } from '../../support/hostile.js';
import { fc } from '../../support/properties.js';
import { shareOf } from '../../support/share.js';
import { throwing } from '../../support/throwing.js';

const LONGEST = 2 ** 16;

/** The bytes that a server receives. */
const bytes = (text: string): string => Buffer.from(text, 'utf8').toString('hex');

function refusalOf(action: () => unknown): RedlockConfigError | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(RedlockConfigError);
    return error as RedlockConfigError;
  }
}

describe('A resource', () => {
  it('is accepted unchanged, or refused by name', () => {
    fc.assert(
      fc.property(anyNames, (name) => {
        const refusal = refusalOf(() => expect(resolveResources('resource', name)).toEqual([name]));
        const parts = name.split(/[#$&()*,/:;<=>@[\\\]^{|}~]/);
        const words = parts.length > 1 ? parts.map((part) => part.trim()) : name.split(/[.-]/);
        const isFilled = !words.includes('undefined') && !name.includes('[object Object]');
        const isWellFormed = Buffer.from(name, 'utf8').toString('utf8') === name;
        const fits = name !== '' && !name.includes('\0') && isFilled && isWellFormed;
        expect(refusal === undefined).toBe(fits);
        if (refusal) expect(refusal).toMatchObject({ option: 'resource', value: name });
      }),
      { numRuns: shareOf(2_000) },
    );
  });

  it('may not contain half a surrogate pair, because a server would receive the same bytes for all of them', () => {
    const name = '\udd12\ud83d';
    expect(bytes(name)).toContain(bytes('\ufffd'));
    expect(refusalOf(() => resolveResources('resource', ['a', name]))?.message).toMatch(
      /^resource must not contain half a surrogate pair, which no server could distinguish from another, got ".*\\ud.*"$/,
    );
  });

  it.each([
    ...[{ value: '' }, { value: [] }, { value: null }, { value: undefined }, { value: 5 }, { value: {} }],
    ...[{ value: Symbol('a') }, { value: ['a', ''] }, { value: [['a']] }],
  ])('cannot be $value', ({ value }) =>
    expect(refusalOf(() => resolveResources('resource', value))?.message).toContain(
      'resource must be a non-empty string or a non-empty array of them, got ',
    ),
  );

  it('may not contain a NUL character anywhere', () => {
    for (const name of ['\0queue:a', 'k:\0queue:a', 'a\0', ['a', '\0queue:a']]) {
      expect(refusalOf(() => resolveResources('resource', name))?.message).toContain('must not contain a NUL');
    }
  });

  it('may have 65,536 characters, and no more', () => {
    const longest = 'x'.repeat(LONGEST);
    expect(resolveResources('resource', longest)).toEqual([longest]);
    expect(refusalOf(() => resolveResources('resource', [longest, 'y']))?.message).toBe(
      `resource must have at most 65536 characters, not 65537, got "${'x'.repeat(99)}…`,
    );
  });

  it('may come with 511 others, and no more', () => {
    const list = Array.from({ length: 513 }, (_, i) => `r${i}`);
    expect(resolveResources('resource', list.slice(1))).toHaveLength(512);
    const message = 'resource must be at most 512 names, got an array of ';
    expect(refusalOf(() => resolveResources('resource', list))?.message).toBe(`${message}513`);
    expect(refusalOf(() => resolveResources('resource', new Array<string>(2 ** 32 - 1)))?.message).toBe(
      `${message}4294967295`,
    );
  });

  it('is read from the list itself, whatever its iterator returns', () => {
    const list = Object.assign(['a', 'b'], {
      *[Symbol.iterator]() {
        for (;;) yield 'c';
      },
    });
    expect(resolveResources('resource', list)).toEqual(['a', 'b']);
  });

  it('is refused under the name of its option if it cannot be read', () => {
    const { proxy, revoke } = Proxy.revocable<string[]>([], {});
    revoke();
    const unreadable = Object.defineProperty(['a'], 0, { get: throwing(new TypeError('from inside')) });
    for (const value of [proxy, unreadable]) {
      expect(refusalOf(() => resolveResources('key', value))?.message).toContain('key must be a non-empty string');
    }
  });

  it('in a list with holes, lists or other values is refused', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(names, fc.anything()), { maxLength: 4 }), (list) => {
        const fits =
          list.length > 0 && list.every((name) => typeof name === 'string' && name !== '' && !/\0/.test(name));
        fc.pre(!list.some((name) => typeof name === 'string' && /\p{Surrogate}/u.test(name)));
        const refusal = refusalOf(() => expect(resolveResources('resource', list)).toEqual([...new Set(list)]));
        expect(refusal === undefined).toBe(fits);
      }),
      { numRuns: shareOf(1_000) },
    );
  });
});

describe('A key', () => {
  const keyOf = (prefix: string, resource: string): string =>
    new Keyspace(keyPrefix('keyPrefix', prefix)).keyOf(String(resolveResources('resource', resource)[0]));

  it('begins with the prefix', () => {
    fc.assert(
      fc.property(prefixes, names, (prefix, name) => expect(keyOf(prefix, name).startsWith(prefix)).toBe(true)),
    );
  });

  // Protocol 2.1
  it('consists of prefix and resource if the prefix is one word and a colon', () => {
    expect(keyOf('lock:', 'order:1')).toBe('lock:order:1');
    expect(keyOf('app:jobs:', 'order:1')).toBe('app:jobs:\0key:order:1');
  });

  // Protocol 2.1
  it('is the same only for the same prefix and resource', () => {
    fc.assert(
      fc.property(prefixes, names, prefixes, names, (prefix, name, otherPrefix, otherName) => {
        const isSame = prefix === otherPrefix && name === otherName;
        expect(bytes(keyOf(prefix, name)) === bytes(keyOf(otherPrefix, otherName))).toBe(isSame);
      }),
      { numRuns: shareOf(5_000) },
    );
  });

  it('cannot be made to look like a key of another prefix', () => {
    fc.assert(
      fc.property(prefixes, prefixes, names, (prefix, more, name) => {
        fc.pre(more !== '');
        expect(keyOf(prefix, more + name)).not.toBe(keyOf(prefix + more, name));
      }),
      { numRuns: shareOf(2_000) },
    );
  });

  it('is never an internal name, whatever the prefix is', () => {
    const own = fc.oneof(
      fc.constantFrom('marker', 'counters', 'probe').map((name) => (keyspace: Keyspace) => keyspace[name as 'marker']),
      fc.tuple(fc.constantFrom('queueOf', 'channelOf', 'trialOf'), names).map(([method, name]) => {
        return (keyspace: Keyspace) => keyspace[method as 'queueOf'](name);
      }),
    );
    fc.assert(
      fc.property(prefixes, names, prefixes, own, (prefix, name, otherPrefix, ours) => {
        expect(keyOf(prefix, name)).not.toBe(ours(new Keyspace(otherPrefix)));
      }),
      { numRuns: shareOf(2_000) },
    );
  });
});

describe('A prefix', () => {
  it('may have 128 characters, and no more, because every name contains it', () => {
    expect(keyPrefix('keyPrefix', 'p'.repeat(128))).toHaveLength(128);
    expect(refusalOf(() => keyPrefix('keyPrefix', 'p'.repeat(129)))?.message).toBe(
      `keyPrefix must have at most 128 characters, not 129, got "${'p'.repeat(99)}…`,
    );
  });

  it.each(['\0', 'app\0', 'lock:\0queue:', '\ud800:', 'app:\udc00'])('cannot be %j', (value) =>
    expect(refusalOf(() => resolveSettings({ keyPrefix: value }))).toMatchObject({ option: 'keyPrefix', value }),
  );
});
