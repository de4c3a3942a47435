import { NUL } from '../../lib/settings/keyspace.js';

/** Whether a key is that of a lock or a permit; the others are internal. */
export function isLockKey(key: string): boolean {
  return !key.includes(NUL) || key.includes(`${NUL}permit:`);
}
