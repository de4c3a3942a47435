import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connectBuild } from './build.mjs';

// The build of another checkout of this library: `--before folder`. Nothing here loads the build of this checkout, so
// that the process has one build, as that of each contender has.

const library = await import(pathToFileURL(resolve(process.env.BENCH_BEFORE, 'dist/esm/index.js')).href);

export const connect = (urls, { ttl } = {}) => connectBuild(library, urls, { ttl, maxTtl: ttl });
