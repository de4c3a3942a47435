// Runs the schematic of the build in the engine of @angular-devkit, as the command line of Nest does.
import { beforeEach, describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { NestAddOptions } from '../../lib/schematics/nest-add/nest-add.js';

/** Files in memory that a schematic changes. */
interface SchematicTree {
  readonly files: string[];
  create(path: string, content: string): void;
  readText(path: string): string;
  readJson(path: string): unknown;
}

/** The engine that a command line runs schematics in. */
interface SchematicRunner {
  readonly logger: { subscribe(listener: (entry: { level: string; message: string }) => void): unknown };
  readonly tasks: readonly { name: string; options: unknown }[];
  runSchematic(name: string, options: object, tree: SchematicTree): Promise<SchematicTree>;
}

// Loaded without its declarations, which do not compile with `exactOptionalPropertyTypes`. What is used of them is here.
const require = createRequire(import.meta.url);
const { HostTree } = require('@angular-devkit/schematics') as { HostTree: new () => SchematicTree };
const { SchematicTestRunner } = require('@angular-devkit/schematics/testing') as {
  SchematicTestRunner: new (name: string, collection: string) => SchematicRunner;
};
const { schematics, peerDependencies } = require('../../package.json') as {
  schematics: string;
  peerDependencies: Record<string, string>;
};
const collection = fileURLToPath(new URL(`../../${schematics}`, import.meta.url));

/** The files of `nest new` that matter here. */
function newApplication({ ending = '', runner = 'jest' } = {}): Record<string, string> {
  return {
    'package.json': manifest({ name: 'Shop', devDependencies: { '@nestjs/testing': '^12.0.1', [runner]: '^4.0.0' } }),
    'nest-cli.json': JSON.stringify({ collection: '@nestjs/schematics', sourceRoot: 'src' }),
    'src/main.ts': `import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module${ending}';

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  await app.listen(process.env.PORT ?? 3000);
}
bootstrap();
`,
    'src/app.module.ts': `import { Module } from '@nestjs/common';

@Module({
  imports: [],
})
export class AppModule {}
`,
  };
}

/** A file main.ts that starts an application with this module. */
function mainOf(module: string, statements: string): string {
  return `import { NestFactory } from '@nestjs/core';\n${statements}\nvoid NestFactory.create(${module});\n`;
}

function manifest(content: object): string {
  return `${JSON.stringify(content, undefined, 4)}\n`;
}

describe('nest add nestjs-redlock', () => {
  let runner: SchematicRunner;
  let log: string[];

  beforeEach(() => {
    runner = new SchematicTestRunner('nestjs-redlock', collection);
    log = [];
    runner.logger.subscribe(({ level, message }) => log.push(`${level}: ${message}`));
  });

  function add(files: Record<string, string>, options: NestAddOptions = { sourceRoot: 'src' }): Promise<SchematicTree> {
    const tree = new HostTree();
    for (const [path, content] of Object.entries(files)) tree.create(path, content);
    return runner.runSchematic('nest-add', options, tree);
  }

  const contentOf = (tree: SchematicTree): Record<string, string> =>
    Object.fromEntries(tree.files.map((path) => [path, tree.readText(path)]));

  it.each([
    ['CommonJS with jest', newApplication()],
    ['ESM with vitest', newApplication({ ending: '.js', runner: 'vitest' })],
  ])('prepares an application that is %s', async (_, files) => {
    const tree = await add(files);

    expect(tree.readText('src/app.module.ts')).toContain('RedlockModule.forRoot(');
    expect(tree.readText('src/redlock.spec.ts')).toContain('imports: [RedlockTestingModule.forRoot()]');
    expect(tree.readJson('package.json')).toMatchObject({ dependencies: { ioredis: '^6.0.0' } });
    expect(peerDependencies.ioredis!.split(' || ')).toContain('^6.0.0');
    expect(tree.files).toContain('/docker-compose.redlock.yml');
    expect(runner.tasks.map(({ name, options }) => ({ name, options }))).toEqual([
      { name: 'node-package', options: { command: 'install', quiet: true, hideOutput: true } },
    ]);
    expect(log.filter((line) => !line.startsWith('info: '))).toEqual([]);
  });

  it('writes a Compose file with the masters of the module, under a name of its own', async () => {
    const tree = await add(newApplication());
    const { name, services } = parse(tree.readText('docker-compose.redlock.yml'), { merge: true });
    expect(name).toBe('shop-redlock');
    expect(Object.keys(services)).toHaveLength(3);
    const module = tree.readText('src/app.module.ts');
    for (const { ports, command } of Object.values<{ ports: string[]; command: string }>(services)) {
      const [, address] = /^(127\.0\.0\.1:\d+):6379$/.exec(ports[0]!)!;
      expect(module).toContain(`'redis://${address!}',`);
      expect(command).toContain('--maxmemory-policy noeviction');
    }
  });

  it.each([
    ['its package', 'Shop', 'shop:'],
    ['its package with a scope', '@acme/Shop_API', 'acme-shop-api:'],
  ])('gives an application a key prefix by the name of %s', async (_, name, keyPrefix) => {
    const tree = await add({ ...newApplication(), 'package.json': manifest({ name }) });
    expect(tree.readText('src/app.module.ts')).toContain(`keyPrefix: '${keyPrefix}',`);
  });

  it('changes nothing when it runs again, and says so', async () => {
    const first = await add(newApplication());
    const before = contentOf(first);
    log.length = 0;
    const second = await runner.runSchematic('nest-add', { sourceRoot: 'src' }, first);

    expect(contentOf(second)).toEqual(before);
    expect(runner.tasks).toEqual([]);
    expect(log).toEqual([
      'info: src/app.module.ts registers RedlockModule already: no module is changed.',
      'info: docker-compose.redlock.yml exists already: it is not changed.',
      'info: src/redlock.spec.ts exists already: it is not changed.',
    ]);
  });

  it.each([
    ['another module registers it', 'RedlockModule', 'RedlockModule.forRootAsync({ useClass: Config })'],
    ['it is imported under another name', 'RedlockModule as Locks', 'Locks.forRoot([])'],
  ])('does not register the module twice if %s', async (_, name, registration) => {
    const locks = `import { ${name} } from 'nestjs-redlock';\nexport const locks = ${registration};\n`;
    const files: Record<string, string> = { ...newApplication(), 'src/core/locks.ts': locks };
    const tree = await add(files);
    expect(tree.readText('src/app.module.ts')).toBe(files['src/app.module.ts']);
    expect(log[0]).toBe('info: src/core/locks.ts registers RedlockModule already: no module is changed.');
  });

  it('does not register the module twice in a root module outside the folder of sources', async () => {
    const main = mainOf('AppModule', "import { AppModule } from '../shared/app.module';");
    const files = {
      ...newApplication(),
      'src/main.ts': main,
      'shared/app.module.ts': newApplication()['src/app.module.ts']!,
    };
    const tree = await add(files);
    const once = tree.readText('shared/app.module.ts');
    expect(once).toContain('RedlockModule.forRoot(');
    const again = await add({ ...files, 'shared/app.module.ts': once });
    expect(again.readText('shared/app.module.ts')).toBe(once);
  });

  it('does not overwrite files, and says which ones it has left', async () => {
    const own = { 'docker-compose.redlock.yml': 'services: {}\n', 'src/redlock.spec.ts': '// mine\n' };
    const tree = await add({ ...newApplication(), ...own });
    expect(contentOf(tree)).toMatchObject({
      '/docker-compose.redlock.yml': 'services: {}\n',
      '/src/redlock.spec.ts': '// mine\n',
    });
    expect(log.filter((line) => line.startsWith('warn'))).toEqual(
      Object.keys(own).map(
        (path) =>
          `warn: ${path} exists with other content: it is not changed. To get the new one, rename it and run this again.`,
      ),
    );
  });

  it('shows what to paste if the module has an unusual shape, and does the rest', async () => {
    const module = "import { Module } from '@nestjs/common';\n\n@Module(metadata)\nexport class AppModule {}\n";
    const tree = await add({ ...newApplication(), 'src/app.module.ts': module });
    expect(tree.readText('src/app.module.ts')).toBe(module);
    expect(log[0])
      .toBe(`warn: src/app.module.ts is not changed: the metadata is not written between the parentheses of @Module. Please add this by hand:

import { RedlockModule } from 'nestjs-redlock';

@Module({
  imports: [
    RedlockModule.forRoot({
      masters: process.env.REDLOCK_MASTERS?.split(',') ?? [
        'redis://127.0.0.1:6381',
        'redis://127.0.0.1:6382',
        'redis://127.0.0.1:6383',
      ],
      // Of this application alone: two that share it share their locks and jobs.
      keyPrefix: 'shop:',
      // In development, locks stop for two seconds if two masters restart.
      ttl: process.env.REDLOCK_MASTERS ? '10s' : '2s',
    }),
  ],
})
`);
    expect(tree.files).toContain('/docker-compose.redlock.yml');
  });

  describe('the root module', () => {
    it('is the one that main.ts passes to NestFactory, under whatever name and in whatever folder', async () => {
      const tree = await add({
        ...newApplication(),
        'src/main.ts': `import { NestFactory } from '@nestjs/core';
import { ShopModule as Root } from './shop/index.js';
void NestFactory.createMicroservice<Options>(Root, {});
`,
        'src/shop/index.ts': `import { Module } from '@nestjs/common';

@Module({})
export class OtherModule {}

@Module({ imports: [OtherModule] })
export class ShopModule {}
`,
      });
      expect(tree.readText('src/shop/index.ts')).toMatch(/RedlockModule\.forRoot[^]*\n {4}OtherModule,\n/);
      expect(tree.readText('src/app.module.ts')).not.toContain('Redlock');
    });

    it.each([
      [
        'may be in main.ts itself',
        'src/main.ts',
        mainOf('Root', "import { Module } from '@nestjs/common';\n@Module({})\nclass Root {}"),
      ],
      [
        'is app.module.ts if main.ts does not show it',
        'src/app.module.ts',
        "import { start } from './start';\nvoid start();\n",
      ],
    ])('%s', async (_, path, main) => {
      const tree = await add({ ...newApplication(), 'src/main.ts': main });
      expect(tree.readText(path)).toContain('RedlockModule.forRoot(');
    });

    it('is no other module if main.ts names one that cannot be found', async () => {
      const files: Record<string, string> = {
        ...newApplication(),
        'src/main.ts': mainOf('Root', "import Root from './root';"),
      };
      const tree = await add(files);
      expect(tree.readText('src/app.module.ts')).toBe(files['src/app.module.ts']);
      expect(log[0]).toContain('warn: The root module is not found');
    });
  });

  describe('a monorepo', () => {
    const projects = {
      api: { type: 'application', root: 'apps/api', entryFile: 'main', sourceRoot: 'apps/api/src' },
      worker: { type: 'application', root: 'apps/worker', entryFile: 'start', sourceRoot: 'apps/worker/src' },
    };
    const { 'src/main.ts': main, 'src/app.module.ts': module, ...common } = newApplication();
    const monorepo = {
      ...common,
      'nest-cli.json': JSON.stringify({ sourceRoot: 'apps/api/src', monorepo: true, projects }),
      'apps/api/src/main.ts': main!.replaceAll('app.module', 'api.module'),
      'apps/api/src/api.module.ts': module!,
      'apps/worker/src/start.ts': main!.replaceAll('app.module', 'worker.module'),
      'apps/worker/src/worker.module.ts': module!,
    };

    it.each<[string, NestAddOptions, string, string, string]>([
      [
        'the one that --project names',
        { project: 'worker', sourceRoot: 'apps/api/src' },
        'worker',
        'api',
        'shop-worker:',
      ],
      [
        'the one whose sources the command line passes',
        { sourceRoot: 'apps/worker/src' },
        'worker',
        'api',
        'shop-worker:',
      ],
      ['the default one otherwise', {}, 'api', 'worker', 'shop:'],
    ])('has one project changed: %s', async (_, options, changed, other, keyPrefix) => {
      const tree = await add(monorepo, options);
      const registration = tree.readText(`apps/${changed}/src/${changed}.module.ts`);
      expect(registration).toContain(`keyPrefix: '${keyPrefix}',`);
      expect(tree.files).toContain(`/apps/${changed}/src/redlock.spec.ts`);
      expect(tree.readText(`apps/${other}/src/${other}.module.ts`)).toBe(module);
      expect(tree.files).not.toContain(`/apps/${other}/src/redlock.spec.ts`);
    });

    it('refuses a project that it does not have', async () => {
      await expect(add(monorepo, { project: 'web' })).rejects.toThrow(
        'There is no project "web" in nest-cli.json; there are: api, worker.',
      );
    });
  });

  describe('package.json', () => {
    function ioredisAfter(content: object, files: Record<string, string> = {}): Promise<unknown> {
      return add({ ...newApplication(), 'package.json': manifest(content), ...files }).then((tree) => {
        const { dependencies, devDependencies } = tree.readJson('package.json') as Record<string, object>;
        return { dependencies, devDependencies };
      });
    }

    it('gets the version of ioredis that is installed', async () => {
      const installed = { 'node_modules/ioredis/package.json': '{ "version": "5.11.1" }' };
      await expect(ioredisAfter({}, installed)).resolves.toEqual({ dependencies: { ioredis: '^5.11.1' } });
    });

    it('keeps its ioredis, its indentation and its last line', async () => {
      const content = manifest({ name: 'shop', dependencies: { ioredis: '5.4.0' } });
      const tree = await add({ ...newApplication(), 'package.json': content });
      expect(tree.readText('package.json')).toBe(content);
      const added = await add({ ...newApplication(), 'package.json': manifest({ name: 'shop' }) });
      expect(added.readText('package.json')).toBe(manifest({ name: 'shop', dependencies: { ioredis: '^6.0.0' } }));
    });

    it('has ioredis moved from what is installed for development only', async () => {
      await expect(ioredisAfter({ devDependencies: { ioredis: '^5.4.0', jest: '^30.0.0' } })).resolves.toEqual({
        dependencies: { ioredis: '^5.4.0' },
        devDependencies: { jest: '^30.0.0' },
      });
    });
  });

  it('leaves out what the options skip', async () => {
    const tree = await add(newApplication(), { skipCompose: true, skipSpec: true, skipInstall: true });
    expect(tree.files).not.toContain('/docker-compose.redlock.yml');
    expect(tree.files).not.toContain('/src/redlock.spec.ts');
    expect(runner.tasks).toEqual([]);
    expect(tree.readText('src/app.module.ts')).toContain('RedlockModule.forRoot(');
  });

  it('writes no test for an application without a test runner, and says so', async () => {
    const tree = await add({
      ...newApplication(),
      'package.json': '{ "devDependencies": { "@nestjs/testing": "1" } }',
    });
    expect(tree.files).not.toContain('/src/redlock.spec.ts');
    expect(log).toContain('info: No example of a test is written, because package.json does not name jest or vitest.');
    await add({ ...newApplication(), 'package.json': '{}' });
    expect(log.join()).toContain('does not name @nestjs/testing, jest or vitest.');
  });
});
