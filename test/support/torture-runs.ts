import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll } from '@jest/globals';
import { type Compiled, compileLibrary } from './compiled.js';

/** For another schedule: `TORTURE_SEED=2`. What the faults hit depends on the machine. */
export const SEED = Number(process.env['TORTURE_SEED'] ?? 1);
/** Length of the plan, in milliseconds. A slow machine takes longer. */
export const SHORT = 20_000;
/** Additional time that a run may take beyond its plan, in milliseconds. */
export const WITHIN = 240_000;

/** Compiles the library and the worker of the torture runs before the tests of a file, and deletes both after them. */
export function compileForTorture(): () => { program: string; library: string } {
  let compiled: Compiled;
  beforeAll(async () => {
    compiled = await compileLibrary();
  }, 60_000);
  afterAll(async () => {
    await compiled[Symbol.asyncDispose]();
  });
  return () => ({
    program: join(compiled.folder, 'test/torture/worker.js'),
    library: pathToFileURL(join(compiled.folder, 'lib/index.js')).href,
  });
}
