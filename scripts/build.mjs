// npm run build: dist/esm and dist/cjs. With --no-check, for tests and the demo, the same without a check of the types.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import embed from './embed.mjs';
import { optionsOf } from './options.mjs';
import { mustRun, root } from './run.mjs';

const dist = join(root, 'dist');
const compiler = join(root, 'node_modules/typescript/bin/tsc');

// Otherwise the output of a deleted source file would be published.
rmSync(dist, { recursive: true, force: true });
embed();
const { values } = optionsOf({ options: { check: { type: 'boolean', default: true } }, allowNegative: true });
// At the same time: the second one never checks types.
const formats = ['tsconfig.build.json', 'tsconfig.build.cjs.json'];
const unchecked = values.check ? [] : ['--noCheck'];
await Promise.all(formats.map((file) => mustRun(process.execPath, [compiler, '-p', file, ...unchecked])));

// Without comments: editors show those of the declarations.
const printer = ts.createPrinter({ removeComments: true });
for (const file of readdirSync(dist, { recursive: true }).filter((name) => name.endsWith('.js'))) {
  const path = join(dist, file);
  const source = ts.createSourceFile(file, readFileSync(path, 'utf8'), ts.ScriptTarget.ESNext, false, ts.ScriptKind.JS);
  writeFileSync(path, printer.printFile(source));
}

// The schematics engine reads them beside the compiled code.
cpSync(join(root, 'lib/schematics'), join(dist, 'cjs/schematics'), {
  recursive: true,
  filter: (path) => path.endsWith('.json') || statSync(path).isDirectory(),
});

// Migrations as files, for tools that read no JavaScript.
const { fenceMigration } = await import(pathToFileURL(join(dist, 'esm/sql/migrations.js')).href);
mkdirSync(join(dist, 'sql'));
for (const dialect of ['postgres', 'mysql', 'sqlite']) {
  writeFileSync(join(dist, `sql/${dialect}.sql`), `${fenceMigration(dialect).join(';\n\n')};\n`);
}

// The package is "type": "module", so Node would load dist/cjs as ESM without a package.json of its own. Last, because a
// build is as old as this file.
writeFileSync(join(dist, 'cjs/package.json'), '{ "type": "commonjs" }\n');
