import { afterEach, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockService, RedlockModule } from 'nestjs-redlock';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { boot, closeAll, logs } from './support/applications.js';

afterEach(closeAll);

describe('An application whose connections are killed again and again', () => {
  it('logs the first loss and the last recovery of each master, and not every one in between', async () => {
    await using masters = await startMasters(3);
    const options = { masters: [...masters.urls], restartGuard: false, drainTimeout: 0 };
    const locks = (await boot({ imports: [RedlockModule.forRoot(options)] })).get(LockService);
    await eventually(() => logs.some((line) => line.includes('locks are available')));
    logs.length = 0;
    const operators = masters.servers.map(({ port }) => new Redis(port, '127.0.0.1'));
    for (let kills = 0; kills < 150; kills++) {
      await Promise.all(
        operators.map((operator) => operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
      );
      // The storm itself needs its time.
      await sleep(20);
    }
    operators.forEach((operator) => operator.disconnect());
    const names = masters.servers.map(({ port }) => `127.0.0.1:${port}`);
    const linesOf = (name: string): string[] =>
      logs.filter((line) => new RegExp(`(?:to|master) ${name}\\b`).test(line));
    await eventually(
      () => names.every((name) => linesOf(name).at(-1)?.startsWith(`log connected to ${name} again`)),
      30_000,
    );
    for (const name of names) {
      expect(linesOf(name)[0]).toMatch(/^warn lost the connection to /);
      expect(linesOf(name).length).toBeLessThan(16);
    }
    await eventually(() => locks.status().canVote);
    const quorum = logs.filter((line) => /no lock can be taken|locks can be taken again/.test(line));
    expect(quorum.length).toBeLessThan(16);
    await eventually(() => {
      const last = logs.findLast((line) => /no lock can be taken|locks can be taken again/.test(line));
      return last === undefined || last.startsWith('log locks can be taken again');
    }, 30_000);
  }, 90_000);
});
