// What the tests of all samples have in common. TypeScript is compiled, and not type-checked, by swc.
import { swc } from './jest.config.js';

/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  // A busy machine needs more time to start two applications.
  testTimeout: 60_000,
  testRegex: '/test/.*\\.spec\\.ts$',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  setupFiles: ['reflect-metadata'],
  transform: swc,
};
