import { describe } from '@jest/globals';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { redisMaster } from '../../lib/redis/master-source.js';
import type { RedisMasterSource } from '../../lib/redis/source.interface.js';
import { startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { ELSEWHERE, meetsExpectations, UNGUARDED } from './expectations.contract.js';
import { connectionContract, masterContract, type MasterStage } from './master.contract.js';
import { contextOf } from '../support/context.js';
import { sharedWaitingContract } from './sharing-waiting.contract.js';
import { sharingContract } from './sharing.contract.js';
import { stateContract } from './state.contract.js';
import { waitingContract } from './waiting.contract.js';

const sources: Record<string, (server: RedisServer) => RedisMasterSource> = {
  'URL, ioredis 6': (server) => server.url,
  'client of ioredis 5': ({ port }) => new Redis5(port, '127.0.0.1', { lazyConnect: true }),
};

for (const [kind, sourceOf] of Object.entries(sources)) {
  for (const contract of [masterContract, connectionContract, stateContract, sharingContract]) {
    contract(`RedisMaster (${kind})`, () => stage(sourceOf));
  }

  for (const contract of [waitingContract, sharedWaitingContract]) {
    contract(`RedisMaster (${kind})`, async () => {
      const server = await RedisServer.start();
      const source = sourceOf(server);
      // Receives everything that is published, but is not one of the waiters.
      const monitor = new Redis(server.port, '127.0.0.1');
      await monitor.psubscribe('*');
      const end = async (): Promise<void> => {
        monitor.disconnect();
        await server.stop();
      };
      return { master: () => redisMaster('masters[0]', source, contextOf()), end };
    });
  }
}

describe('Redlock over three RedisMasters', () => {
  meetsExpectations(async () => {
    const masters = await startMasters(3);
    const [one, two, elsewhere] = await Promise.all(
      [UNGUARDED, UNGUARDED, ELSEWHERE].map((options) => Contender.on(masters.urls, options)),
    );
    return {
      contenders: [one!, two!, elsewhere!],
      end: () => masters.stop(),
    };
  });
});

async function stage(sourceOf: (server: RedisServer) => RedisMasterSource): Promise<MasterStage> {
  const server = await RedisServer.start();
  const source = sourceOf(server);
  return {
    master: () => redisMaster('masters[0]', source, contextOf()),
    pause: () => server.pause(),
    resume: () => server.resume(),
    takeDown: () => server.kill(),
    bringUp: async () => {
      if (server.pid === undefined) await server.restart();
    },
    end: () => server.stop(),
  };
}
