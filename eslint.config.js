import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import jest from 'eslint-plugin-jest';
import tseslint from 'typescript-eslint';
import { publicDocs } from './scripts/public-docs.mjs';

const typescript = ['**/*.ts', '**/*.mts'];

/** Folders of lib/ that use the library as an application does. Nothing imports them. */
const SATELLITES = ['dashboard', 'leader', 'opentelemetry', 'schedule', 'schematics', 'sql', 'terminus', 'testing'];

/** The algorithm and its rooms: no package, no Node module, and no clock or randomness of their own. */
const ROOMS = ['settings', 'waiting', 'kinds', 'fencing', 'masters', 'operate'];
const CORE = ['redlock', ...ROOMS, 'locks'];
const CORE_FILES = CORE.map((folder) => `lib/${folder}/**/*.ts`);

/** What plain scripts use of Node without importing it. */
const nodeGlobals = [
  ...['AbortController', 'AbortSignal', 'Buffer', 'URL', 'console', 'fetch', 'performance', 'process'],
  ...['clearInterval', 'clearTimeout', 'setImmediate', 'setInterval', 'setTimeout'],
];

/** What the page of the dashboard uses of a browser, beside what Node has, too. */
const browserGlobals = ['document', 'matchMedia'];

export default defineConfig(
  globalIgnores([
    '**/dist/',
    'build/',
    '**/coverage/',
    '.cache/',
    'site/.pages/',
    '**/node_modules/',
    'test/sql/recipes/prisma-client/',
  ]),
  js.configs.recommended,
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },

  {
    files: typescript,
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // A lock whose promise is not awaited is a lock without a holder.
      // An error that was caught is thrown on as it is.
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      '@typescript-eslint/no-floating-promises': ['error', { checkThenables: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreUsingDeclarations: true },
      ],
    },
  },

  // What a layer may import. The tree of lib/ is the architecture; these rules keep it so.
  {
    files: ['lib/**/*.ts'],
    plugins: { 'import-x': importX, lib: { rules: { 'public-docs': publicDocs } } },
    settings: {
      'import-x/extensions': ['.ts', '.js'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] },
      'import-x/resolver-next': [
        createNodeResolver({ extensions: ['.ts'], extensionAlias: { '.js': ['.ts', '.js'] } }),
      ],
    },
    rules: {
      'lib/public-docs': 'error',
      'import-x/no-unresolved': ['error', { ignore: ['^[^.]'] }],
      'import-x/no-cycle': 'error',
      'import-x/no-restricted-paths': [
        'error',
        {
          basePath: import.meta.dirname,
          zones: [
            layer('redlock', ['redlock']),
            layer('settings', [
              'settings',
              'redlock',
              'masters/master.interface.ts',
              'waiting/lock-not-acquired.error.ts',
            ]),
            ...ROOMS.slice(1).map((room) => layer(room, ['redlock', ...ROOMS])),
            layer('locks', CORE),
            layer('redis', [...CORE, 'redis']),
            layer('memory', [...CORE, 'memory']),
            layer('runtime', [...CORE, 'runtime']),
            layer('admin', [...CORE, 'redis', 'runtime', 'admin']),
            layer('nest', [...CORE, 'redis', 'memory', 'runtime', 'errors.ts', 'nest']),
            layer('errors.ts', CORE),
            layer('index.ts', [...CORE, 'redis', 'nest', 'errors.ts']),
            layer('internal.ts', [...CORE, 'memory', 'runtime', 'nest']),
            // What the command line does beside showing it. No entry of the package exports it.
            layer('cli', ['cli', 'index.ts', 'internal.ts', 'admin/admin.ts']),
            ...SATELLITES.map((folder) => layer(folder, [folder, 'index.ts', 'internal.ts'])),
          ],
        },
      ],
      'no-restricted-imports': packages(
        '^@nestjs/[^/]+/|^(?:commander|cli-table3)$',
        "Nest's private files move between releases, and the packages of the command line are not for the library.",
      ),
    },
  },
  {
    files: [...CORE_FILES, 'lib/memory/**/*.ts'],
    rules: { 'no-restricted-imports': packages('^[^.]', 'This layer knows no package and no Node module.') },
  },
  {
    files: ['lib/redis/**/*.ts'],
    rules: { 'no-restricted-imports': packages('^(?!\\.|node:|ioredis$)', 'This layer knows ioredis and Node only.') },
  },
  {
    files: ['lib/opentelemetry/**/*.ts'],
    rules: {
      'no-restricted-imports': packages('^(?!\\.|@opentelemetry/api$)', 'This layer knows OpenTelemetry only.'),
    },
  },
  {
    files: ['lib/sql/**/*.ts'],
    rules: { 'no-restricted-imports': packages('^[^.]', 'This layer knows no driver and no object mapper.') },
  },
  {
    files: ['lib/admin/**/*.ts'],
    rules: {
      'no-restricted-imports': packages('^(?!\\.|node:)', 'This layer knows no package: ioredis by lib/redis.'),
    },
  },
  {
    files: ['lib/cli/**/*.ts'],
    rules: {
      'no-restricted-imports': packages(
        '^(?!\\.|node:|commander$|cli-table3$)',
        'No Nest, and ioredis by lib/redis only.',
      ),
    },
  },
  {
    files: ['lib/schematics/**/*.ts'],
    rules: {
      'no-restricted-imports': packages(
        '^(?!\\.|node:|typescript$)',
        'A schematic runs in the process of a command line, with nothing but the compiler of the application.',
      ),
    },
  },
  {
    // The algorithm gets time and randomness from outside, so that a test or a simulation can own both.
    files: CORE_FILES,
    rules: {
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval', 'setImmediate', 'performance', 'process', 'console', 'crypto', 'Buffer'],
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'Use the injected clock.' },
        { object: 'Math', property: 'random', message: 'Use the injected randomness.' },
      ],
    },
  },

  {
    // Options of Nest and its companions are classes, and applications write them as literals.
    files: ['sample/**/*.ts'],
    rules: { '@typescript-eslint/no-unsafe-class-instance-assignment': 'off' },
  },
  {
    files: ['test/**/*.ts', 'sample/*/test/**/*.ts'],
    rules: {
      // Test doubles are async because what they stand for is.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
    },
  },
  {
    files: ['test/types/**/*.ts'],
    rules: { '@typescript-eslint/no-unused-vars': 'off', '@typescript-eslint/no-floating-promises': 'off' },
  },
  {
    files: ['test/**/*.spec.ts', 'sample/*/test/**/*.spec.ts'],
    extends: [jest.configs['flat/recommended']],
    rules: {
      'jest/no-disabled-tests': 'error',
      'jest/expect-expect': ['error', { assertFunctionNames: ['expect*', 'fc.assert', '**.expect'] }],
      // A contract suite has its expectations in functions that several spec files call.
      'jest/no-standalone-expect': 'off',
      'jest/no-conditional-expect': 'off',
    },
  },

  {
    files: ['**/*.js', '**/*.mjs'],
    languageOptions: {
      globals: Object.fromEntries(nodeGlobals.map((name) => [name, 'readonly'])),
    },
  },
  {
    files: ['lib/dashboard/page/*.js'],
    languageOptions: {
      globals: Object.fromEntries(browserGlobals.map((name) => [name, 'readonly'])),
    },
  },
);

/** A folder of lib/ and the only folders of lib/ whose files it may import. */
function layer(folder, allowed) {
  return {
    target: `./lib/${folder}`,
    from: './lib',
    except: allowed.map((name) => `./${name}`),
    message: `lib/${folder} may import only from lib/${allowed.join(' and lib/')}.`,
  };
}

function packages(regex, message) {
  return ['error', { patterns: [{ regex, message }] }];
}
