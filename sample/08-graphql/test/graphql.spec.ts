import { describe, expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import type { RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { closeLater, twoInstances } from '../../../test/support/instances.js';
import { AppModule } from '../src/app.module.js';
import type { Payments } from '../src/payments.js';

/** Two instances of the application with a payment provider that answers when the test lets it. */
function startTwo(options: Partial<RedlockModuleOptions> = {}) {
  const locks = { masters: memoryMasters(3), ...options };
  return twoInstances((gate) => start(locks, { charge: () => gate.pass() }));
}

/** Checks out a cart, and resolves with the response to the GraphQL client. */
type CheckOut = (cart: string) => Promise<unknown>;

async function start(locks: RedlockModuleOptions, payments: Payments): Promise<CheckOut> {
  const app = await NestFactory.create(AppModule.register(locks, payments), { logger: false });
  closeLater(() => app.close());
  await app.listen(0, '127.0.0.1');
  const url = `${await app.getUrl()}/graphql`;
  return async (cart) => {
    const query = `mutation ($cart: ID!) { checkOut(id: $cart) { id isPaid } }`;
    const body = JSON.stringify({ query, variables: { cart } });
    const response = await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    return response.json();
  };
}

/** All that the client gets. */
const refused = (message: string, extensions: object): unknown => ({
  data: null,
  errors: [{ message, locations: [expect.any(Object)], path: ['checkOut'], extensions }],
});

const paid = (id: string): unknown => ({ data: { checkOut: { id, isPaid: true } } });

describe('A locked mutation', () => {
  it('runs once at a time, and gives the second client an error code', async () => {
    const { gate, first, second } = await startTwo();
    const one = first('7');
    await gate.arrived(1);
    const extensions = { code: 'LOCK_NOT_ACQUIRED', retryAfter: expect.any(Number) };
    await expect(second('7')).resolves.toEqual(refused('Locked', extensions));
    expect(gate.arrivals).toBe(1);
    gate.open();
    await expect(one).resolves.toEqual(paid('7'));

    const again = second('7');
    await gate.arrived(2);
    gate.open();
    await expect(again).resolves.toEqual(paid('7'));
  });

  it('that another holder may have had at the same time tells the client a code, and nothing of the lock', async () => {
    const masters = memoryMasters(3);
    const charge = async () => masters.forEach((master) => master.flush());
    const checkOut = await start({ masters }, { charge });
    expect(await checkOut('7')).toEqual(refused('Internal Server Error', { code: 'LOCK_LOST' }));
  });

  it('tells the client of an outage when to come back, and no address', async () => {
    const masters = memoryMasters(3);
    const checkOut = await start({ masters, wait: 0 }, { charge: async () => undefined });
    masters.forEach((master) => master.takeDown());
    const extensions = { code: 'QUORUM_UNAVAILABLE', retryAfter: 1_000 };
    expect(await checkOut('7')).toEqual(refused('Service Unavailable', extensions));
  });

  it('is not blocked by other carts', async () => {
    const { gate, first, second } = await startTwo();
    const both = Promise.all([first('7'), second('8')]);
    await gate.arrived(2);
    gate.open();
    await expect(both).resolves.toEqual([paid('7'), paid('8')]);
  });

  it('runs twice at once without the lock, so the tests above would detect a missing lock', async () => {
    const { gate, first, second } = await startTwo({ enabled: false });
    const both = Promise.all([first('7'), second('7')]);
    await gate.arrived(2);
    gate.open();
    await expect(both).resolves.toEqual([paid('7'), paid('7')]);
    expect(gate.crowd).toBe(2);
  });
});
