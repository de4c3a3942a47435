import { connectWith } from './redlock5.mjs';

/** The retry delay is tuned to the section, with jitter in the default proportion. */
export const connect = (urls) => connectWith(urls, { retryDelay: 10, retryJitter: 5 });
