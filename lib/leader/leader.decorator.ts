import { type ComposableDecorator, type Duration, RedlockConfigError } from '../index.js';
import { ACQUIRE_OPTIONS, calledMethods, jsonFrom, resolveFixedKey, schema } from '../internal.js';
import type { ElectionSettings, Leadership } from './campaign.js';

/** Options of `@Leader`. */
export interface LeaderOptions {
  /**
   * How long a crashed leader keeps others from leading. Extended while the method runs.
   * @default the module's `ttl`
   */
  ttl?: Duration;
  /**
   * What other instances read with `Elections.leader`, such as an address: JSON of at most 16 KiB, also from a function, which
   * may return a promise, at each election.
   * @default nothing
   */
  data?: unknown;
  /** Name of the lock service to use. For a module that is registered with a `name`. */
  service?: string;
}

/** What a leader can be: a method that returns a promise. */
export type LeaderMethod = (leadership: Leadership) => PromiseLike<unknown>;

/** The decorator that `@Leader` returns. */
export type LeaderDecorator = (<Method extends LeaderMethod>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void) &
  ComposableDecorator;

export interface LeaderDeclaration extends calledMethods.MethodDeclaration {
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
 * @throws {RedlockConfigError} at class definition, on a static method, an accessor, a generator or a method that returns an
 * Observable; at boot, for an invalid
 * or duplicate name or option, and without `RedlockModule` or `RedlockLeaderModule`
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 */
export function Leader(name: string, options?: LeaderOptions): LeaderDecorator {
  return calledMethods.declaring('@Leader', calledMethods.CALLED_METHODS.elections, { name, options });
}

export const LEADER_OPTIONS = {
  ttl: ACQUIRE_OPTIONS.ttl,
  data: schema.parser('a value, or a function that gives it', (option, data) => {
    if (data === undefined || typeof data === 'function') return data;
    try {
      jsonFrom(data);
      return data;
    } catch {
      const requirement = 'must be a value that JSON can represent in 16 KiB, or a function that gives one';
      throw new RedlockConfigError(option, data, requirement);
    }
  }),
  service: schema.optional(schema.text),
} satisfies schema.TableOf<LeaderOptions>;

export function electionResource(name: string): string {
  return `leader:${name}`;
}

export function resolveElection({
  declaration,
  locks,
}: calledMethods.DeclaredMethod<LeaderDeclaration>): ElectionSettings {
  const { where, name, options = {} } = declaration;
  schema.text(`${where}: name`, name);
  const { data } = schema.readOptions(where, options, LEADER_OPTIONS);
  const resource = electionResource(name);
  resolveFixedKey(`${where}: name`, resource);
  const { ttl } = locks.check(where, { ...(options.ttl !== undefined && { ttl: options.ttl }) });
  locks.checkNames(where, [resource], {});
  return { name, resource, ttl, data };
}
