import type { AddressInfo, Server } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { ClientProxyFactory, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import type { RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { lastValueFrom } from 'rxjs';
import { Refusals } from '../../../test/support/gate.js';
import { closeLater, twoInstances } from '../../../test/support/instances.js';
import type { Booking, Receipt } from '../src/accounts.controller.js';
import { AppModule } from '../src/app.module.js';
import type { Bank } from '../src/bank.js';

const host = '127.0.0.1';
/** Two instances of the service with a bank that answers when the test lets it. */
async function startTwo(options: Partial<RedlockModuleOptions> = {}) {
  const refusals = new Refusals();
  const locks = { masters: memoryMasters(3), observers: [refusals], ...options };
  return { refusals, ...(await twoInstances((gate) => start(locks, { book: () => gate.pass() }))) };
}

/** Sends a message to an instance, and resolves with its answer. */
type Send = (pattern: string, booking: Booking) => Promise<Receipt>;

async function start(locks: RedlockModuleOptions, bank: Bank): Promise<Send> {
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule.register(locks, bank), {
    transport: Transport.TCP,
    options: { host, port: 0 },
    logger: false,
  });
  closeLater(() => app.close());
  await app.listen();
  const { port } = app.unwrap<Server>().address() as AddressInfo;
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host, port } });
  closeLater(() => client.close());
  return (pattern, booking) => {
    const answer = lastValueFrom(client.send<Receipt>(pattern, booking));
    // A failed test does not wait for its answers.
    answer.catch(() => undefined);
    return answer;
  };
}

const anna: Booking = { account: 'anna', amount: 10 };
const bert: Booking = { account: 'bert', amount: 20 };

describe('A message handler with @WithLock', () => {
  it('waits while another instance works on the same account', async () => {
    const { gate, refusals, first, second } = await startTwo();
    const one = first('accounts.deposit', anna);
    await gate.arrived(1);
    const refused = refusals.next();
    const two = second('accounts.deposit', anna);
    await refused;
    expect(gate.arrivals).toBe(1);

    gate.open();
    await expect(one).resolves.toEqual({ booked: 10 });
    await gate.arrived(2);
    gate.open();
    await expect(two).resolves.toEqual({ booked: 10 });
    expect(gate.crowd).toBe(1);
  });

  it('does not wait for other accounts', async () => {
    const { gate, first, second } = await startTwo();
    const both = Promise.all([first('accounts.deposit', anna), second('accounts.deposit', bert)]);
    await gate.arrived(2);
    gate.open();
    await expect(both).resolves.toEqual([{ booked: 10 }, { booked: 20 }]);
    expect(gate.crowd).toBe(2);
  });

  it('overlaps without the lock, so the tests above would detect a missing lock', async () => {
    const { gate, first, second } = await startTwo({ enabled: false });
    const both = Promise.all([first('accounts.deposit', anna), second('accounts.deposit', anna)]);
    await gate.arrived(2);
    gate.open();
    await both;
    expect(gate.crowd).toBe(2);
  });
});

describe('A message handler with LockInterceptor that does not wait', () => {
  it('reports to the caller that any handler has locked the account', async () => {
    const { gate, first, second } = await startTwo();
    const one = first('accounts.deposit', anna);
    await gate.arrived(1);
    await expect(second('accounts.close', anna)).rejects.toEqual({
      status: 'error',
      code: 'LOCK_NOT_ACQUIRED',
      message: 'Locked',
      retryAfter: expect.any(Number),
    });
    expect(gate.arrivals).toBe(1);

    gate.open();
    await one;
    const close = second('accounts.close', anna);
    await gate.arrived(2);
    gate.open();
    await expect(close).resolves.toEqual({ booked: -10 });
  });
});
