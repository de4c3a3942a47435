import { beforeEach, describe, expect, it } from '@jest/globals';
import { NewInstallation } from '../../../../lib/redis/guard/new-installation.js';
import { generationFrom } from '../../../../lib/core/state/generation.js';
import { GuardParts } from '../../support/guard-parts.js';
import { type FakeServer, threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let servers: ReturnType<typeof threeServers>;
let parts: GuardParts;
let installation: NewInstallation;

beforeEach(() => {
  clock = new TestClock();
  servers = threeServers(clock);
  parts = new GuardParts(clock, servers);
  installation = new NewInstallation(parts.group);
});

/** Gives a server the marker of data that was unknown until now. */
function renew(server: FakeServer, wait = 30_000): void {
  server.quarantine(wait, { generation: generationFrom(`${server.name} data`, server.time), first: 'empty' });
}

const observe = () => installation.observe(parts.read());

describe('NewInstallation', () => {
  it('takes two readings that show the same new markers on all masters', () => {
    for (const server of servers) renew(server);
    expect([observe(), observe()]).toEqual(['read again', 'new']);
  });

  it('begins anew when a master has lost its data between two readings', () => {
    for (const server of servers) renew(server);
    expect(observe()).toBe('read again');
    renew(servers[1]);
    expect([observe(), observe()]).toEqual(['read again', 'new']);
  });

  it('is over when all masters have it in their markers', () => {
    for (const server of servers) renew(server);
    observe();
    for (const server of servers) server.change({ first: 1 });
    expect(observe()).toBeUndefined();
  });

  it.each<[string, (server: FakeServer) => void]>([
    ['one of them has voted for long', (server) => server.mark()],
    ['the quarantine of one of them is over', (server) => renew(server, -1)],
    [
      'one of them was restarted with old data',
      (server) => {
        renew(server);
        server.change({ first: '' });
      },
    ],
    ['only the clock of one of them was in doubt', (server) => server.quarantine(30_000, { generation: 'older@5' })],
  ])('is not seen if %s', (_, change) => {
    const [one, ...others] = servers;
    for (const server of others) renew(server);
    change(one);
    expect([observe(), observe()]).toEqual([undefined, undefined]);
  });

  it('is not seen while a master does not answer', () => {
    const [, ...others] = servers;
    for (const server of servers) renew(server);
    const some = (): unknown => installation.observe(parts.read(others));
    expect([some(), some()]).toEqual([undefined, undefined]);
  });

  it('is seen although a process with a lock has vetoed an early vote', () => {
    for (const server of servers) renew(server);
    observe();
    servers[2].change({ vetoed: 1 });
    expect(observe()).toBe('new');
  });
});
