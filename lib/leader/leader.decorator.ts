import type { Duration } from '../core/settings/duration.js';
import { RedlockConfigError } from '../core/errors.js';
import { electionResource } from '../core/leadership.js';
import { ACQUIRE_OPTIONS, resolveTtl } from '../core/settings/settings.js';
import { optional, parser, readOptions, type TableOf, text } from '../core/settings/table.js';
import { jsonFrom } from '../core/state/state-register.js';
import { type DeclaredMethod, declareMethod, type MethodDeclaration } from '../nest/declared-methods.js';
import { resolveFixedKey } from '../nest/lock-options.js';
import { CALLED_METHODS } from '../nest/lock-service.token.js';
import type { ElectionSettings, Leadership } from './campaign.js';

/** Options of `@Leader`. */
export interface LeaderOptions {
  /**
   * How long a crashed leader keeps others from leading. Extended while the method runs.
   * @default the module's `ttl`
   */
  ttl?: Duration;
  /**
   * What other instances read with `Elections.leader`, such as an address: a value that JSON can represent in 16 KiB, or a
   * function that gives it, or a promise of it, at each election.
   * @default nothing
   */
  data?: unknown;
  /** Name of the lock service to use. For a module that is registered with a `name`. */
  service?: string;
}

/** What a leader can be: a method that returns a promise. */
export type LeaderMethod = (leadership: Leadership) => PromiseLike<unknown>;

/** The decorator that `@Leader` returns. */
export type LeaderDecorator = <Method extends LeaderMethod>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

export interface LeaderDeclaration extends MethodDeclaration {
  readonly name: string;
  readonly options: LeaderOptions | undefined;
}

/**
 * Runs a method on one instance of the application, for as long as that instance leads the election of this name. When the
 * method ends, or its instance does, another instance leads. For methods that return a promise, of any singleton provider
 * or controller.
 *
 * ```ts
 * @Leader('outbox')
 * async relay({ term, signal }: Leadership) { while (!signal.aborted) await this.sendNext(term); }
 * ```
 *
 * @param name names the election on all instances; its lock has the resource `leader:` and this name
 * @param options {@link LeaderOptions}
 * @throws {RedlockConfigError} at class definition, on a static method, an accessor or a generator; at boot, for an invalid
 * or duplicate name or option, and without `RedlockModule` or `RedlockLeaderModule`
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 */
export function Leader(name: string, options?: LeaderOptions): LeaderDecorator {
  return (...member): void => void declareMethod('@Leader', CALLED_METHODS.elections, member, { name, options });
}

export const LEADER_OPTIONS = {
  ttl: ACQUIRE_OPTIONS.ttl,
  data: parser('a value, or a function that gives it', (option, data) => {
    if (data === undefined || typeof data === 'function') return data;
    try {
      jsonFrom(data);
      return data;
    } catch {
      const requirement = 'must be a value that JSON can represent in 16 KiB, or a function that gives one';
      throw new RedlockConfigError(option, data, requirement);
    }
  }),
  service: optional(text),
} satisfies TableOf<LeaderOptions>;

export function resolveElection({ declaration, locks }: DeclaredMethod<LeaderDeclaration>): ElectionSettings {
  const { where, name, options = {} } = declaration;
  text(`${where}: name`, name);
  const { data } = readOptions(where, options, LEADER_OPTIONS);
  const resource = electionResource(name);
  resolveFixedKey(`${where}: name`, resource);
  locks.check(where, { ...(options.ttl !== undefined && { ttl: options.ttl }) });
  locks.checkNames(where, [resource], {});
  const ttl = resolveTtl(locks.environment.settings, options.ttl, `${where}: ttl`);
  return { name, resource, ttl, data };
}
