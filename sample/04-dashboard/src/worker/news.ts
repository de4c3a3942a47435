import type { LockLostCause } from 'nestjs-redlock';

/** What an instance tells about its locks, and when that was, in milliseconds since the Unix epoch. */
export type News = { readonly at: number; readonly resource: string } & (
  | { readonly kind: 'waiting' }
  /** It has given up waiting, or had to. */
  | { readonly kind: 'failed' }
  /** @property waited for how many milliseconds */
  | { readonly kind: 'granted'; readonly waited: number }
  /** The same for a lock that is held. @property remaining validity in milliseconds, if it is not extended */
  | { readonly kind: 'holding'; readonly remaining: number; readonly token: number }
  /** @property lost `undefined`: it was released */
  | { readonly kind: 'ended'; readonly held: number; readonly lost: LockLostCause | undefined }
);

type WithoutTime<T> = T extends unknown ? Omit<T, 'at'> : never;

/** Sends to the process that has started this one. */
export function tell(news: WithoutTime<News>): void {
  process.send?.({ ...news, at: Date.now() });
}
