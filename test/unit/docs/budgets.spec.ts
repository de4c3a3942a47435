import { describe, expect, it } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { budgetProblems } from '../../../scripts/docs/budgets.mjs';
import { parseMarkdown } from '../../../scripts/docs/markdown.mjs';

const file = (name: string, text: string) => parseMarkdown(join(process.cwd(), name), text);
const lines = (count: number): string => 'word\n'.repeat(count);
const code = '```ts\n```\n';

describe('The check of the budgets', () => {
  it('names the lines of a README that is too long or too wide, or whose first code comes late', () => {
    const readme = file('README.md', `${lines(29)}${code}${'a'.repeat(161)}\n${lines(79)}`);
    expect(budgetProblems([readme])).toEqual([
      { file: 'README.md', line: 32, message: 'has 161 characters, and at most 160 fit' },
      { file: 'README.md', line: 111, message: 'has 111 lines, and 110 at most' },
      { file: 'README.md', line: 31, message: 'the first TypeScript begins on line 31, and on line 30 at the latest' },
    ]);
  });

  it('counts the words of the README and of all pages together', () => {
    const pages = [file('README.md', lines(100)), file('docs/guide/a.md', 'word '.repeat(27_901))];
    expect(budgetProblems(pages)).toEqual([
      { file: 'README.md', line: 1, message: 'README.md and docs have 28001 words, and 28000 at most' },
    ]);
  });
});

/** The lines of the files below a folder that are not made by a build. */
async function linesBelow(folder: string): Promise<number> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts = files
    .filter((each) => each.isFile())
    .map(async ({ parentPath, name }) => linesOf(join(parentPath, name)));
  return (await Promise.all(texts)).reduce((sum, count) => sum + count, 0);
}

async function linesOf(path: string): Promise<number> {
  return (await readFile(path, 'utf8')).split('\n').length - 1;
}

it('There are at most ten samples, each with at most 150 lines of source and 60 of README, and 2,600 lines of scripts', async () => {
  const names = (await readdir('sample')).filter((name) => /^\d\d-/.test(name));
  expect(names.length).toBeLessThanOrEqual(10);
  for (const name of names) {
    expect([name, (await linesBelow(`sample/${name}/src`)) <= 150]).toEqual([name, true]);
    expect([name, (await linesOf(`sample/${name}/README.md`)) <= 60]).toEqual([name, true]);
  }
  await expect(linesBelow('scripts')).resolves.toBeLessThanOrEqual(2_600);
});
