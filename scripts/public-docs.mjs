// A rule of the linter: TSDoc belongs to the files that an entry point of the package exports. In any other file of lib, a
// comment is a line that gives a reason. `@internal` is an instruction to the compiler.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const lib = join(import.meta.dirname, '../lib');
const entries = [lib, ...readdirSync(lib).map((name) => join(lib, name))].map((folder) => join(folder, 'index.ts'));
const files = new Set(entries.filter((entry) => existsSync(entry)).flatMap(exportedBy));

export const publicDocs = {
  meta: { type: 'suggestion', messages: { line: 'Not public: a reason, in a // comment, or nothing.' } },
  create(context) {
    if (files.has(context.filename)) return {};
    const isDocumentation = ({ type, value }) =>
      type === 'Block' && value.startsWith('*') && !value.includes('@internal');
    return {
      Program() {
        for (const { loc } of context.sourceCode.getAllComments().filter(isDocumentation))
          context.report({ loc, messageId: 'line' });
      },
    };
  },
};

/** An entry point, and the files that it exports from, also by way of `internal.ts`. */
function exportedBy(entry) {
  const paths = exportsOf(entry).flatMap(({ names, path }) =>
    path === join(lib, 'internal.ts')
      ? exportsOf(path).flatMap((each) => (each.names.some((name) => names.includes(name)) ? [each.path] : []))
      : [path],
  );
  return [entry, ...paths];
}

function exportsOf(file) {
  const exports = readFileSync(file, 'utf8').matchAll(/^export\b([^;]*?) from '(\..+)\.js'/gm);
  return [...exports].map(([, names, path]) => ({
    names: names.match(/\w+/g) ?? [],
    path: join(dirname(file), `${path}.ts`),
  }));
}
