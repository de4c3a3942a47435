import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it, jest } from '@jest/globals';
import { LockContext } from '../../../lib/nest/lock-context.js';

it('A lock context knows the locks of the running call chain, innermost first', async () => {
  const context = new LockContext<string>();
  await context.run('outer', async () => {
    await Promise.resolve();
    context.run('inner', () => expect(context.find(() => true)).toBe('inner'));
    expect(context.find((held) => held !== 'inner')).toBe('outer');
    expect(context.find((held) => held === 'inner')).toBeUndefined();
  });
  expect(context.find(() => true)).toBeUndefined();
});

it('A lock context costs the process nothing after it was closed', () => {
  const disable = jest.spyOn(AsyncLocalStorage.prototype, 'disable');
  const context = new LockContext<string>();
  context.run('held', () => {
    context.close();
    expect(context.find(() => true)).toBeUndefined();
  });
  expect(disable).toHaveBeenCalledTimes(1);
  disable.mockRestore();
});
