import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connectWith } from './ours.mjs';

// The build of another checkout of this library: `--before folder`.

const library = await import(pathToFileURL(resolve(process.env.BENCH_BEFORE, 'dist/esm/index.js')).href);

export const connect = (urls, { ttl } = {}) => connectWith(urls, { ttl, maxTtl: ttl }, library);
