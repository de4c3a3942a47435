// Every combination in which the package is installed and tried. One that cannot work states why, and is tried all the
// same.

/** The lowest supported and the newest release of each line of Node. */
export const NODES = ['20.19.0', '20.20.2', '22.12.0', '22.23.3', '24.0.0', '24.21.0', '26.0.0', '26.10.0'];

/** The Node version that `nest new` of Nest 12 asks for, and that newcomers have. */
export const NEWCOMERS_NODE = '22.23.3';

const SWC = ['@swc/core@1.16.18', '@swc/jest@0.2.39'];

/** The versions of the Nest CLI whose `nest new` generates applications, and what docs/testing.md says to install there. */
export const SCAFFOLDS = {
  nest12: {
    title: '`nest new` of Nest 12',
    cli: '12.0.8',
    flags: ['--no-observe'],
    packages: ['ioredis@6.0.0', '@nestjs/schedule@12.0.2', 'jest@30.5.2', '@jest/globals@30.5.2', ...SWC],
  },
  nest11: {
    title: '`nest new` of Nest 11',
    cli: '11.0.24',
    flags: [],
    packages: ['ioredis@5.11.1', '@nestjs/schedule@6.1.3', ...SWC],
  },
};

/** Test runners, and the generated applications in which they run. */
export const RUNNERS = [
  { runner: 'Vitest', scaffold: 'nest12' },
  { runner: 'jest, ESM', scaffold: 'nest12' },
  { runner: 'ts-jest', scaffold: 'nest11' },
  { runner: 'jest, CommonJS', scaffold: 'nest11' },
];

const NEST_11 = nest('11.2.10', { terminus: '11.1.1', schedule: '6.1.3' });
const NEST_12 = nest('12.5.1', { terminus: '12.1.0', schedule: '12.0.2' });
const IOREDIS_5 = { ioredis: '5.11.1' };
const IOREDIS_6 = { ioredis: '6.0.0' };
const LOWEST_PEERS = { 'reflect-metadata': '0.2.0', rxjs: '7.8.0', '@opentelemetry/api': '1.9.0' };

/**
 * Applications that the tarball is installed into, by their other packages. All of them take locks. What does not
 * depend on each of their packages is tried in some of them only.
 */
export const CONSUMERS = [
  consumer('nest11-ioredis5', 'Nest 11.2, ioredis 5.11', { ...NEST_11, ...IOREDIS_5 }, [
    'exports',
    'CLI',
    'two copies',
  ]),
  consumer('nest11-ioredis6', 'Nest 11.2, ioredis 6.0', { ...NEST_11, ...IOREDIS_6 }),
  consumer('nest12-ioredis5', 'Nest 12.5, ioredis 5.11', { ...NEST_12, ...IOREDIS_5 }),
  consumer('nest12-ioredis6', 'Nest 12.5, ioredis 6.0', { ...NEST_12, ...IOREDIS_6 }, ['CLI', 'two copies']),
  consumer(
    'nest11-lowest',
    'Nest 11.0.0, ioredis 5.4.0, lowest peers',
    {
      ...nest('11.0.0', { terminus: '11.0.0', schedule: '6.0.0' }),
      ...LOWEST_PEERS,
      ioredis: '5.4.0',
    },
    ['CLI'],
  ),
  consumer('nest12-lowest', 'Nest 12.0.1, ioredis 5.4.0, lowest peers', {
    ...nest('12.0.1', { terminus: '12.0.0', schedule: '12.0.0' }),
    ...LOWEST_PEERS,
    ioredis: '5.4.0',
  }),
  consumer('bare', 'Nest 12.5, ioredis 6.0, no optional peer', withoutOptional({ ...NEST_12, ...IOREDIS_6 }), [
    'exports',
  ]),
];

/** The compilers and applications of the type checks, which include the declarations of all packages. */
export const TYPESCRIPTS = ['5.4.5', '5.9.3', '6.0.3', '7.0.2'];
export const TYPED_CONSUMERS = ['nest11-ioredis5', 'nest12-ioredis6'];

const ESM_ONLY = 'Nest 12 is ESM only';
/** Errors of compilers that assume that `require` cannot load ESM: for imports, and for imports of types. */
const CANNOT_REQUIRE = ['TS1479', 'TS1541', 'TS1542'];
const SETTINGS = [
  { name: 'nodenext, ESM', type: 'module', options: { module: 'nodenext' } },
  { name: 'nodenext, CommonJS', type: 'commonjs', options: { module: 'nodenext' } },
  { name: 'node16, ESM', type: 'module', options: { module: 'node16' } },
  { name: 'node16, CommonJS', type: 'commonjs', options: { module: 'node16' } },
  { name: 'bundler', type: 'module', options: { module: 'esnext', moduleResolution: 'bundler' } },
  { name: 'node10', type: 'commonjs', options: { module: 'commonjs', moduleResolution: 'node10' } },
];

/**
 * Type checks. Each setting has at least one old and one new compiler: all combinations would take minutes.
 *
 * `refused`: the compiler must report one of these errors and no other, and name the cause.
 */
export const TYPE_CHECKS = [
  ...checks('5.4.5', ['nodenext, ESM', 'bundler']),
  ...checks('5.9.3', ['node16, CommonJS', 'nodenext, CommonJS', 'node10']),
  ...checks('6.0.3', ['nodenext, ESM', 'nodenext, CommonJS', 'node10']),
  ...checks('7.0.2', ['nodenext, ESM', 'nodenext, CommonJS', 'node16, ESM', 'node16, CommonJS', 'bundler', 'node10']),
];

function checks(typescript, names) {
  return names.flatMap((name) => {
    const setting = SETTINGS.find((each) => each.name === name);
    return TYPED_CONSUMERS.map((consumerName) => ({
      typescript,
      consumer: consumerName,
      setting: { ...setting, options: { moduleResolution: setting.options.module, ...setting.options } },
      refused: refusal(typescript, name, consumerName),
    }));
  });
}

function refusal(typescript, setting, consumerName) {
  if (setting === 'node10' && typescript === '7.0.2')
    return { codes: ['TS5108'], names: 'node10', why: 'TypeScript 7 has no node10' };
  if (!consumerName.startsWith('nest12')) return undefined;
  return setting === 'node16, CommonJS' ? { codes: CANNOT_REQUIRE, names: '@nestjs/', why: ESM_ONLY } : undefined;
}

function consumer(name, title, dependencies, shows = []) {
  return { name, title, dependencies, shows, nest: Number.parseInt(dependencies['@nestjs/core']) };
}

function nest(version, { terminus, schedule }) {
  return {
    '@nestjs/common': version,
    '@nestjs/core': version,
    '@nestjs/platform-express': version,
    '@nestjs/schedule': schedule,
    '@nestjs/terminus': terminus,
    '@opentelemetry/api': '1.9.1',
    '@opentelemetry/sdk-trace-base': '2.12.0',
    '@types/node': '20.19.43',
    'reflect-metadata': '0.2.2',
    rxjs: '7.8.2',
  };
}

function withoutOptional(dependencies) {
  const isOptional = (name) => /^@nestjs\/(?:schedule|terminus)$|^@opentelemetry\//.test(name);
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => !isOptional(name)));
}
