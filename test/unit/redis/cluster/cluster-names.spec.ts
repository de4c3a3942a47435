import { describe, expect, it } from '@jest/globals';
import { Keyspace, NUL } from '../../../../lib/settings/keyspace.js';
import { RedlockConfigError } from '../../../../lib/settings/config.error.js';
import { ClusterNames } from '../../../../lib/redis/cluster/cluster-names.js';
import { fc } from '../../../support/properties.js';

const names = new ClusterNames('lock:');
const keyspace = new Keyspace('lock:');

/** All names of a lock or a permit. */
function namesOf(resource: string): string[] {
  const { keys, queues, writerKeys } = keyspace.namesOf([resource]);
  const permits = keyspace.namesOfSlots(resource, [0, 12]);
  return [...keys, ...queues, ...writerKeys, keyspace.stateOf(resource), ...permits.keys, ...permits.queues];
}

/** As a server finds it. */
function tagOf(key: string): string {
  const open = key.indexOf('{');
  const close = key.indexOf('}', open + 1);
  return open >= 0 && close > open + 1 ? key.slice(open + 1, close) : key;
}

function isRefused(resource: string): boolean {
  try {
    names.check([resource]);
    return false;
  } catch (error) {
    expect(error).toBeInstanceOf(RedlockConfigError);
    return true;
  }
}

const resources = fc.string({ unit: fc.constantFrom('a', 'b', '{', '}', ':', '*'), minLength: 1, maxLength: 8 });

describe('The names of a lock on a cluster', () => {
  it.each([
    ['invoice:42', 'lock:{invoice:42}'],
    ['{customer-7}:invoice', 'lock:{customer-7}:invoice'],
    ['invoice of {customer-7}', 'lock:invoice of {customer-7}'],
  ])('have braces round a resource that has none: %s', (resource, key) =>
    expect(names.stored(keyspace.keyOf(resource))).toBe(key),
  );

  it('have one tag, whatever the resource', () =>
    fc.assert(
      fc.property(resources, (resource) => {
        fc.pre(!isRefused(resource));
        expect(new Set(namesOf(resource).map((name) => tagOf(names.stored(name)))).size).toBe(1);
      }),
    ));

  it('differ for different resources, and can be traced back to them', () =>
    fc.assert(
      fc.property(resources, (resource) => {
        fc.pre(!isRefused(resource));
        for (const name of namesOf(resource)) expect(names.nameOf(names.stored(name))).toBe(name);
      }),
    ));

  it('have them in each list of a request', () => {
    const { keys, writerKeys } = keyspace.namesOf(['a', 'b']);
    const request = names.request({ op: 'defer-readers', keys, writerKeys, waiter: 'w', waited: 0 });
    const stored = (list: readonly string[]): string[] => list.map((name) => names.stored(name));
    expect(request).toMatchObject({ keys: stored(keys), writerKeys: stored(writerKeys) });
  });

  it('have braces in the pattern for those without a tag, too', () => {
    expect(names.patternsOf('lock:invoice*')).toEqual(['lock:invoice*', 'lock:{invoice*}']);
    expect(names.patternsOf(`lock:${NUL}permit:*:po?l`)).toEqual([
      `lock:${NUL}permit:*:po?l`,
      `lock:${NUL}permit:*:{po?l}`,
    ]);
    expect(new ClusterNames('a*b:').patternsOf('a\\*b:*')).toEqual(['a\\*b:*', 'a\\*b:{*}']);
  });

  it('have counters in the same slot, of which each slot has one', () => {
    // 866 is the slot of `{hello}`, by CLUSTER KEYSLOT.
    const beside = names.countersBeside('lock:{hello}');
    expect(beside).toBe(names.countersBeside(`lock:${NUL}state:{hello}`));
    expect(beside).toBe(`lock:${NUL}fences:{9l2}`);
    expect(names.countersBeside('lock:{other}')).not.toBe(beside);
  });

  it.each(['{', '}', '{}', 'a}', '{a}', '{}a}', 'a{b'])('are refused for %s', (resource) =>
    expect(() => names.check([resource])).toThrow(/^resource must have no braces on a cluster but those of one tag/),
  );

  it('have a prefix without braces', () =>
    expect(() => new ClusterNames('{app}:')).toThrow(/^keyPrefix must have no brace with a cluster/));
});
