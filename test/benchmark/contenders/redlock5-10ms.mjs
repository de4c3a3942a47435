import { connectWith } from './redlock5.mjs';

/** The retry delay tuned to the section; jitter as by default, in proportion. */
export const connect = (urls) => connectWith(urls, { retryDelay: 10, retryJitter: 5 });
