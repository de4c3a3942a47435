import { connectBuild } from './build.mjs';
import * as library from './library.mjs';

/** With every safety feature on. A short `maxTtl` shortens the quarantine of masters that have just started. */
export const connect = (urls, { ttl } = {}) => connectWith(urls, { ttl, maxTtl: ttl });

export const connectWith = (urls, options) => connectBuild(library, urls, options);
