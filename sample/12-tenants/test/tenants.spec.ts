import { describe, expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { LockService, type RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { closeLater, twoInstances } from '../../../test/support/instances.js';
import { AppModule } from '../src/app.module.js';
import type { Payments } from '../src/payments.js';
import { parseTenantId, runFor, type TenantId, tenantKey } from '../src/tenant.js';

/** Two instances of the application with a payment provider that answers when the test lets it. */
function startTwo(options: Partial<RedlockModuleOptions> = {}) {
  const locks = { masters: memoryMasters(3), ...options };
  return twoInstances((gate) => start(locks, { charge: () => gate.pass(), refund: () => gate.pass() }));
}

/** One instance, as its clients see it. `post` resolves with the status. */
interface Instance {
  readonly locks: LockService;
  post(path: string, headers: Record<string, string>): Promise<number>;
}

async function start(options: RedlockModuleOptions, payments: Payments): Promise<Instance> {
  const app = await NestFactory.create(AppModule.register(options, payments), { logger: false });
  closeLater(() => app.close());
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const post = async (path: string, headers: Record<string, string>): Promise<number> => {
    const response = await fetch(url + path, { method: 'POST', headers });
    await response.arrayBuffer();
    return response.status;
  };
  return { locks: app.get(LockService), post };
}

const acme = { 'x-tenant': 'acme' };
const globex = { 'x-tenant': 'globex' };

describe('The same cart', () => {
  it('is two carts if it belongs to two tenants', async () => {
    const { gate, first, second } = await startTwo();
    const both = Promise.all([first.post('/carts/7/checkout', acme), second.post('/carts/7/checkout', globex)]);
    await gate.arrived(2);
    await expect(first.locks.inspect('tenant:acme:cart:7')).resolves.toMatchObject({ state: 'held' });
    await expect(first.locks.inspect('tenant:globex:cart:7')).resolves.toMatchObject({ state: 'held' });
    gate.open();
    await expect(both).resolves.toEqual([201, 201]);
  });

  it('is locked within one tenant, by any route and instance', async () => {
    const { gate, first, second } = await startTwo();
    const checkout = first.post('/carts/7/checkout', acme);
    await gate.arrived(1);
    await expect(second.post('/carts/7/checkout', acme)).resolves.toBe(423);
    await expect(second.post('/carts/7/cancellation', acme)).resolves.toBe(423);
    expect(gate.arrivals).toBe(1);
    gate.open();
    await expect(checkout).resolves.toBe(201);
  });

  it('is not locked within one tenant without locks, so the test above would detect a missing lock', async () => {
    const { gate, first, second } = await startTwo({ enabled: false });
    const both = Promise.all([first.post('/carts/7/checkout', acme), second.post('/carts/7/cancellation', acme)]);
    await gate.arrived(2);
    gate.open();
    await expect(both).resolves.toEqual([201, 201]);
    expect(gate.crowd).toBe(2);
  });
});

describe('A request', () => {
  it('is refused without a tenant, or with one that could be part of a key', async () => {
    const { gate, first } = await startTwo();
    await expect(first.post('/carts/7/checkout', {})).resolves.toBe(400);
    // Node joins two such headers to the last value.
    for (const tenant of ['', 'acme:cart', 'acme:', '*', 'Acme', 'a b', 'acme,globex']) {
      await expect(first.post('/carts/7/checkout', { 'x-tenant': tenant })).resolves.toBe(400);
    }
    expect(gate.arrivals).toBe(0);
  });
});

describe('A key', () => {
  const keyOf = (tenant: string, kind: 'cart' | 'order', id: string): string =>
    runFor(parseTenantId(tenant)!, () => tenantKey(kind, id));

  it.each(['a:b', '', '\0', 'a\0b', 'a\nb', ' ', '-a', 'a-', 'ä', 'a'.repeat(64), 7, undefined, ['a']])(
    'cannot contain the tenant %j',
    (tenant) => {
      expect(parseTenantId(tenant)).toBeUndefined();
    },
  );

  it('differs for each tenant, kind and id, whatever the id contains', () => {
    const ids = ['7', 'cart:7', '7:order', ':', '%3A', '%253A', '', '\0', 'a/b', 'tenant:b:cart:7', '7 ', 'ä'];
    const keys = ['a', 'b', 'a-b', 'tenant'].flatMap((tenant) =>
      (['cart', 'order'] as const).flatMap((kind) => ids.map((id) => keyOf(tenant, kind, id))),
    );
    expect(new Set(keys).size).toBe(4 * 2 * ids.length);
    for (const key of keys) expect(key.split(':')).toHaveLength(4);
  });

  it('is refused outside of a request, so that tenants do not share it', () => {
    expect(() => tenantKey('cart', '7')).toThrow(/No tenant/);
  });

  it('follows the request through everything that it awaits', async () => {
    const keys = await Promise.all(
      ['a', 'b'].map((tenant) =>
        runFor(tenant as TenantId, async () => {
          await Promise.resolve();
          return tenantKey('order', '1');
        }),
      ),
    );
    expect(keys).toEqual(['tenant:a:order:1', 'tenant:b:order:1']);
  });
});
