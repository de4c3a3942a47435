import { describe, expect, it } from '@jest/globals';
import { FREE } from '../../../lib/redis/scripts/replies.js';
import type { MasterReply } from '../../../lib/masters/master.interface.js';
import { acquiring, extending, inspecting } from '../../support/ask.js';
import { fakeMaster } from '../support/fake-client.js';

/** A connection on which a request is asked that is not answered. */
async function asked(masterTimeout: '50ms' | '400ms') {
  const faked = fakeMaster({ masterTimeout });
  await faked.connect();
  const answers: MasterReply[] = [];
  const ask = async (): Promise<void> => {
    faked.master.ask(extending(['a'], 'secret'), (answer) => answers.push(answer));
    await faked.clock.settle();
  };
  await ask();
  return { ...faked, ask, answers };
}

// Protocol 4.7
describe('A connection on which something was asked and nothing arrives', () => {
  it.each([
    ['50ms', 1_000],
    ['400ms', 1_600],
  ] as const)(
    'is replaced after the longer of a second and four times `masterTimeout`: %s',
    async (masterTimeout, limit) => {
      const { clock, client } = await asked(masterTimeout);
      await clock.advance(limit - 1);
      expect(client.drops).toBe(0);
      await clock.advance(1);
      expect(client.drops).toBe(1);
    },
  );

  it('is replaced only after four times what its first call took, if that is longer: the network may be slow', async () => {
    const { clock, client, master, connect } = fakeMaster({ masterTimeout: '50ms' });
    await connect({}, 1_200);
    master.ask(extending(['a'], 'secret'), () => undefined);
    await clock.advance(4_799);
    expect(client.drops).toBe(0);
    await clock.advance(1);
    expect(client.drops).toBe(1);
  });

  it('is kept if the process was blocked, and the answer is read then', async () => {
    const { clock, client, last } = await asked('50ms');
    clock.stall(5_000);
    clock.arrived.push(() => last().resolve([-2]));
    await clock.advance(10_000);
    expect(client.drops).toBe(0);
  });

  it('is kept while answers arrive, also to other requests', async () => {
    const { clock, client, master, last } = await asked('50ms');
    for (let i = 0; i < 5; i++) {
      await clock.advance(600);
      master.ask(inspecting('b'), () => undefined);
      await clock.settle();
      last().resolve([FREE]);
      await clock.settle();
    }
    expect(client.drops).toBe(0);
  });

  it('needs one timer for any number of requests, and none once nothing is asked any more', async () => {
    const { clock, client, master, last } = await asked('50ms');
    last().resolve([FREE]);
    await clock.settle();
    for (let i = 0; i < 100; i++) master.ask(acquiring([`k${i}`], 'secret'), () => undefined);
    await clock.settle();
    expect(clock.pendingTimers).toBe(1);
    client.lose();
    await clock.advance(2_000);
    expect(clock.pendingTimers).toBe(0);
  });
});
