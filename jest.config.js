/** TypeScript is compiled, and not type-checked. */
export const swc = {
  '^.+\\.ts$': [
    '@swc/jest',
    {
      jsc: {
        target: 'es2023',
        parser: { syntax: 'typescript', decorators: true },
        transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
        keepClassNames: true,
      },
      module: { type: 'es6' },
      sourceMaps: 'inline',
    },
  ],
};

/** @type {import('jest').Config} */
export default {
  testEnvironment: '<rootDir>/test/support/environment.cjs',
  // For what hangs, and not for what is slow: a busy machine may stand still for seconds.
  testTimeout: 60_000,
  roots: ['<rootDir>/test'],
  testRegex: '\\.spec\\.ts$',
  testPathIgnorePatterns: ['/node_modules/'],
  testSequencer: '<rootDir>/test/support/longest-first.cjs',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    // TypeScript sources import each other by the name of the emitted file.
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^nestjs-redlock$': '<rootDir>/lib/index.ts',
    '^nestjs-redlock/(dashboard|leader|opentelemetry|schedule|sql|terminus|testing)$': '<rootDir>/lib/$1/index.ts',
  },
  globalSetup: '<rootDir>/scripts/embed.mjs',
  setupFiles: ['reflect-metadata'],
  transform: swc,
};
