import type { Duration, RedlockModuleOptions } from 'nestjs-redlock';

/** How long a crashed instance keeps the others from taking over, in milliseconds. */
export const TTL = 3_000;

/** Configuration of an instance of the worker. */
export interface Config {
  /** Folder that the instances share. */
  store: string;
  /** Duration of a batch, in milliseconds. */
  batchTime: number;
  locks: RedlockModuleOptions;
}

/** Reads `REDLOCK_MASTERS` and `STORE`, and optionally `BATCH_TIME`, `DRAIN_TIMEOUT` and `LOCKS=off`. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return {
    store: required(env, 'STORE', 'a folder that all instances share'),
    batchTime: Number(env.BATCH_TIME ?? 2_000),
    locks: {
      masters: required(env, 'REDLOCK_MASTERS', 'the URLs of the masters with commas between').split(','),
      enabled: env.LOCKS !== 'off',
      ttl: TTL,
      // Shorter than the time that the platform grants between SIGTERM and SIGKILL: 30 s in Kubernetes, 10 s in Docker.
      drainTimeout: (env.DRAIN_TIMEOUT ?? '8s') as Duration,
    },
  };
}

function required(env: NodeJS.ProcessEnv, name: string, meaning: string): string {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set: give it ${meaning}`);
  return value;
}
