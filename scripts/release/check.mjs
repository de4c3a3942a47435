// Checks whether the working tree may be published as the version in its package.json. `npm publish` runs this first.
import { readFileSync } from 'node:fs';
import { releaseProblems } from './problems.mjs';

const read = (file) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

const problems = releaseProblems({
  manifest: JSON.parse(read('package.json')),
  lockfile: JSON.parse(read('package-lock.json')),
  changelog: read('CHANGELOG.md'),
  environment: process.env,
});
for (const problem of problems) console.error(problem);
console.log(problems.length ? `${problems.length} problems: not to be published` : 'to be published');
process.exitCode = problems.length ? 1 : 0;
