import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from '@jest/globals';
import ts from 'typescript';

/** The files of lib that a file imports, also for types only. */
const importsOf = (file: string): string[] =>
  ts
    .preProcessFile(readFileSync(file, 'utf8'))
    .importedFiles.map(({ fileName }) => join(dirname(file), fileName.replace(/\.js$/, '.ts')))
    .filter((imported) => existsSync(imported));

// The linter does not follow imports of types.
it('No file of lib imports itself through others, not even a type', () => {
  const files = readdirSync('lib', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  const waiting = new Map(files.map((path) => [join('lib', path), importsOf(join('lib', path))]));
  expect(waiting.size).toBeGreaterThan(100);
  // Takes away what imports nothing that is left, until only cycles and what leads to them are left.
  for (let size = Infinity; waiting.size < size;) {
    size = waiting.size;
    for (const [file, imports] of waiting) if (!imports.some((each) => waiting.has(each))) waiting.delete(file);
  }
  expect([...waiting.keys()]).toEqual([]);
});

/** The names that a file exports, types too. A module that is exported under a name is one. */
const exportsOf = (file: string): string[] =>
  ts
    .createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
    .statements.flatMap((statement) => {
      if (ts.isExportDeclaration(statement)) {
        const { exportClause: clause } = statement;
        if (!clause) throw new Error(`${file} has an export without names`);
        return ts.isNamespaceExport(clause) ? [clause.name.text] : clause.elements.map(({ name }) => name.text);
      }
      const isExported =
        ts.canHaveModifiers(statement) &&
        ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
      if (!isExported) return [];
      if (ts.isVariableStatement(statement))
        return statement.declarationList.declarations.map(({ name }) => (name as ts.Identifier).text);
      return [(statement as ts.DeclarationStatement).name?.getText() ?? 'default'];
    });

it('The entry without promises has fewer than 25 names, and five of them are whole modules', () => {
  const source = readFileSync('lib/internal.ts', 'utf8');
  const modules = [...source.matchAll(/export \* as (\w+)/g)].map(([, name]) => name);
  expect(modules).toEqual(['display', 'inspections', 'jobRecords', 'schema', 'calledMethods']);
  expect(exportsOf('lib/internal.ts').length).toBeLessThan(25);
});
