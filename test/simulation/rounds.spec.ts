// A clause that no schedule needs: today, each round asks all masters in one turn of the event loop.
import { describe, expect, it } from '@jest/globals';
import type { MasterReply } from '../../lib/masters/master.interface.js';
import { settlePromises } from './engine/microtasks.js';
import { EVERYTHING, generate } from './generator.js';
import { World } from './world.js';

describe('A request of a round', () => {
  it('goes over a connection that stood when the round began, and over no younger one', async () => {
    const schedule = generate(1, { ...EVERYTHING, known: 1, fresh: 0, rolling: 0, guard: [true], faults: [] });
    const replies = await new Promise<MasterReply[]>((resolve) => {
      // Outside of any promise reaction.
      setImmediate(() => {
        const world = new World({ ...schedule, operations: [] }, new Set(), undefined);
        const run = (until: number): void => {
          while (world.scheduler.step(until)) settlePromises();
        };
        run(3_000);
        const [node] = world.nodes;
        const master = node?.redlock.masters.all[0];
        const answers: MasterReply[] = [];
        for (const since of [-1, node?.process.read().monotonic ?? 0]) {
          const request = {
            op: 'acquire',
            keys: ['a'],
            token: `t${since}`,
            ttl: 1_000,
            since,
            withdrawn: false,
          } as const;
          master?.ask(request, (answer) => answers.push(answer));
        }
        settlePromises();
        run(3_100);
        resolve(answers);
      });
    });
    const younger = { kind: 'unreachable', reason: 'its connection is younger than the request', sent: false };
    expect(replies).toEqual([younger, { kind: 'granted' }]);
  });
});
