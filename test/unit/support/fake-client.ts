import { EventEmitter } from 'node:events';
import type { LockObserver } from '../../../lib/operate/observer.js';
import type { RedlockOptions } from '../../../lib/settings/options.js';
import { resolveSettings } from '../../../lib/settings/settings.js';
import type { RedisClient } from '../../../lib/redis/redis-client.interface.js';
import { RedisMaster } from '../../../lib/redis/redis-master.js';
import { INFO_FIELDS, type InfoField } from '../../../lib/redis/replies.js';
import { RequestEncoder } from '../../../lib/redis/request-encoding.js';
import { LOCKS, PERMISSIONS, REPORT } from '../../../lib/redis/scripts/lua.generated.js';
import { TestClock } from './test-clock.js';

const NAMES = new Map([
  [REPORT, 'report'],
  [LOCKS, 'text'],
  [PERMISSIONS, 'permissions'],
]);

/** A command that was sent. */
export interface Sent {
  /** `report`, `digest` or `text` for the scripts of the library, and otherwise the command. */
  readonly name: string;
  readonly args: readonly (string | number)[];
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** An error reply of a server. */
export function replyError(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

/** A client whose connection the test opens and loses, and whose commands the test answers. */
export class FakeClient extends EventEmitter implements RedisClient {
  status = 'wait';
  readonly options = { host: 'm1', port: 6379 };
  readonly sent: Sent[] = [];
  /** Those that are not answered yet. */
  private readonly pending = new Set<Sent>();
  drops = 0;

  connect(): Promise<void> {
    return Promise.resolve();
  }

  call(command: string, args: (string | number)[]): Promise<unknown> {
    const [script = ''] = args;
    const name = command === 'evalsha' ? 'digest' : (command === 'eval' && NAMES.get(String(script))) || command;
    return new Promise((resolve, reject) => {
      const sent: Sent = {
        name,
        args,
        resolve: (value) => this.end(sent, () => resolve(value)),
        reject: (error) => this.end(sent, () => reject(error)),
      };
      this.pending.add(sent);
      this.sent.push(sent);
    });
  }

  subscribe(): Promise<unknown> {
    return Promise.resolve(1);
  }

  duplicate(): FakeClient {
    return new FakeClient();
  }

  disconnect(): void {
    this.drops++;
    this.lose();
  }

  open(): void {
    this.emit('connect');
    this.status = 'ready';
    this.emit('ready');
  }

  /** The commands without an answer fail, except for one whose answer is still being read. */
  lose(except?: Sent): void {
    this.status = 'reconnecting';
    for (const sent of this.pending) if (sent !== except) sent.reject(new Error('Connection is closed.'));
    this.emit('close');
  }

  get names(): string[] {
    return this.sent.map(({ name }) => name);
  }

  private end(sent: Sent, settle: () => void): void {
    this.pending.delete(sent);
    settle();
  }
}

/** What a server reports, by default one that votes. */
export interface FakeReport {
  readonly run?: string;
  readonly info?: Partial<Record<InfoField, string>>;
  readonly wait?: number;
  readonly cause?: string;
}

/** The reply to the first call over a connection. */
export function reportOf({ run = 'run', info = {}, wait = 0, cause = '' }: FakeReport = {}): unknown[] {
  const known: Partial<Record<InfoField, string>> = { run_id: run, redis_version: '8.0.0', role: 'master', ...info };
  return [
    '1700000000000',
    ...INFO_FIELDS.map((field) => known[field] ?? ''),
    run,
    '1700000000000',
    String(wait),
    cause,
  ];
}

/** A master with the restart guard over a connection that the test opens. */
export function fakeMaster(options: RedlockOptions = {}) {
  const clock = new TestClock();
  const client = new FakeClient();
  const events: string[] = [];
  const observer: LockObserver = {
    masterQuarantined: (_, reason) => events.push(reason),
    masterVotesAgain: () => events.push('votes again'),
    masterRefused: (_, reason) => events.push(`refused: ${reason}`),
    masterLost: () => events.push('lost'),
  };
  const master = new RedisMaster('m1', client, {
    clock,
    observer,
    settings: resolveSettings({ restartGuard: true, ...options }),
    random: { token: () => 'random', fraction: () => 0.5 },
    encoder: new RequestEncoder(),
  });
  const last = (): Sent => client.sent.at(-1)!;
  /** Opens a connection, and answers its first call after some milliseconds. */
  const connect = async (report?: FakeReport, after = 0): Promise<void> => {
    client.open();
    await clock.advance(after);
    await clock.settle();
    last().resolve(reportOf(report));
    await clock.settle();
  };
  return { clock, client, events, master, last, connect };
}
