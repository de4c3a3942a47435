import { showNames } from '../core/display.js';
import type { Settings } from '../core/settings/settings.js';

/** For an operator who may have typed the name of a key in place of that of a lock; `undefined` otherwise. */
export function prefixHint(resource: string, { keyPrefix }: Settings): string | undefined {
  if (keyPrefix === '' || !resource.startsWith(keyPrefix) || resource === keyPrefix) return undefined;
  const [prefix, name] = [showNames([keyPrefix]), showNames([resource.slice(keyPrefix.length)])];
  return `${prefix} is the prefix of the keys; the lock with the key ${showNames([resource])} is named ${name}`;
}
