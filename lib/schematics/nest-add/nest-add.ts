import { posix } from 'node:path';
import { type Project, register, type SchematicContext, type Tree } from './edit-module.js';

// As in `schema.json`.
export interface NestAddOptions {
  readonly project?: string;
  readonly sourceRoot?: string;
  readonly skipCompose?: boolean;
  readonly skipSpec?: boolean;
  readonly skipInstall?: boolean;
}

const COMPOSE_FILE = 'docker-compose.redlock.yml';
const DOCUMENTATION = 'node_modules/nestjs-redlock/docs/testing.md';

// Prepares an application for its first lock. A second run changes nothing.
export function nestAdd(options: NestAddOptions) {
  return (tree: Tree, context: SchematicContext): void => {
    const project = projectOf(tree, options);
    const isRegistered = register(tree, context, project);
    addDependency(tree, context, options);
    if (!options.skipCompose) {
      const content = composeFile(readManifest(tree).name ?? 'app');
      if (createFile(tree, context, COMPOSE_FILE, content))
        context.logger.info(`Three masters for development: docker compose -f ${COMPOSE_FILE} up -d`);
    }
    if (!options.skipSpec) addSpec(tree, context, project);
    if (isRegistered) {
      context.logger.info('The variable REDLOCK_MASTERS names other masters, with commas between their URLs.');
      context.logger.info(
        'Tests that start the whole application need masters from now on, or locks in memory: ' +
          `imports: [AppModule, RedlockTestingModule.forRoot()], see ${DOCUMENTATION}`,
      );
    }
  };
}

function addDependency(tree: Tree, context: SchematicContext, { skipInstall }: NestAddOptions): void {
  const range = addIoredis(tree);
  if (range === undefined) return;
  context.logger.info(`package.json now has ioredis ${range} among its dependencies: nestjs-redlock needs it.`);
  if (skipInstall) return;
  // The name and the options of NodePackageInstallTask.
  const configuration = { name: 'node-package', options: { command: 'install', quiet: true, hideOutput: true } };
  context.addTask({ toConfiguration: () => configuration });
}

function addSpec(tree: Tree, context: SchematicContext, { sourceRoot }: Project): void {
  const manifest = readManifest(tree);
  const missing = [['@nestjs/testing'], ['jest', 'vitest']].filter(
    (names) => !names.some((n) => declares(manifest, n)),
  );
  if (missing.length === 0) return void createFile(tree, context, `${sourceRoot}/redlock.spec.ts`, exampleSpec());
  const names = missing.map((each) => each.join(' or ')).join(', ');
  context.logger.info(`No example of a test is written, because package.json does not name ${names}.`);
}

// Gives whether the file has been written: it is left alone if it exists.
function createFile(tree: Tree, { logger }: SchematicContext, path: string, content: string): boolean {
  if (!tree.exists(path)) {
    tree.create(path, content);
    return true;
  }
  if (tree.readText(path) === content) logger.info(`${path} exists already: it is not changed.`);
  else
    logger.warn(
      `${path} exists with other content: it is not changed. To get the new one, rename it and run this again.`,
    );
  return false;
}

function slugOf(name: string): string {
  const slug = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return slug.replaceAll(/^-|-$/g, '').slice(0, 100) || 'app';
}

// The name keeps them apart from the containers of the application's own Compose file.
function composeFile(packageName: string): string {
  const name = slugOf(packageName);
  const master = (number: number) => `  master-${number}:
    <<: *master
    ports: ['127.0.0.1:${6380 + number}:6379']
`;
  return `# Three independent masters for the locks: no replication between them, each with a vote of its own.
# docker compose -f docker-compose.redlock.yml up -d
# This file is for development. In production, each master is on a machine of its own, or they fail together.
name: ${name}-redlock

x-master: &master
  image: redis:7-alpine
  command: redis-server --save "" --appendonly no --maxmemory-policy noeviction

services:
${[1, 2, 3].map(master).join('')}`;
}

const TESTING_MODULE = { name: 'RedlockTestingModule', from: 'nestjs-redlock/testing', options: '' };

