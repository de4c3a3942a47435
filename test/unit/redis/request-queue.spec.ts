import { describe, expect, it } from '@jest/globals';
import { MOST_CHARACTERS, MOST_NAMES } from '../../../lib/core/settings/resources.js';
import { type PendingRequest, RequestQueue } from '../../../lib/redis/request-queue.js';
import { TestClock } from '../support/test-clock.js';

const nothing = (): void => undefined;

/** A queue, and the number of keys of each request in each command that it has sent. */
function rig() {
  const clock = new TestClock();
  const sent: number[][] = [];
  const send = (asked: readonly PendingRequest[]) => sent.push(asked.map(({ request }) => request.keys.length));
  const queue = new RequestQueue({ clock, isAlone: false, send });
  const add = (...keys: string[]) => queue.add({ request: { op: 'inspect', keys }, reply: nothing });
  const addKeys = (count: number, length = 1) => add(...Array.from({ length: count }, () => 'x'.repeat(length)));
  /** The next requests are gathered: one is under way. */
  addKeys(1);
  sent.length = 0;
  const probe = () => queue.add({ request: { op: 'probe', keys: ['p'] }, reply: nothing });
  return { clock, sent, addKeys, probe };
}

// Protocol 4.8
describe('Requests of one turn', () => {
  it('share a command as long as they have no more keys than one request may have', async () => {
    const { clock, sent, addKeys } = rig();
    addKeys(MOST_NAMES - 1);
    addKeys(1);
    addKeys(1);
    await clock.settle();
    expect(sent).toEqual([[MOST_NAMES - 1, 1], [1]]);
  });

  it('share a command as long as their keys have no more characters than those of one request may have', async () => {
    const { clock, sent, addKeys } = rig();
    addKeys(1, MOST_CHARACTERS - 1);
    addKeys(1);
    addKeys(1);
    await clock.settle();
    expect(sent).toEqual([[1, 1], [1]]);
  });

  it('are sent at once when there are 128, and nothing is sent after them', async () => {
    const { clock, sent, addKeys } = rig();
    for (let i = 0; i < 127; i++) addKeys(1);
    expect(sent).toEqual([]);
    addKeys(1);
    await clock.settle();
    expect(sent).toEqual([Array.from({ length: 128 }, () => 1)]);
  });

  it('do not share a command with a probe, and keep their order', async () => {
    const { clock, sent, addKeys, probe } = rig();
    addKeys(2);
    addKeys(3);
    probe();
    addKeys(4);
    addKeys(5);
    await clock.settle();
    expect(sent).toEqual([[2, 3], [1], [4, 5]]);
  });
});
