import type { RedisOptions } from 'ioredis';
import { RedlockConfigError } from '../settings/config.error.js';
import type { LoginFunction } from './source.interface.js';

// The functions among user and password.
export type Login = Readonly<Partial<Record<(typeof NAMES)[number], LoginFunction>>>;

// What this uses of an ioredis client, which reads its options too early for a function that takes time.
interface Client {
  readonly options: RedisOptions;
  readonly condition: { auth?: unknown };
  readonly connector: {
    connecting: boolean;
    connect(emit: (event: string, error: unknown) => void): Promise<unknown>;
    disconnect(): void;
  };
  duplicate(override?: object): object;
}

const NAMES = ['username', 'password'] as const;
// In milliseconds.
const WITHIN = 10_000;

// Gives the options without the functions.
export function splitLogin(
  option: string,
  options: object,
): { readonly login?: Login; readonly options: RedisOptions } {
  const given = options as Readonly<Record<string, unknown>>;
  for (const name of NAMES) {
    const value = given[name];
    if (value == null || typeof value === 'string' || typeof value === 'function') continue;
    throw new RedlockConfigError(`${option}.${name}`, typeof value, 'must be a string, or a function that gives one');
  }
  const names = NAMES.filter((name) => typeof given[name] === 'function');
  if (names.length === 0) return { options };
  const isAsked = ([name]: [string, unknown]): boolean => (names as string[]).includes(name);
  const entries = Object.entries(given);
  return {
    login: Object.fromEntries(entries.filter(isAsked)),
    options: Object.fromEntries(entries.filter((entry) => !isAsked(entry))),
  };
}

// The client, and each copy of it, asks before it opens a socket. The values are also written into `shared`, whose owner keeps
// them out of messages. After an error, the owner of the client opens it again.
export function askBeforeConnecting<T extends object>(given: T, login: Login | undefined, shared?: RedisOptions): T {
  if (!login) return given;
  const client = given as unknown as Client;
  const { connector, options } = client;
  const connect = connector.connect.bind(connector);
  const disconnect = connector.disconnect.bind(connector);
  const duplicate = client.duplicate.bind(client);
  let stop: (error: Error) => void = () => undefined;
  connector.connect = async (emit) => {
    connector.connecting = true;
    const stopped = new Promise<never>((_, reject) => (stop = reject));
    const values = await Promise.race([valuesOf(login), stopped]);
    for (const each of [options, shared]) if (each) Object.assign(each, values);
    const { username, password } = options;
    client.condition.auth = username ? [username, password] : password;
    return connect(emit);
  };
  connector.disconnect = () => {
    disconnect();
    stop(new Error('Connection is closed.'));
  };
  client.duplicate = (override) => askBeforeConnecting(duplicate(override), login);
  return given;
}

async function valuesOf(login: Login): Promise<RedisOptions> {
  const entries = Object.entries(login).map(async ([name, ask]) => [name, await valueOf(name, ask)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

async function valueOf(name: string, ask: LoginFunction): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`its function \`${name}\` has not answered for ${WITHIN / 1_000} s`);
    timer = setTimeout(() => reject(error), WITHIN).unref();
  });
  try {
    const value: unknown = await Promise.race([late, failing(name, ask)]);
    if (typeof value === 'string' && value !== '') return value;
    throw new Error(
      `its function \`${name}\` must give a text, and gave ${value === '' ? 'an empty one' : typeof value}`,
    );
  } finally {
    clearTimeout(timer);
  }
}

async function failing(name: string, ask: LoginFunction): Promise<unknown> {
  try {
    return await ask();
  } catch (error) {
    const reason = error instanceof Error ? error.message : typeof error;
    throw new Error(`its function \`${name}\` has failed: ${reason}`, { cause: error });
  }
}