// Its globals are those of jest and of vitest: a new application has one of the two.
function exampleSpec(): string {
  const { name, from, options } = TESTING_MODULE;
  const imports = new Map<string, string[]>([['nestjs-redlock', ['LockService', 'WithLock']]]);
  imports.set(from, [...(imports.get(from) ?? []), name].sort());
  const lines = [...imports].map(([source, names]) => `import { ${names.join(', ')} } from '${source}';`);
  return `import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
${lines.join('\n')}

// An example: test a provider of the application in the same way, and delete this class.
@Injectable()
class ReportService {
  @WithLock('report:daily', { onLocked: 'skip' })
  write(): Promise<string | undefined> {
    return Promise.resolve('written');
  }
}

describe('ReportService', () => {
  it('skips a report that another call is writing', async () => {
    const testing = await Test.createTestingModule({
      // Locks in memory: the test needs no Redis.
      imports: [${name}.forRoot(${options})],
      providers: [ReportService],
    }).compile();
    const app = await testing.init();
    const reports = app.get(ReportService);

    const lock = await app.get(LockService).acquire('report:daily', '10s');
    expect(await reports.write()).toBeUndefined();
    await lock.release();
    expect(await reports.write()).toBe('written');

    await app.close();
  });
});
`;
}

const PATH = 'package.json';

// For an application in which ioredis is not installed yet.
const IOREDIS_RANGE = '^6.0.0';

type Group = 'dependencies' | 'devDependencies' | 'optionalDependencies' | 'peerDependencies';

type Manifest = { readonly name?: string } & { [group in Group]?: Record<string, string> };

function readManifest(tree: Tree): Manifest {
  return tree.exists(PATH) ? (JSON.parse(tree.readText(PATH)) as Manifest) : {};
}

function declares({ dependencies, devDependencies }: Manifest, name: string): boolean {
  return Object.hasOwn({ ...dependencies, ...devDependencies }, name);
}

// Gives the range that was added. npm installs a peer dependency even if the application does not declare it, so its
// absence shows only with another package manager.
function addIoredis(tree: Tree): string | undefined {
  const manifest = readManifest(tree);
  const { dependencies, devDependencies, optionalDependencies, peerDependencies } = manifest;
  const present = { ...optionalDependencies, ...peerDependencies, ...dependencies };
  if (!tree.exists(PATH) || present.ioredis !== undefined) return undefined;
  const range = devDependencies?.ioredis ?? installedRange(tree) ?? IOREDIS_RANGE;
  const changed = { ...manifest, dependencies: sorted({ ...dependencies, ioredis: range }) };
  if (devDependencies?.ioredis !== undefined) {
    const { ioredis: _, ...others } = devDependencies;
    changed.devDependencies = others;
  }
  write(tree, changed);
  return range;
}

// What `npm install ioredis` would write for the version that another package has brought along.
function installedRange(tree: Tree): string | undefined {
  const path = 'node_modules/ioredis/package.json';
  if (!tree.exists(path)) return undefined;
  const { version } = JSON.parse(tree.readText(path)) as { version: string };
  return /^[56]\./.test(version) ? `^${version}` : undefined;
}

function write(tree: Tree, manifest: Manifest): void {
  const text = tree.readText(PATH);
  const indentation = /^[ \t]+(?=")/m.exec(text)?.[0] ?? '  ';
  const end = /\r?\n$/.exec(text)?.[0] ?? '';
  const content = JSON.stringify(manifest, undefined, indentation);
  tree.overwrite(PATH, (end.startsWith('\r') ? content.replaceAll('\n', '\r\n') : content) + end);
}

function sorted(record: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

interface NestConfiguration {
  readonly sourceRoot?: string;
  readonly entryFile?: string;
  readonly projects?: Readonly<Record<string, NestConfiguration>>;
}

const CONFIGURATION_FILES = ['nest-cli.json', '.nest-cli.json'];

function projectOf(tree: Tree, { project, sourceRoot }: NestAddOptions): Project {
  const file = CONFIGURATION_FILES.find((name) => tree.exists(name));
  const configuration = file === undefined ? {} : (JSON.parse(tree.readText(file)) as NestConfiguration);
  const projects = configuration.projects ?? {};
  if (project !== undefined && !Object.hasOwn(projects, project)) {
    const names = Object.keys(projects).join(', ') || 'none';
    throw new Error(`There is no project "${project}" in ${file ?? 'nest-cli.json'}; there are: ${names}.`);
  }
  // Without --project, the command line of Nest asks for one and passes only its sources.
  const own =
    project === undefined
      ? Object.values(projects).find((each) => each.sourceRoot !== undefined && each.sourceRoot === sourceRoot)
      : projects[project];
  const name = project ?? Object.entries(projects).find(([, each]) => each === own)?.[0];
  // The applications of a monorepo have one package.
  const parts = [readManifest(tree).name ?? '', ...(name === undefined ? [] : [name])];
  const folder = posix.normalize(own?.sourceRoot ?? sourceRoot ?? configuration.sourceRoot ?? 'src');
  const entry = (own?.entryFile ?? configuration.entryFile ?? 'main').replace(/\.[jt]s$/, '');
  return { sourceRoot: folder, entry: posix.join(folder, `${entry}.ts`), keyPrefix: `${slugOf(parts.join('-'))}:` };
}
