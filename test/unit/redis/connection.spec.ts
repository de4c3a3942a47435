import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import {
  closedEarly,
  EXPECTS_TLS,
  IS_HTTP,
  LACKS_TLS,
  type Language,
  problemFrom,
  problemWith,
  reasonOf,
} from '../../../lib/redis/connection-problem.js';
import { NotificationChannel } from '../../../lib/redis/notification-channel.js';
import type { RedisClient } from '../../../lib/redis/redis-client.interface.js';

const CONTEXT = { usesTls: false, hasAnswered: false, secrets: ['hunter2'] };

function failure(message: string, code?: string): Error {
  return Object.assign(new Error(message), { code });
}

function reply(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

describe('The problem behind an error', () => {
  it.each<[string, Error, string]>([
    ['a password too many', reply('ERR Client sent AUTH, but no password is set'), 'it has no password: remove'],
    [
      'protected mode',
      reply('DENIED Redis is running in protected mode because ...'),
      'DENIED it is in protected mode',
    ],
    [
      'a missing key',
      reply('NOPERM this user has no permissions to access one of the keys used as arguments'),
      'NOPERM this user has no permissions to access one of the keys used as arguments: npx nestjs-redlock doctor',
    ],
    ['a database', reply('ERR DB index is out of range'), 'the DB index is out of range: correct'],
    ['an unknown command', reply("ERR unknown command 'HELLO', with args beginning with: '3'"), 'ERR unknown command'],
    ['an unknown authority', failure('no', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 'its certificate is not from'],
    ['a self-signed certificate', failure('self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT'), 'its certificate is not from'],
    ['an early certificate', failure('not yet', 'CERT_NOT_YET_VALID'), 'its certificate is not valid yet'],
    [
      'a missing certificate of the client',
      failure(
        '80:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:../x.c:1605:SSL alert number 116',
        'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
      ),
      'it refuses the TLS handshake (tlsv13 alert certificate required): give a certificate of the client',
    ],
    [
      'another error of TLS',
      failure('80:error:0A000102:SSL routines:f:unsupported protocol:../x.c:1', 'ERR_SSL_UNSUPPORTED_PROTOCOL'),
      'the TLS handshake failed (unsupported protocol)',
    ],
    [
      'another protocol',
      failure('Unknown RESP type 83 "S". Please report this.'),
      'it does not speak the protocol of Redis',
    ],
  ])('is permanent, and says what to change: %s', (_, error, beginning) => {
    const problem = problemFrom(error, CONTEXT);
    expect(reasonOf(problem).slice(0, beginning.length)).toBe(beginning);
    expect(problem.isPermanent).toBe(true);
  });

  it.each<[string, Error, string]>([
    ['a firewall', failure('connect ETIMEDOUT', 'ETIMEDOUT'), 'connect ETIMEDOUT: correct its address, or let'],
    ['a missing socket', failure('connect ENOENT /x', 'ENOENT'), 'connect ENOENT /x: start it'],
    ['loading', reply('LOADING Redis is loading the dataset in memory'), 'LOADING Redis is loading'],
  ])('may end while the process waits: %s', (_, error, beginning) => {
    const problem = problemFrom(error, CONTEXT);
    expect(reasonOf(problem).slice(0, beginning.length)).toBe(beginning);
    expect(problem.isPermanent).toBeUndefined();
  });

  it('is the bare message once the server has answered over the connection, and contains no secret', () => {
    const error = failure('read ECONNRESET of hunter2', 'ECONNRESET');
    expect(problemFrom(error, { ...CONTEXT, hasAnswered: true })).toEqual({ what: 'read ECONNRESET of ***' });
  });

  it('has its advice after an earlier connection, too, if the port refuses', () => {
    const error = failure('connect ECONNREFUSED 10.0.0.1:1', 'ECONNREFUSED');
    expect(reasonOf(problemFrom(error, { ...CONTEXT, hasAnswered: true }))).toContain(
      ': start it, or correct its address',
    );
  });

  it('hints at rediss:// without TLS, and at a certificate of the client with it', () => {
    expect(reasonOf(closedEarly(false))).toContain('use rediss://');
    expect(reasonOf(closedEarly(true))).toContain('tls: { cert, key }');
  });
});

it.each<[Language | undefined, boolean, unknown]>([
  ['tls', false, EXPECTS_TLS],
  ['tls', true, undefined],
  ['redis', true, LACKS_TLS],
  ['redis', false, undefined],
  ['http', true, IS_HTTP],
  ['http', false, IS_HTTP],
  [undefined, true, undefined],
])('The language of a port %s, where TLS is used: %s', (language, usesTls, expected) =>
  expect(problemWith(language, usesTls)).toBe(expected),
);

/** A clock with a socket: data that has arrived is read and processed before the clock calls back. */
class SocketClock extends ManualClock {
  readonly arrived: (() => void)[] = [];

  override afterInput(callback: () => void): void {
    for (const read of this.arrived.splice(0)) read();
    setImmediate(callback);
  }
}

/** A connection whose events the test emits. */
function rig(masterTimeout = 50) {
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
  const notifications = new NotificationChannel(client, clock, masterTimeout);
  notifications.add('channel', (key) => heard.push(key));
  return { events, heard, clock, notifications, seen };
}

/** A connection that is open and listens. */
async function listeningRig(masterTimeout?: number) {
  const listening = rig(masterTimeout);
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

  it('subscribes another name when that is added, and reports that notifications may have been missed', async () => {
    const { events, heard, clock, notifications, seen } = await listeningRig();
    const others: (string | undefined)[] = [];
    for (let count = 0; count < 2; count++) notifications.add('other', (key) => others.push(key));
    await clock.settle();
    events.emit('message', 'other', 'lock:a');
    events.emit('message', 'channel', 'lock:b');
    events.emit('message', 'unknown', 'lock:c');
    expect([heard, others]).toEqual([
      [undefined, undefined, 'lock:b'],
      [undefined, 'lock:a'],
    ]);
    expect(seen.subscriptions).toBe(3);
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
    expect([heard, seen.disconnects]).toEqual([[undefined], 0]);
  });

  it('is not tested while it wakes waiters, or while nothing waits', async () => {
    const { events, clock, notifications, seen } = await listeningRig();
    for (let look = 1; look <= 5; look++) {
      await clock.advance(400);
      events.emit('message', 'channel', 'lock:a');
      notifications.test();
    }
    await clock.advance(60_000);
    expect([seen.subscriptions, clock.pendingTimers]).toEqual([1, 0]);
  });

  it('has two timeouts of a master that is far away to answer a test', async () => {
    const { clock, notifications, seen } = await listeningRig(400);
    seen.answer = () => new Promise(() => undefined);
    await clock.advance(501);
    notifications.test();
    await expectDroppedAfter(800, notifications, { clock, seen });
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
    expect(seen).toMatchObject({ disconnects: 0, subscriptions: 2 });
  });

  it('is dropped when the server accepts it and does not become ready', async () => {
    const { events, clock, notifications, seen } = rig();
    events.emit('connect');
    await expectDroppedAfter(10_000, notifications, { clock, seen });
  });
});
