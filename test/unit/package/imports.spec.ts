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

it('The entry without promises has fewer than 25 names, and five of them are whole modules', () => {
  const source = readFileSync('lib/internal.ts', 'utf8');
  const modules = [...source.matchAll(/^export \* as (\w+)/gm)].map(([, name]) => name);
  expect(modules).toEqual(['display', 'inspections', 'jobRecords', 'schema', 'calledMethods']);
  const names = [...source.matchAll(/^export \{ (.+) \}/gm)].flatMap(([, list]) => list!.split(', '));
  expect(source.match(/\bexport\b/g)!.length).toBe(source.match(/^export (?:\* as|\{ .+ \})/gm)!.length);
  expect(modules.length + names.length).toBeLessThan(25);
});
