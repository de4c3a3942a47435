import { afterEach, describe, expect, it } from '@jest/globals';
import { LockService, RedlockModule } from 'nestjs-redlock';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { boot, closeAll, logs } from './support/applications.js';

afterEach(closeAll);

/** The lines about connections and the quorum, in order, without reasons. */
function lines(): string[] {
  const about = /^(?:warn lost the connection to|log connected to|error no lock can be|log locks can be taken again)/;
  return logs
    .filter((line) => about.test(line))
    .map((line) => line.replace(/: (?:the|connect|read|Connection).*$/, ''));
}

describe('An application whose masters end one after the other', () => {
  it('logs each lost connection, the lost quorum, and their return', async () => {
    await using masters = await startMasters(3);
    const [first, second] = masters.servers;
    const events: string[] = [];
    const app = await boot({
      imports: [
        RedlockModule.forRoot({
          masters: [...masters.urls],
          ttl: '2s',
          maxTtl: '2s',
          observers: [
            {
              masterLost: (master) => events.push(`lost ${master}`),
              masterFound: (master) => events.push(`found ${master}`),
              quorumLost: (voting, all) => events.push(`quorum lost: ${voting} of ${all}`),
              quorumRestored: (voting, all) => events.push(`quorum restored: ${voting} of ${all}`),
            },
          ],
        }),
      ],
    });
    const locks = app.get(LockService);
    await eventually(() => locks.status().masters.every(({ state }) => state === 'voting'));
    const [a, b] = [`127.0.0.1:${first!.port}`, `127.0.0.1:${second!.port}`];

    await first!.kill();
    await eventually(() => lines().length === 1);
    expect(lines()).toEqual([`warn lost the connection to ${a}`]);
    await second!.kill();
    await eventually(() => lines().length === 3);
    expect(lines().slice(1)).toEqual([
      `warn lost the connection to ${b}`,
      'error no lock can be taken: 1 of 3 masters vote',
    ]);

    await first!.restart();
    await eventually(() => locks.status().canVote, 30_000);
    await eventually(() => lines().length === 5);
    expect(lines().slice(3)).toEqual([
      `log connected to ${a} again`,
      'log locks can be taken again: 2 of 3 masters vote',
    ]);
    expect(events).toEqual([
      ...[`lost ${a}`, `lost ${b}`, 'quorum lost: 1 of 3'],
      ...[`found ${a}`, 'quorum restored: 2 of 3'],
    ]);
  }, 60_000);

  it('logs nothing when it closes its connections itself', async () => {
    await using masters = await startMasters(3);
    const app = await boot({
      imports: [RedlockModule.forRoot({ masters: [...masters.urls], ttl: '2s', maxTtl: '2s' })],
    });
    await app.close();
    expect(logs.join()).toContain('locks need 2 of 3 masters');
    expect(lines()).toEqual([]);
  }, 30_000);
});
