import { describe, expect, it } from '@jest/globals';
import { literally, matcherOf } from '../../../lib/cli/pattern.js';

describe('A pattern of SCAN', () => {
  it.each([
    ['stripe', ['stripe'], ['eu:stripe', 'stripe:', '']],
    ['*', ['', 'a', 'a:b', 'line\nbreak'], []],
    ['order:*', ['order:', 'order:1'], ['order', 'an order:1']],
    ['a?c', ['abc', 'a\nc'], ['ac', 'abbc']],
    ['ä??', ['äö', 'äab'], ['äa']],
    ['[a-c]x', ['ax', 'cx'], ['dx', '-x']],
    ['[^a]x', ['bx'], ['ax', 'x']],
    ['[.]x', ['.x'], ['ax']],
    ['[\\]]', [']'], ['\\']],
    ['[]', [], ['', '[]']],
    ['a\\*', ['a*'], ['ab']],
    ['(a|b)+', ['(a|b)+'], ['a', 'ab']],
    ['[a', ['[a'], ['a']],
  ])('%j matches the same names as on a server', (pattern, matching, others) => {
    const matches = matcherOf(pattern);
    expect(matching.filter((name) => !matches(name))).toEqual([]);
    expect(others.filter((name) => matches(name))).toEqual([]);
  });

  it('that is escaped matches only itself', () => {
    const matches = matcherOf(literally('a*[b]?\\'));
    expect([matches('a*[b]?\\'), matches('ab')]).toEqual([true, false]);
  });
});
