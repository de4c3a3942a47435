import { describe, expect, it } from '@jest/globals';
import { type INestApplicationContext, Injectable, type Provider } from '@nestjs/common';
import { LockService, RedlockModule, type RedlockModuleOptions, WithLock } from 'nestjs-redlock';
import { withLocks } from 'nestjs-redlock/testing';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { boot, refusalOf } from './support/applications.js';
import { Locks } from './support/locks.js';

const masters = sharedMasters(2);

@Injectable()
class Ledger {
  @WithLock('ledger', { ttl: '5s', wait: 0 })
  async post(): Promise<string> {
    return 'posted';
  }
}

function start(ledger: object | Provider, options: Partial<RedlockModuleOptions> = {}) {
  const provider = 'provide' in ledger ? ledger : { provide: 'LEDGER', useValue: ledger };
  const all = { masters: [masters.urls[0]!], restartGuard: false, ...options };
  return boot({ imports: [RedlockModule.forRoot(all)], providers: [provider as Provider] });
}

async function expectLocked(ledger: Ledger, apps: readonly INestApplicationContext[]): Promise<void> {
  await expect(ledger.post()).resolves.toBe('posted');
  for (const app of apps) {
    await using _ = await app.get(LockService).acquire('ledger', '5s');
    await expect(ledger.post()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
  }
}

describe('One object of several applications of a process', () => {
  it.each([
    [0, 1, 2],
    [2, 1, 0],
    [1, 0, 2],
  ])('locks at any that lives, if they lock the same keys: they end in the order %i, %i, %i', async (...order) => {
    const ledger = new Ledger();
    const apps = [await start(ledger), await start(ledger), await start(ledger)];
    let living = apps;
    for (const index of order) {
      await expectLocked(ledger, living);
      await apps[index]!.close();
      living = living.filter((app) => app !== apps[index]);
    }
    await expect(ledger.post()).rejects.toMatchObject({ code: 'LOCK_SERVICE_STOPPED' });
    await expectLocked(ledger, [await start(ledger, { keyPrefix: 'next:' })]);
  });

  it.each<[string, (ledger: Ledger) => Provider]>([
    ['a value', (ledger) => ({ provide: 'LEDGER', useValue: ledger })],
    ['made by a factory', (ledger) => ({ provide: 'LEDGER', useFactory: () => ledger })],
  ])('as %s, that Nest built in one of them, locks at the other one after the end of that', async (_, provider) => {
    const home = await start({ provide: Ledger, useClass: Ledger } as Provider);
    const guest = await start(provider(home.get(Ledger)));
    await expectLocked(guest.get('LEDGER'), [home, guest]);
    await home.close();
    await expectLocked(guest.get('LEDGER'), [guest]);
  });

  it.each<[string, () => Partial<RedlockModuleOptions>]>([
    ['another prefix', () => ({ keyPrefix: 'admin:' })],
    ['another master', () => ({ masters: [masters.urls[1]!] })],
    ['another database of the master', () => ({ masters: [`${masters.urls[0]!}/1`] })],
    ['a master in memory', () => ({ masters: 'memory' })],
    ['locking disabled', () => ({ enabled: false })],
  ])('is refused at the second boot, with %s, and the first one goes on', async (_, options) => {
    const ledger = new Ledger();
    const first = await start(ledger);
    const { message } = await refusalOf(start(ledger, options()));
    expect(message).toMatch(/^provider LEDGER of class Ledger must not belong to two applications .*\(useClass or/);
    await expectLocked(ledger, [first]);
    await first.close();
    const second = await start(ledger, options());
    await expect(second.get<Ledger>('LEDGER').post()).resolves.toBe('posted');
  });

  it('keeps the service in memory that a test gave it', async () => {
    const ledger = withLocks(new Ledger());
    const locks = new Locks();
    const app = await boot({ imports: [locks.module()], providers: [{ provide: 'LEDGER', useValue: ledger }] });
    await using _ = await app.get(LockService).acquire('ledger', '5s');
    await expect(ledger.post()).resolves.toBe('posted');
  });
});
