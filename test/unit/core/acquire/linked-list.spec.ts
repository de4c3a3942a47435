import { describe, expect, it } from '@jest/globals';
import { fc } from '../../../support/properties.js';
import { LinkedList, ListMember } from '../../../../lib/core/acquire/linked-list.js';

class Named extends ListMember<Named> {
  constructor(readonly name: string) {
    super();
  }
}

function namesOf({ members }: LinkedList<Named>): string[] {
  return members.map(({ name }) => name);
}

describe('A linked list', () => {
  it('keeps the order of its members, whichever of them leaves', () => {
    const list = new LinkedList<Named>();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => new Named(name)) as [Named, Named, Named];
    for (const member of [a, b, c]) list.add(member);
    expect([namesOf(list), list.first, list.last]).toEqual([['a', 'b', 'c'], a, c]);
    list.remove(b);
    list.remove(b);
    expect([namesOf(list), b.before, b.after]).toEqual([['a', 'c'], undefined, undefined]);
    list.remove(a);
    expect([list.first, list.last]).toEqual([c, c]);
    list.remove(c);
    list.remove(c);
    expect([namesOf(list), list.first, list.last, list.isEmpty]).toEqual([[], undefined, undefined, true]);
    list.add(b);
    expect(namesOf(list)).toEqual(['b']);
  });

  it('does what an array does', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(30))), (actions) => {
        const list = new LinkedList<Named>();
        const all: Named[] = [];
        let expected: Named[] = [];
        actions.forEach((leaving, i) => {
          if (leaving === null) {
            const member = new Named(`${i}`);
            all.push(member);
            expected.push(member);
            list.add(member);
            return;
          }
          const member = all[leaving];
          if (member) list.remove(member);
          expected = expected.filter((other) => other !== member);
        });
        expect(namesOf(list)).toEqual(expected.map(({ name }) => name));
        expect(list.isEmpty).toBe(expected.length === 0);
        expect([list.first, list.last]).toEqual([expected[0], expected.at(-1)]);
      }),
    );
  });
});
