import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { checkLinks } from '../../../scripts/docs/links.mjs';
import { parseMarkdown } from '../../../scripts/docs/markdown.mjs';

it.each<[string, string, string[]]>([
  ['docs/errors.md', '[a](jobs.md) [b](performance.svg) [c](../README.md)', []],
  ['docs/errors.md', '[a](../sample/01-orders)', ['../sample/01-orders']],
  ['README.md', '[a](CONTRIBUTING.md) [b](docs/jobs.md) ![c](docs/dashboard.png)', ['CONTRIBUTING.md']],
  ['CONTRIBUTING.md', '[a](sample/01-orders)', []],
])('A page of the package, as %s, links to nothing outside of the package', async (name, text, targets) => {
  const problems = await checkLinks(parseMarkdown(join(process.cwd(), name), text));
  expect(problems.map(({ message }) => message)).toEqual(
    targets.map((target) => `the link to ${target} leads out of the package: name the path`),
  );
});
