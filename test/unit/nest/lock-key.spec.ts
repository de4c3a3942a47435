import { describe, expect, it } from '@jest/globals';
import { RedlockConfigError } from '../../../lib/core/errors.js';
import { resolveComputedKey, resolveFixedKey } from '../../../lib/nest/lock-key.js';

const WHERE = '@WithLock on Orders.ship';

describe('resolveFixedKey', () => {
  it.each([
    ['order:{id}', '{id}', '(id: string) => `order:${id}`'],
    ['order:${id}', '${id}', '(id: string) => `order:${id}`'],
    ['order:#{id}', '#{id}', '(id: string) => `order:${id}`'],
    ['order:{0}', '{0}', '(argument0: string) => `order:${argument0}`'],
    ['orders/:orderId/lines', ':orderId', '(orderId: string) => `orders/${orderId}/lines`'],
    ['order::id', ':id', '(id: string) => `order:${id}`'],
    ['order:id', ':id', '(id: string) => `order:${id}`'],
  ])('refuses %j, and shows the function to write instead', (key, placeholder, written) => {
    expect(() => resolveFixedKey(WHERE, ['stock', key])).toThrow(RedlockConfigError);
    expect(() => resolveFixedKey(WHERE, ['stock', key])).toThrow(
      `${WHERE}: key must not contain ${placeholder}, which nothing replaces: write a function, such as ${written}, ` +
        `got "${key}"`,
    );
  });

  it('shows a function of the context for an interceptor', () => {
    expect(() => resolveFixedKey('LockInterceptor', 'cart:{id}', 'context: ExecutionContext')).toThrow(
      'such as (context: ExecutionContext) => `cart:${...}`',
    );
  });

  it.each(['report:daily', 'order:ids', 'a:b:c', 'C:/work', '10:30', 'id', 'identity:idle', '{}', 'f(x) { y }'])(
    'accepts %j, which has no placeholder',
    (key) => {
      expect(resolveFixedKey(WHERE, key)).toEqual([key]);
    },
  );

  it('refuses a name that is no name', () => {
    expect(() => resolveFixedKey(WHERE, '')).toThrow(`${WHERE}: key must be a non-empty string`);
  });
});

describe('resolveComputedKey', () => {
  it('accepts braces, because a function has already filled in its values', () => {
    expect(resolveComputedKey(WHERE, ['{tenant}:cart', 'route/:id'])).toEqual(['{tenant}:cart', 'route/:id']);
  });

  it.each([
    ['order:undefined', 'must not contain undefined: a value that the name is made of is missing'],
    ['undefined', 'must not contain undefined'],
    ['order:[object Object]', 'must not contain [object Object]: name one of its properties'],
  ])('refuses %j, because all calls with that mistake would share one lock', (key, message) => {
    expect(() => resolveComputedKey(WHERE, key)).toThrow(`${WHERE}: key ${message}`);
  });

  it('accepts a name in which the word is a part of another word', () => {
    expect(resolveComputedKey(WHERE, 'undefinedBehaviour')).toEqual(['undefinedBehaviour']);
  });
});
