import { hide, LockError } from '../redlock/errors.js';
import { formatValue } from './display.js';

/** An option is invalid. The message names the option, its value and the requirement. */
export class RedlockConfigError extends LockError {
  readonly code = 'LOCK_CONFIG';
  readonly statusCode = 500;
  readonly #value: unknown;

  constructor(
    /** Name of the option. */
    readonly option: string,
    value: unknown,
    /** What the option must be. */
    readonly requirement: string,
    /** For a mistake that the value alone does not show. */
    message = `${option} ${requirement}, got ${formatValue(value)}`,
  ) {
    super(message);
    this.#value = value;
    // The message has them. Node prints the properties of an uncaught error, whatever the error wants to print.
    hide(this, 'option', 'requirement', 'code', 'statusCode');
  }

  /** The given value. Printing or serializing the error omits it, because it may be long or contain a password. */
  get value(): unknown {
    return this.#value;
  }
}
