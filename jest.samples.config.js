// What the tests of all samples have in common. TypeScript is compiled, and not type-checked, by swc.
/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  // A busy machine needs more time to start two applications.
  testTimeout: 20_000,
  testRegex: '/test/.*\\.spec\\.ts$',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  setupFiles: ['reflect-metadata'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2023',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          keepClassNames: true,
        },
        module: { type: 'es6' },
      },
    ],
  },
};
