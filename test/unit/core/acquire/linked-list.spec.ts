import { describe, expect, it } from '@jest/globals';
import { fc } from '../../../support/properties.js';
import { LinkedList, type ListNode } from '../../../../lib/core/acquire/linked-list.js';

describe('A linked list', () => {
  it('keeps the order of its members, whichever of them leaves', () => {
    const list = new LinkedList<string>();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => list.add(name)) as [
      ListNode<string>,
      ListNode<string>,
      ListNode<string>,
    ];
    expect([list.values, list.first, list.firstNode, list.lastNode?.value]).toEqual([['a', 'b', 'c'], 'a', a, 'c']);
    b.leave();
    b.leave();
    expect([list.values, b.list]).toEqual([['a', 'c'], undefined]);
    a.leave();
    expect([list.first, list.firstNode]).toEqual(['c', c]);
    c.leave();
    expect([list.values, list.first, list.isEmpty]).toEqual([[], undefined, true]);
    list.add('d');
    expect(list.values).toEqual(['d']);
  });

  it('does what an array does', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(30))), (actions) => {
        const list = new LinkedList<number>();
        const members: ListNode<number>[] = [];
        let expected: number[] = [];
        actions.forEach((leaving, i) => {
          if (leaving === null) {
            members.push(list.add(i));
            expected.push(i);
            return;
          }
          const member = members[leaving];
          member?.leave();
          expected = expected.filter((value) => value !== member?.value);
        });
        expect(list.values).toEqual(expected);
        expect(list.isEmpty).toBe(expected.length === 0);
        expect([list.firstNode?.value, list.lastNode?.value]).toEqual([expected[0], expected.at(-1)]);
      }),
    );
  });
});
