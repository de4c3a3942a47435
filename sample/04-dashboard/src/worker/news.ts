import type { LockLostCause } from 'nestjs-redlock';

/** A report of an instance about its locks, with its time in milliseconds since the Unix epoch. */
export type News = { readonly at: number; readonly resource: string } & (
  | { readonly kind: 'waiting' }
  /** The instance has stopped waiting. */
  | { readonly kind: 'failed' }
  /** @property waited in milliseconds */
  | { readonly kind: 'granted'; readonly waited: number }
  /** A report about a held lock. @property remaining validity in milliseconds without extension */
  | { readonly kind: 'holding'; readonly remaining: number; readonly token: number }
  /** @property lost `undefined` if the lock was released */
  | { readonly kind: 'ended'; readonly held: number; readonly lost: LockLostCause | undefined }
);

type WithoutTime<T> = T extends unknown ? Omit<T, 'at'> : never;

/** Sends a report to the parent process. */
export function publish(news: WithoutTime<News>): void {
  process.send?.({ ...news, at: Date.now() });
}
