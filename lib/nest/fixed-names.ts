import { showNames } from '../core/display.js';
import { RedlockConfigError } from '../core/errors.js';
import { refuseSeveral } from '../core/settings/resources.js';

/** How a method uses a name. */
interface Use {
  /** The decorator, the class and the method. */
  readonly method: string;
  readonly permits: number | undefined;
  readonly isShared: boolean;
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
    refuseSeveral(resources, use.permits, use.method);
    for (const name of resources) {
      const other = this.uses.get(name) ?? use;
      this.uses.set(name, other);
      if (other.permits !== use.permits) throw mismatch(name, use, other);
    }
  }
}

function mismatch(name: string, use: Use, other: Use): RedlockConfigError {
  const named = showNames([name]);
  const requirement = `must be the same in all uses of ${named}`;
  const consequence =
    use.permits === undefined || other.permits === undefined
      ? 'permits and a lock of one name do not exclude each other'
      : `together they admit ${Math.max(use.permits, other.permits)} holders`;
  // A shared lock cannot be given permits.
  const remedy = [use, other].some(({ isShared }) => isShared)
    ? 'Give one of them another name'
    : 'Give both the same `permits`, or one of them another name';
  const message = `${use.method} ${verb(use)} ${named} and ${other.method} ${verb(other)} it: ${consequence}. ${remedy}`;
  return new RedlockConfigError(`${use.method}: permits`, use.permits, requirement, message);
}

function verb({ permits, isShared }: Use): string {
  if (permits === undefined) return isShared ? 'takes a shared lock on' : 'takes a lock on';
  return permits === 1 ? 'takes the only permit of' : `takes one of ${permits} permits of`;
}
