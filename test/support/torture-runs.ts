import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll } from '@jest/globals';
import { type Check, check } from '../torture/checker.js';
import type { Evidence } from '../torture/evidence.js';
import { complaints } from '../torture/report.js';
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

/** The checks that found something, and how often. Prints what they found. */
export function violationsIn(evidence: Evidence): Partial<Record<Check, number>> {
  const verdict = check(evidence);
  const found = Object.entries(verdict).filter(([, violations]) => violations.length > 0);
  if (found.length > 0) process.stdout.write(`seed ${SEED}${complaints(evidence, verdict).join('\n')}\n`);
  return Object.fromEntries(found.map(([name, { length }]) => [name, length]));
}
