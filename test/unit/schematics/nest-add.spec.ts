import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { format } from 'prettier';
import typescript from 'typescript';
import { findTypeScript, registerIn } from '../../../lib/schematics/nest-add/edit-module.js';

const IMPORTS = `import { Module } from '@nestjs/common';
import { OrderModule } from './order.module.js';
`;
const CALL = `RedlockModule.forRoot({
      masters: process.env.REDLOCK_MASTERS?.split(',') ?? [
        'redis://127.0.0.1:6381',
        'redis://127.0.0.1:6382',
        'redis://127.0.0.1:6383',
      ],
      // Of this application alone: two that share it share their locks and jobs.
      keyPrefix: 'shop:',
      // In development, locks stop for two seconds if two masters restart.
      ttl: process.env.REDLOCK_MASTERS ? '10s' : '2s',
    })`;

function fileWith(decorator: string, imports = IMPORTS): string {
  return `${imports}
${decorator}
export class AppModule {}
`;
}

function edited(text: string, className?: string): string {
  const edit = registerIn(typescript, text, className, 'shop:');
  if ('unusual' in edit) throw new Error(edit.unusual);
  return edit.text;
}

/** The elements of `imports` of each module, as a compiler sees them. */
function importsOf(text: string): string[] {
  const file = typescript.createSourceFile('a.ts', text, typescript.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: typescript.Node): void => {
    if (typescript.isPropertyAssignment(node) && node.name.getText().includes('imports'))
      found.push(...(node.initializer as typescript.ArrayLiteralExpression).elements.map((each) => each.getText()));
    typescript.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

describe('registerIn', () => {
  it('adds the registration and the import to a module of nest new', () => {
    const text = fileWith('@Module({\n  imports: [],\n  controllers: [],\n})');
    expect(edited(text)).toBe(`${IMPORTS}import { RedlockModule } from 'nestjs-redlock';

@Module({
  imports: [
    ${CALL},
  ],
  controllers: [],
})
export class AppModule {}
`);
  });

  it.each([
    ['an empty list', '@Module({\n  imports: [],\n})', 0],
    [
      'a list on several lines',
      '@Module({\n  imports: [\n    OrderModule,\n    OrderModule.register({ a: 1, b: [2] }),\n  ],\n})',
      2,
    ],
    ['metadata on one line', '@Module({ imports: [OrderModule], providers: [] })', 1],
    ['metadata on one line without imports', '@Module({ providers: [] })', 0],
    ['empty metadata', '@Module({})', 0],
    [
      'comments at the end of the list',
      '@Module({\n  imports: [\n    OrderModule, // first, of all\n    // last\n  ],\n})',
      1,
    ],
    ['a comment in an empty list', '@Module({\n  imports: [\n    // none yet\n  ],\n})', 0],
  ])('writes %s as prettier does', async (_, decorator, others) => {
    const text = edited(fileWith(decorator));
    expect(await format(text, { parser: 'typescript', singleQuote: true, trailingComma: 'all' })).toBe(text);
    expect(importsOf(text)).toHaveLength(others + 1);
    expect(importsOf(text).filter((each) => each.startsWith('RedlockModule.forRoot('))).toHaveLength(1);
  });

  it.each([
    [
      'a list without a comma at its end',
      '@Module({\n  imports: [\n    OrderModule, // a\n    OrderModule // b\n  ]\n})',
      2,
    ],
    ['a list whose only element has several lines', '@Module({ imports: [OrderModule.register({\n  a: 1\n})] })', 1],
    ['a comment in a list on one line', '@Module({ imports: [/* first */ OrderModule /* last */] })', 1],
    ['a quoted property', "@Module({ 'imports': [OrderModule] })", 1],
  ])('keeps every element and comment of %s', (_, decorator, others) => {
    const text = edited(fileWith(decorator));
    expect(typescript.transpileModule(text, { reportDiagnostics: true }).diagnostics).toEqual([]);
    expect(importsOf(text)).toHaveLength(others + 1);
    expect(importsOf(text)[0]).toMatch(/^RedlockModule\.forRoot\(/);
    const around = text.replace(/RedlockModule\.forRoot\([^]*?\n *\}\)/, '');
    expect(around.match(/\/\*.*?\*\/|\/\/ .*/g)).toEqual(decorator.match(/\/\*.*?\*\/|\/\/ .*/g));
  });

  it('keeps the quotes, the indentation, the line endings and the missing semicolons of the file', () => {
    const text =
      'import { Module } from "@nestjs/common"\n\n@Module({\n\timports: [],\n})\nexport class AppModule {}\n';
    const windows = edited(text.replaceAll('\n', '\r\n'));
    expect(windows.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
    expect(windows.split('\r\n')).toEqual(
      expect.arrayContaining([
        'import { RedlockModule } from "nestjs-redlock"',
        '\timports: [',
        '\t\tRedlockModule.forRoot({',
        '\t\t\tmasters: process.env.REDLOCK_MASTERS?.split(",") ?? [',
        '\t\t\t\t"redis://127.0.0.1:6381",',
      ]),
    );
  });

  it('writes no second import if the file has it', () => {
    const imports = `${IMPORTS}import { RedlockModule, WithLock } from 'nestjs-redlock';\n`;
    expect(edited(fileWith('@Module({})', imports)).match(/nestjs-redlock/g)).toHaveLength(1);
  });

  it('writes the import below the line that names an interpreter', () => {
    const text = edited(
      "#!/usr/bin/env node\nconst { Module } = require('@nestjs/common');\n@Module({})\nclass A {}\n",
    );
    expect(text).toMatch(/^#!\/usr\/bin\/env node\nimport \{ RedlockModule \} from/);
  });

  it('finds imports whose name is a computed text', () =>
    expect(edited(fileWith("@Module({ ['imports']: [OrderModule] })")).match(/imports/g)).toHaveLength(1));

  it('says which class it has not found', () =>
    expect(registerIn(typescript, fileWith('@Module({})'), 'Root', 'shop:')).toEqual({
      unusual: 'it has no Root with @Module',
    }));

  it('adds an import to a file that imports only a type of that package', () => {
    const imports = `${IMPORTS}import type { Lock } from 'nestjs-redlock';\n`;
    expect(edited(fileWith('@Module({})', imports))).toContain("import { RedlockModule } from 'nestjs-redlock';\n");
  });

  const NO_LIST = 'its imports are not a list in square brackets';

  it.each([
    ['several modules in the file', '@Module({}) class Other {}\n@Module({})', 'it has 2 classes with @Module'],
    ['no module in the file', '', 'it has no class with @Module'],
    ['a variable as metadata', '@Module(metadata)', 'the metadata is not written between the parentheses of @Module'],
    ['more in the metadata', '@Module({ ...metadata })', 'the metadata contains other metadata with "..."'],
    ['a variable as imports', '@Module({ imports: all })', NO_LIST],
    ['a variable named imports', '@Module({ imports })', NO_LIST],
    ['a computed list', '@Module({ imports: [OrderModule].concat(others) })', NO_LIST],
    [
      'a module of the same name from another package',
      "import { RedlockModule } from 'other';\n@Module({})",
      'it uses the name RedlockModule for something else',
    ],
  ])('leaves %s to the reader', (_, decorator, unusual) =>
    expect(registerIn(typescript, fileWith(decorator), undefined, 'shop:')).toEqual({ unusual }),
  );
});

describe('findTypeScript', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'redlock-typescript-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function install(path: string, name: string, code = ''): Promise<void> {
    const place = join(folder, path, 'node_modules', name);
    await mkdir(place, { recursive: true });
    await writeFile(join(place, 'package.json'), JSON.stringify({ name, main: 'index.js' }));
    await writeFile(join(place, 'index.js'), code);
  }

  it('finds the compiler of the application', async () => {
    await install('', 'typescript', "module.exports = { version: '5.9.3', createSourceFile() {} }");
    expect(findTypeScript(folder)?.version).toBe('5.9.3');
  });

  it('passes over a compiler without an API, as version 7 is, for that of the command line of Nest', async () => {
    await install('', 'typescript', "module.exports = { version: '7.0.2' }");
    await install('', '@nestjs/cli');
    await install(
      'node_modules/@nestjs/cli',
      'typescript',
      "module.exports = { version: '6.0.3', createSourceFile() {} }",
    );
    expect(findTypeScript(folder)?.version).toBe('6.0.3');
  });

  it('finds nothing in an application without a compiler', () => expect(findTypeScript(folder)).toBeUndefined());
});
