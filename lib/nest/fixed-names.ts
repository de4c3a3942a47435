import { RedlockConfigError } from '../core/errors.js';

/** How a method uses a name. */
interface Use {
  /** The decorator, the class and the method. */
  readonly method: string;
  readonly permits: number | undefined;
}

/** The names that methods of an application lock, or take permits of, as far as they are known at boot. */
export class FixedNames {
  private readonly uses = new Map<string, Use>();

  /**
   * Permits of a name and a lock of the same name do not exclude each other, which is never meant.
   *
   * @throws {RedlockConfigError} if two methods use one name in different ways, and for permits of several names
   */
  add(resources: readonly string[], use: Use): void {
    if (use.permits !== undefined && resources.length > 1) {
      throw new RedlockConfigError(`${use.method}: permits`, use.permits, 'needs one resource, not several');
    }
    for (const name of resources) {
      const other = this.uses.get(name) ?? use;
      this.uses.set(name, other);
      if (other.permits === use.permits) continue;
      throw new RedlockConfigError(`${use.method}: permits`, use.permits, requirementOf(name, other));
    }
  }
}

function requirementOf(name: string, { method, permits }: Use): string {
  if (permits === undefined) return `cannot be given, because ${method} locks ${JSON.stringify(name)} without permits`;
  return `must be ${permits} for ${JSON.stringify(name)}, as on ${method}`;
}
