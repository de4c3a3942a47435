import { resolveFlag } from '../core/settings/settings.js';

/** What can be declared for one master in addition to its connection settings. */
export interface DurableOption {
  /**
   * Declares that this master keeps each acknowledged write across restarts and failovers.
   * @default the module's `durable`
   */
  readonly durable?: boolean;
}

/** @throws {RedlockConfigError} if it is not a flag */
export function resolveDurable(option: string, durable: unknown): boolean | undefined {
  return durable === undefined ? undefined : resolveFlag(`${option}.durable`, durable);
}
