// npm run build: dist/esm and dist/cjs, bundled, because Node needs three times as long to load a hundred files. With
// --no-check, for tests and the demo, the same without a check of the types.
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rollup } from 'rollup';
import ts from 'typescript';
import embed from './embed.mjs';
import { optionsOf } from './options.mjs';
import { mustRun, root } from './run.mjs';

const dist = join(root, 'dist');
const compiled = join(dist, 'compiled');

// Otherwise the output of a deleted source file would be published.
rmSync(dist, { recursive: true, force: true });
embed();
const { values } = optionsOf({ options: { check: { type: 'boolean', default: true } }, allowNegative: true });
const compiler = join(root, 'node_modules/typescript/bin/tsc');
await mustRun(process.execPath, [compiler, '-p', 'tsconfig.build.json', ...(values.check ? [] : ['--noCheck'])]);

const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entries = Object.values(exports).flatMap(({ import: { default: file } = {} }) => file?.slice(11, -3) ?? []);
// The command line is never imported, and schematics are loaded by `require`.
const bundles = await Promise.all([
  bundle('esm', 'es', [...entries, 'cli/main']),
  bundle('cjs', 'cjs', [...entries, 'schematics/nest-add/nest-add']),
]);

const declarations = new Set();
for (const name of entries) addDeclarations(`${name}.d.ts`);
for (const { folder, output } of bundles) {
  for (const file of declarations) write(`${folder}/${file}`, withTabs(readFileSync(join(compiled, file), 'utf8')));
  for (const { fileName, code } of output) write(`${folder}/${fileName}`, withoutComments(code));
}
rmSync(compiled, { recursive: true });

// The schematics engine reads them beside the code.
cpSync(join(root, 'lib/schematics'), join(dist, 'cjs/schematics'), {
  recursive: true,
  filter: (path) => path.endsWith('.json') || statSync(path).isDirectory(),
});

// Migrations as files, for tools that read no JavaScript.
const { fenceMigration } = await import(pathToFileURL(join(dist, 'esm/sql/index.js')).href);
for (const dialect of ['postgres', 'mysql', 'sqlite']) {
  write(`sql/${dialect}.sql`, `${fenceMigration(dialect).join(';\n\n')};\n`);
}

// The package is "type": "module", so Node would load dist/cjs as ESM without a package.json of its own. Last, because a
// build is as old as this file.
write('cjs/package.json', '{ "type": "commonjs" }\n');

async function bundle(folder, format, names) {
  const graph = await rollup({
    input: Object.fromEntries(names.map((name) => [name, join(compiled, `${name}.js`)])),
    external: /^[^./]/,
    // What an entry takes from `index.ts` and `internal.ts` is all that it loads of them: no file of lib does anything.
    treeshake: { moduleSideEffects: (_, isExternal) => isExternal },
    onwarn(warning) {
      // `this && this.__decorate` in what TypeScript writes for decorators.
      if (warning.code !== 'THIS_IS_UNDEFINED') throw new Error(warning.message);
    },
  });
  const options = {
    format,
    chunkFileNames: 'chunks/[name].js',
    hoistTransitiveImports: false,
    dynamicImportInCjs: false,
    // Fewer chunks pack better.
    manualChunks: (id) => (/nest.(declared-methods|redlock.runtime|memory-runtime).js$/.test(id) ? 'nest' : undefined),
    onlyExplicitManualChunks: true,
  };
  return { folder, output: (await graph.generate(options)).output };
}

// Editors show those of the declarations.
function withoutComments(code) {
  const source = ts.createSourceFile('', code, ts.ScriptTarget.ESNext, false, ts.ScriptKind.JS);
  return withTabs(ts.createPrinter({ removeComments: true }).printFile(source));
}

// The package is smaller by a fiftieth. The text of a template stays as it is.
function withTabs(code) {
  const source = ts.createSourceFile('', code, ts.ScriptTarget.ESNext, false, ts.ScriptKind.JS);
  const texts = [];
  const visit = (node) => {
    const isText =
      ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isNoSubstitutionTemplateLiteral(node);
    if (isText) texts.push([node.getStart(source), node.end]);
    ts.forEachChild(node, visit);
  };
  visit(source);
  const isInText = (at) => texts.some(([start, end]) => start < at && at < end);
  return code.replace(/^(?: {4})+/gm, (blanks, at) => (isInText(at) ? blanks : '\t'.repeat(blanks.length / 4)));
}

// Those of the file, and of what they import.
function addDeclarations(file) {
  if (declarations.has(file)) return;
  declarations.add(file);
  const imports = readFileSync(join(compiled, file), 'utf8').matchAll(/(?:from |import\()['"](\..+?)\.js['"]/g);
  for (const [, path] of imports) addDeclarations(join(dirname(file), `${path}.d.ts`));
}

function write(file, content) {
  mkdirSync(dirname(join(dist, file)), { recursive: true });
  writeFileSync(join(dist, file), content);
}
