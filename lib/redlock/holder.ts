// 21 random bytes in the digits of base64url.
export const TOKEN_LENGTH = 28;

// The only source of randomness in this library. Tests inject one with a seed.
export interface Random {
  // Of `TOKEN_LENGTH` characters.
  token(): string;
  // In [0, 1).
  fraction(): number;
}

/** The holder of a lock, as it is stored on the masters. */
export interface LockHolder {
  /** Name of the process: the option `instance` of its lock service. */
  readonly instance: string;
  /** When the acquisition began, by the wall clock of that process. */
  readonly since: Date;
}

// Digits of base64url.
const SECRET = /^[\w-]+$/;
// The time in the digits of base 36, and the name of the process, as `settings.ts` allows it.
const SIGNATURE = /^@([0-9a-z]{1,9})@([!-~]{1,100})$/;
// Replaces the token of a holder whose lock an operator releases by force: the masters refuse its extension.
// Protocol 7.5
export const REVOKED = 'released by force';

// A token has a secret that makes it unique, and names the holder.
export class TokenSource {
  private wall = NaN;
  private signature = '';

  constructor(
    private readonly random: Random,
    private readonly instance: string,
  ) {}

  // `wall`: when the acquisition began, in milliseconds since the Unix epoch.
  next(wall: number): string {
    // Many acquisitions begin within one millisecond, and its digits take longer than the secret.
    if (wall !== this.wall) {
      this.wall = wall;
      this.signature = signatureOf(this.instance, Math.floor(wall));
    }
    return this.random.token() + this.signature;
  }
}

// `undefined` if it is not a token of this library.
export function holderFrom(token: string): LockHolder | undefined {
  return SECRET.test(token.slice(0, TOKEN_LENGTH)) ? holderIn(token.slice(TOKEN_LENGTH)) : undefined;
}

// From the part of a token that is not secret.
export function holderIn(signature: string): LockHolder | undefined {
  const [, since = '', instance] = SIGNATURE.exec(signature) ?? [];
  return instance === undefined ? undefined : { instance, since: new Date(parseInt(since, 36)) };
}

export function signatureOf(instance: string, since: number): string {
  return `@${since.toString(36)}@${instance}`;
}
