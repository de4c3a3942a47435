import type { RedlockModuleOptions } from 'nestjs-redlock';

/** The settings that distinguish one instance of the application, and those that all instances share. */
export interface Config {
  /** Name of the instance. */
  instance: string;
  /** Port to listen on; `0` takes a free one. */
  port: number;
  /** Folder of the shared store. */
  store: string;
  /** Whether the timers run; without them the instance only serves requests. */
  timers: boolean;
  /** The masters, and whether to lock at all. */
  locks: RedlockModuleOptions;
}

/** Reads `REDIS_URLS`, `STORE`, and optionally `PORT`, `INSTANCE`, `TIMERS=off` and `LOCKS=off`. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const urls = required(env, 'REDIS_URLS', 'the URLs of the masters with commas between, or the word memory');
  const instance = env.INSTANCE ?? String(process.pid);
  return {
    instance,
    port: Number(env.PORT ?? 3000),
    store: required(env, 'STORE', 'a folder that all instances share'),
    timers: env.TIMERS !== 'off',
    locks: {
      masters: urls === 'memory' ? urls : urls.split(',').map((url) => url.trim()),
      enabled: env.LOCKS !== 'off',
      // Names the instance in the history of the jobs.
      instance,
      // New masters, and those that were restarted, vote after this time.
      ttl: '4s',
    },
  };
}

function required(env: NodeJS.ProcessEnv, name: string, meaning: string): string {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set: give it ${meaning}`);
  return value;
}
