import { describe, expect, it } from '@jest/globals';
import { WithLock } from 'nestjs-redlock';
import { memoryLockService, withLocks } from 'nestjs-redlock/testing';

class OrderService {
  shipped = 0;

  constructor(readonly by: string) {}

  @WithLock((id: string) => `order:${id}`, { ttl: '10s', wait: 0 })
  async ship(id: string): Promise<string> {
    this.shipped += 1;
    return `${id} by ${this.by}`;
  }
}

class Express extends OrderService {
  @WithLock('bill', { ttl: '10s', wait: 0, service: 'billing' })
  async bill(): Promise<string> {
    return 'billed';
  }
}

const NOT_ACQUIRED = expect.objectContaining({ code: 'LOCK_NOT_ACQUIRED' });

describe('withLocks', () => {
  it('returns the same object, whose methods take their locks from the given service', async () => {
    const locks = memoryLockService();
    const orders = new OrderService('ship');
    expect(withLocks(orders, locks)).toBe(orders);
    await expect(orders.ship('7')).resolves.toBe('7 by ship');
    await using _ = await locks.acquire('order:7');
    await expect(orders.ship('7')).rejects.toEqual(NOT_ACQUIRED);
    await expect(orders.ship('8')).resolves.toBe('8 by ship');
    expect(orders.shipped).toBe(2);
  });

  it('takes a lock service of its own for each object by default', async () => {
    const [one, other] = [withLocks(new OrderService('ship')), withLocks(new OrderService('train'))];
    await expect(Promise.all([one.ship('7'), other.ship('7')])).resolves.toEqual(['7 by ship', '7 by train']);
    await expect(Promise.all([one.ship('7'), one.ship('7')])).rejects.toEqual(NOT_ACQUIRED);
  });

  it('serves inherited methods, and those that name another service', async () => {
    const locks = memoryLockService();
    const express = withLocks(new Express('air'), locks);
    await expect(express.ship('7')).resolves.toBe('7 by air');
    await using _ = await locks.acquire('bill');
    await expect(express.bill()).rejects.toEqual(NOT_ACQUIRED);
  });

  it('replaces the service of an object that has one', async () => {
    const [first, second] = [memoryLockService(), memoryLockService()];
    const orders = withLocks(withLocks(new OrderService('ship'), first), second);
    await using _first = await first.acquire('order:7');
    await expect(orders.ship('7')).resolves.toBe('7 by ship');
  });

  it.each<[string, unknown, RegExp]>([
    ['the class', OrderService, /^withLocks needs an object, as in withLocks\(new OrderService\(\)\)/],
    ['null', null, /^withLocks needs an object, as in withLocks\(new OrderService\(\)\)/],
    ['an object without @WithLock', { orders: 1 }, /^withLocks needs an object whose class has a @WithLock method/],
  ])('refuses %s', (_, object, message) => expect(() => withLocks(object as object)).toThrow(message));

  it('refuses a mock instead of the lock service, and names the remedy', () => {
    const mock = { hold: () => undefined, check: () => undefined };
    expect(() => withLocks(new OrderService('ship'), mock as never)).toThrow(
      /^@WithLock on OrderService.ship cannot lock with a mock.*memoryLockService\(\)/,
    );
  });

  it('refuses options of @WithLock that the lock service would refuse at boot', () => {
    class Short {
      @WithLock('a', 9)
      async run(): Promise<void> {}
    }
    expect(() => withLocks(new Short())).toThrow(expect.objectContaining({ option: '@WithLock on Short.run: ttl' }));
  });
});
