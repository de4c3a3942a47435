// Makes what the compiler has written complete: adds what is not TypeScript, and takes the comments out of the code. Editors
// show those of the declarations.
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
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

// The package is "type": "module", so Node would load dist/cjs as ESM without a package.json of its own. Last, because a
// build is as old as this file.
writeFileSync(join(dist, 'cjs/package.json'), '{ "type": "commonjs" }\n');
