import base from '../../../jest.config.js';
import { root } from '../../../scripts/run.mjs';

const [[pattern, [, options]]] = Object.entries(base.transform);
const here = '<rootDir>/test/mutation/jest';

/** The configuration of `npm test`, for one run of `npm run mutate`. */
export default {
  ...base,
  rootDir: root,
  // Mutated files fill it.
  cacheDirectory: '<rootDir>/build/mutation/jest',
  transform: { [pattern]: [`${here}/transform.mjs`, options] },
  coverageProvider: 'v8',
  coverageReporters: ['json'],
  testEnvironment: `${here}/environment.mjs`,
  testSequencer: `${here}/sequencer.mjs`,
  reporters: [`${here}/reporter.mjs`],
};
