import type { RedlockModuleOptions } from 'nestjs-redlock';

/** How long a crashed leader keeps the others from leading, in milliseconds. */
export const TTL = 3_000;

/** Configuration of an instance. */
export interface Config {
  /** Folder of the outbox and of what was sent, which the instances share. */
  store: string;
  locks: RedlockModuleOptions;
}

/** Reads `REDLOCK_MASTERS` and `STORE`. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return {
    store: required(env, 'STORE', 'a folder that all instances share'),
    locks: {
      masters: required(env, 'REDLOCK_MASTERS', 'the URLs of the masters with commas between').split(','),
      ttl: TTL,
    },
  };
}

function required(env: NodeJS.ProcessEnv, name: string, meaning: string): string {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set: give it ${meaning}`);
  return value;
}
