import type { RedisOptions } from 'ioredis';
import { RedlockConfigError } from '../settings/config.error.js';
import type { Clock } from '../redlock/clock.js';
import type { LockObserver } from '../operate/observer.js';
import type { Random } from '../redlock/holder.js';
import type { Settings } from '../settings/settings.js';
import type { Endpoint, Language } from './connection-problem.js';
import type { RequestEncoder } from './request-encoding.js';
import type { RedisClientSource } from './source.interface.js';

export interface RedisMasterContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: LockObserver;
  // Shared by all masters that receive the same requests.
  readonly encoder: RequestEncoder;
  // Absent where no further connection may be opened.
  readonly languageOf?: (endpoint: Endpoint) => Promise<Language | undefined>;
  readonly isAlone?: boolean;
}

// The part of an ioredis client that this library uses. Structural, because the classes of ioredis 5 and 6 are
// incompatible.
export interface RedisClient {
  readonly status: string;
  readonly options: RedisOptions;
  call(command: string, args: (string | number)[]): Promise<unknown>;
  connect(): Promise<void>;
  subscribe(channel: string): Promise<unknown>;
  duplicate(override?: object): RedisClient;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

// What `jest.mock('ioredis')` leaves of a client would hang, or fail far from its cause.
export function refuseMock(option: string, { status }: { readonly status: unknown }): void {
  if (typeof status === 'string') return;
  const requirement =
    "needs ioredis, and this process has a mock of it: remove jest.mock('ioredis') or vi.mock('ioredis'), and import " +
    'RedlockTestingModule.forRoot() of nestjs-redlock/testing';
  throw new RedlockConfigError(option, 'a mock', requirement);
}

export function isClient(source: object): source is RedisClientSource {
  return 'duplicate' in source && typeof source.duplicate === 'function' && 'isCluster' in source && 'status' in source;
}
