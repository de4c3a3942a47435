import type { Clock, Timer } from '../redlock/clock.js';

type Warn = (message: string) => void;

const IN_MEMORY =
  "masters: 'memory' with NODE_ENV=production: locks are within this process only and exclude no other one; " +
  'give the addresses of Redis servers';

const NO_SIGNAL =
  'nothing listens for SIGTERM: a stop of this process leaves its locks held until their ttl ends; call ' +
  'app.enableShutdownHooks()';

function isProduction(): boolean {
  return process.env.NODE_ENV === 'production';
}

export function warnOfMemory(masters: unknown, warn: Warn): void {
  if (masters === 'memory' && isProduction()) warn(IN_MEMORY);
}

// After so many milliseconds, because an application may enable its hooks after the boot.
export function warnWithoutHooks(clock: Clock, after: number, warn: Warn): Timer | undefined {
  if (!isProduction()) return undefined;
  const check = (): void => {
    if (process.listenerCount('SIGTERM') === 0) warn(NO_SIGNAL);
  };
  return clock.schedule(after, check).unref();
}
