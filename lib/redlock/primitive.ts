import type { Instant } from './clock.js';
import type { Request, RoundRequest } from './server.js';

// What is kept on the masters, and under which keys. The algorithm does not know the difference between kinds of locks: it
// decides by the answers alone.
export interface Primitive {
  // `since`: when the round begins. Takes all keys for the token, or none.
  acquire(token: string, ttl: number, since: Instant): RoundRequest;
  // Refreshes the keys that hold the token, and says whether one was absent. `heals`: absent keys are set again.
  extend(token: string, ttl: number, since: Instant, heals: boolean): RoundRequest;
  // Gives the keys back, or lets them expire after `keepFor` milliseconds. They can still exist for `life` milliseconds: `0`
  // only asks whether they held the token.
  release(token: string, keepFor: number, life: number): Request;
}
