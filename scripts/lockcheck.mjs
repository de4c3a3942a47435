// While a registry does not yet have the binaries of a new release for every platform, npm writes a lockfile without
// them, and `npm ci` then refuses that lockfile. This check finds such a lockfile first.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const LOCKFILES = [
  'package-lock.json',
  'test/benchmark/package-lock.json',
  'test/sql/package-lock.json',
  'site/package-lock.json',
];

const problems = LOCKFILES.flatMap((file) => {
  const { packages } = JSON.parse(readFileSync(fileURLToPath(new URL(`../${file}`, import.meta.url)), 'utf8'));
  const locked = new Set(Object.keys(packages).map((path) => path.slice(path.lastIndexOf('node_modules/') + 13)));

  return Object.entries(packages).flatMap(([path, entry]) => [
    ...Object.keys(entry.optionalDependencies ?? {})
      .filter((name) => !locked.has(name))
      .map((name) => `${file}: ${path}@${entry.version} names ${name}, which is not in the lockfile`),
    ...(entry.extraneous ? [`${file}: nothing needs ${path}; run npm install once more`] : []),
  ]);
});

for (const problem of problems) console.error(problem);
console.log(problems.length ? `${problems.length} problems` : `complete: ${LOCKFILES.join(', ')}`);
process.exitCode = problems.length ? 1 : 0;
