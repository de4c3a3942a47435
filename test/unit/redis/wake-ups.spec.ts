import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import type { RedisClient } from '../../../lib/redis/redis-client.interface.js';
import { WakeUps } from '../../../lib/redis/wake-ups.js';

/** A connection whose events the test makes. */
function rig() {
  const events = new EventEmitter();
  const client = Object.assign(events, {
    connect: async () => undefined,
    disconnect: () => undefined,
    subscribe: async () => 1,
  }) as unknown as RedisClient;
  const heard: (string | undefined)[] = [];
  const clock = new ManualClock();
  const wakeUps = new WakeUps(client, 'channel', (key) => heard.push(key), clock);
  return { events, heard, clock, wakeUps };
}

describe('the connection for wake-ups', () => {
  it('tells that some may have been missed when it is there, and that some will be when it breaks', async () => {
    const { events, heard, clock, wakeUps } = rig();
    expect(wakeUps.isListening).toBe(false);
    events.emit('ready');
    await clock.settle();
    expect([heard, wakeUps.isListening]).toEqual([[undefined], true]);
    events.emit('message', 'channel', 'lock:a');
    events.emit('close');
    expect([heard, wakeUps.isListening]).toEqual([[undefined, 'lock:a', undefined], false]);
  });

  it('says nothing when it cannot be opened again, or is closed on purpose', async () => {
    const { events, heard, clock, wakeUps } = rig();
    events.emit('close');
    events.emit('close');
    expect(heard).toEqual([]);
    events.emit('ready');
    await clock.settle();
    wakeUps.close();
    events.emit('close');
    expect(heard).toEqual([undefined]);
  });
});
