import { describe, expect, it } from '@jest/globals';
import { acquiring } from '../../support/ask.js';
import { fakeMaster } from '../support/fake-client.js';

/** A connection that has been open for so many milliseconds. */
async function openFor(milliseconds: number) {
  const rig = fakeMaster();
  void rig.master.connect();
  await rig.connect();
  await rig.clock.advance(milliseconds);
  return rig;
}

describe('A connection that ends while nothing is asked', () => {
  it('is no news if the next attempt opens it, and then another one may end so', async () => {
    const { master, client, clock, connect, events } = await openFor(1_000);
    for (let count = 0; count < 3; count++) {
      client.lose();
      expect(master.problem()).toMatchObject({ reason: 'the connection broke', sent: false });
      await clock.advance(10);
      await connect();
      expect(master.problem()).toBeUndefined();
      await clock.advance(1_000);
    }
    expect(events).toEqual([]);
  });

  it('is reported once if the next attempt fails', async () => {
    const { client, events } = await openFor(1_000);
    client.lose();
    client.lose();
    client.lose();
    expect(events).toEqual(['lost']);
  });

  it('is reported once if the next attempt takes a second', async () => {
    const { client, clock, events } = await openFor(1_000);
    client.lose();
    await clock.advance(999);
    expect(events).toEqual([]);
    await clock.advance(1);
    client.lose();
    expect(events).toEqual(['lost']);
  });

  it('is reported at once if it is younger than any idle time-out, or if an answer is awaited', async () => {
    const young = await openFor(999);
    young.client.lose();
    expect(young.events).toEqual(['lost']);
    const busy = await openFor(1_000);
    busy.master.ask(acquiring(['a'], 'token'), () => undefined);
    busy.client.lose();
    expect(busy.events).toEqual(['lost']);
  });
});
