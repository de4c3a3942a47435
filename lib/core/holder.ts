/** The holder of a lock, as it is stored on the masters. */
export interface LockHolder {
  /** Name of the process: the option `instance` of its lock service. */
  readonly instance: string;
  /** When the acquisition began, by the wall clock of that process. */
  readonly since: Date;
}

/** A secret, the time in the digits of base 36, and the name of the process, as `settings.ts` allows it. */
const TOKEN = /^[0-9a-f]+@([0-9a-z]{1,9})@([!-~]{1,100})$/;
/** What replaces the token of a holder whose lock an operator releases by force: the masters refuse its extension. */
export const REVOKED = 'released by force';

/** A token: what the key of a held lock contains. The secret makes it unique, and the rest names the holder. */
export function tokenFrom(secret: string, instance: string, wall: number): string {
  return `${secret}${signatureOf(instance, Math.floor(wall))}`;
}

/** The holder that a token names; `undefined` if it is not a token of this library. */
export function holderFrom(token: string): LockHolder | undefined {
  const [, since = '', instance] = TOKEN.exec(token) ?? [];
  return instance === undefined ? undefined : { instance, since: new Date(parseInt(since, 36)) };
}

/** The part of a token that is not secret. */
export function signatureOf(instance: string, since: number): string {
  return `@${since.toString(36)}@${instance}`;
}
