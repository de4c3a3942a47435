import { randomBytes } from 'node:crypto';

/** Deletes the key of a lock if it still holds the lock's token. */
export const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

export const newToken = () => randomBytes(20).toString('hex');
