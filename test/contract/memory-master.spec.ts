import { describe } from '@jest/globals';
import { SystemClock } from '../../lib/runtime/system-clock.js';
import type { RedlockOptions } from '../../lib/settings/options.js';
import { MemoryMaster } from '../../lib/memory/memory-master.js';
import { Contender } from '../support/redlocks.js';
import { ELSEWHERE, meetsExpectations, UNGUARDED } from './expectations.contract.js';
import { masterContract } from './master.contract.js';
import { sharedWaitingContract } from './sharing-waiting.contract.js';
import { sharingContract } from './sharing.contract.js';
import { stateContract } from './state.contract.js';
import { waitingContract } from './waiting.contract.js';

masterContract('MemoryMaster', async () => {
  const master = new MemoryMaster(new SystemClock());
  return {
    master: () => master,
    pause: () => master.pause(),
    resume: () => master.resume(),
    takeDown: async () => master.takeDown(),
    bringUp: async () => master.bringUp(),
    end: async () => undefined,
  };
});

for (const contract of [sharingContract, stateContract, waitingContract, sharedWaitingContract]) {
  contract('MemoryMaster', async () => {
    const master = new MemoryMaster(new SystemClock());
    return { master: () => master, end: async () => undefined };
  });
}

describe('Redlock over three MemoryMasters', () => {
  meetsExpectations(async () => {
    const masters = Array.from({ length: 3 }, (_, i) => new MemoryMaster(new SystemClock(), `memory-${i}`));
    const contender = (options: RedlockOptions): Contender => new Contender(masters, options);
    return {
      contenders: [contender(UNGUARDED), contender(UNGUARDED), contender(ELSEWHERE)],
      end: async () => undefined,
    };
  });
});
