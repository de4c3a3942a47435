import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import type { RedisClient } from '../../../lib/redis/redis-client.interface.js';
import { NotificationChannel } from '../../../lib/redis/notification-channel.js';

/** A clock with a socket: data that has arrived is read and processed before the clock calls back. */
class SocketClock extends ManualClock {
  readonly arrived: (() => void)[] = [];

  override afterInput(callback: () => void): void {
    for (const read of this.arrived.splice(0)) read();
    setImmediate(callback);
  }
}

/** A connection whose events the test emits. */
function rig() {
  const events = new EventEmitter();
  const seen = { subscriptions: 0, disconnects: 0, answer: (): Promise<number> => Promise.resolve(1) };
  const client = Object.assign(events, {
    connect: async () => undefined,
    disconnect: (reconnect?: boolean) => {
      if (reconnect) seen.disconnects++;
    },
    subscribe: () => {
      seen.subscriptions++;
      return seen.answer();
    },
  }) as unknown as RedisClient;
  const heard: (string | undefined)[] = [];
  const clock = new SocketClock();
  const notifications = new NotificationChannel(client, 'channel', (key) => heard.push(key), clock);
  return { events, heard, clock, notifications, seen };
}

/** A connection that is open and listens. */
async function listeningRig() {
  const listening = rig();
  listening.events.emit('connect');
  listening.events.emit('ready');
  await listening.clock.settle();
  return listening;
}

/** Tests the connection just within the patience, in milliseconds, and just after it. */
async function expectDroppedAfter(
  patience: number,
  notifications: NotificationChannel,
  { clock, seen }: Pick<ReturnType<typeof rig>, 'clock' | 'seen'>,
): Promise<void> {
  for (const [delay, disconnects] of [
    [patience, 0],
    [1, 1],
  ] as const) {
    await clock.advance(delay);
    notifications.test();
    await clock.settle();
    expect(seen.disconnects).toBe(disconnects);
  }
}

describe('The connection for notifications', () => {
  it('reports that notifications may have been missed when it opens, and when it breaks', async () => {
    const { events, heard, clock, notifications } = rig();
    expect(notifications.isListening).toBe(false);
    events.emit('ready');
    await clock.settle();
    expect([heard, notifications.isListening]).toEqual([[undefined], true]);
    events.emit('message', 'channel', 'lock:a');
    events.emit('close');
    expect([heard, notifications.isListening]).toEqual([[undefined, 'lock:a', undefined], false]);
  });

  it('survives an error, which the connection for requests reports', async () => {
    const { events, heard, notifications } = await listeningRig();
    expect(() => events.emit('error', new Error('connect ECONNREFUSED'))).not.toThrow();
    expect([heard, notifications.isListening]).toEqual([[undefined], true]);
  });

  it('reports nothing when it cannot be opened again, or is closed on purpose', async () => {
    const { events, heard, clock, notifications } = rig();
    events.emit('close');
    events.emit('close');
    expect(heard).toEqual([]);
    events.emit('ready');
    await clock.settle();
    notifications.close();
    events.emit('close');
    expect(heard).toEqual([undefined]);
  });

  it('is tested when it has been quiet while something waits, and does not report that', async () => {
    const { heard, clock, notifications, seen } = await listeningRig();
    expect(seen.subscriptions).toBe(1);
    for (let look = 1; look <= 5; look++) {
      await clock.advance(501);
      notifications.test();
      notifications.test();
      await clock.settle();
      expect(seen.subscriptions).toBe(1 + look);
    }
    expect(heard).toEqual([undefined]);
    expect(seen.disconnects).toBe(0);
  });

  it('is not tested while it wakes waiters, or while nothing waits', async () => {
    const { events, clock, notifications, seen } = await listeningRig();
    for (let look = 1; look <= 5; look++) {
      await clock.advance(400);
      events.emit('message', 'channel', 'lock:a');
      notifications.test();
    }
    await clock.advance(60_000);
    expect(seen.subscriptions).toBe(1);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is dropped when the server leaves a test unanswered, and works again afterwards', async () => {
    const { events, heard, clock, notifications, seen } = await listeningRig();
    const { answer } = seen;
    seen.answer = () => new Promise(() => undefined);
    await clock.advance(501);
    notifications.test();
    await expectDroppedAfter(500, notifications, { clock, seen });
    seen.answer = answer;
    events.emit('close');
    expect([heard, notifications.isListening]).toEqual([[undefined, undefined], false]);
    events.emit('connect');
    events.emit('ready');
    await clock.settle();
    expect([heard, notifications.isListening]).toEqual([[undefined, undefined, undefined], true]);
    notifications.test();
    await clock.settle();
    expect(seen.disconnects).toBe(1);
  });

  it('is kept when the answer waits in the socket of a process that stalled', async () => {
    const { clock, notifications, seen } = await listeningRig();
    seen.answer = () => new Promise((resolve) => clock.arrived.push(() => resolve(1)));
    await clock.advance(501);
    notifications.test();
    clock.stall(60_000);
    notifications.test();
    await clock.settle();
    expect(seen.disconnects).toBe(0);
    expect(seen.subscriptions).toBe(2);
  });

  it('is dropped when the server accepts it and does not become ready', async () => {
    const { events, clock, notifications, seen } = rig();
    events.emit('connect');
    await expectDroppedAfter(10_000, notifications, { clock, seen });
  });
});
