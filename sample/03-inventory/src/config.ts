import type { RedlockModuleOptions } from 'nestjs-redlock';

/** Configuration of an instance of the application. */
export interface Config {
  /** `postgres://...`, or `file:` and the path of an SQLite file. */
  database: string;
  /** Port to listen on; `0` takes a free one. */
  port: number;
  /** Whether transactions are fenced. `false` only shows the consequences. */
  fenced: boolean;
  /** Stops the process right before it writes a sale, until another process resumes it. Only for the demonstration. */
  freeze: boolean;
  locks: RedlockModuleOptions;
}

/** How long a crashed or paused clerk blocks a row, in milliseconds. */
export const TTL = 1_000;

/** Reads `REDIS_URLS` and `DATABASE_URL`, and optionally `PORT`, `FENCED=off` and `FREEZE=on`. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const urls = required(env, 'REDIS_URLS', 'the URLs of the masters with commas between');
  return {
    database: required(env, 'DATABASE_URL', 'the URL of a PostgreSQL database, or `file:` and a path'),
    port: Number(env.PORT ?? 3000),
    fenced: env.FENCED !== 'off',
    freeze: env.FREEZE === 'on',
    locks: {
      masters: urls.split(',').map((url) => url.trim()),
      // No lock lives longer on a master, so a new or restarted one waits only this long before it votes.
      ttl: TTL,
    },
  };
}

function required(env: NodeJS.ProcessEnv, name: string, meaning: string): string {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set: give it ${meaning}`);
  return value;
}
