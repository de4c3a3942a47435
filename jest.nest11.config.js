import base from './jest.config.js';

const nest11 = '<rootDir>/test/nest11/node_modules';

// A separate jest run, not a project of the main one: jest remembers per worker whether a path is ESM, and the two
// majors differ in that.
/** @type {import('jest').Config} */
export default {
  ...base,
  testRegex: '/test/e2e/.*\\.spec\\.ts$',
  moduleNameMapper: {
    ...base.moduleNameMapper,
    '^@nestjs/([^/]+)$': `${nest11}/@nestjs/$1`,
    '^@nestjs/([^/]+)/(.+)$': `${nest11}/@nestjs/$1/$2`,
  },
};
