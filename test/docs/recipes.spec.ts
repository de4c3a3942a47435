import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { type MarkdownFile, readMarkdown } from '../../scripts/docs/markdown.mjs';

await mkdir('build', { recursive: true });
const folder = await mkdtemp(join(process.cwd(), 'build/recipes-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Uses globals of another test runner: the matrix of consumers runs it. */
const isForeign = (path: string): boolean => path.endsWith('.vitest.spec.ts');

/**
 * Writes the code blocks that name a file. Their lines keep their numbers, so that a failure points into the document.
 */
async function write({ name, blocks }: MarkdownFile): Promise<string[]> {
  const files = blocks.filter(({ language, fileName }) => language === 'ts' && fileName !== undefined);
  const written = files.map(async ({ fileName, line, text }) => {
    const path = join(folder, name, fileName!);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '\n'.repeat(line - 1) + text);
    return path;
  });
  return (await Promise.all(written)).filter((path) => path.endsWith('.spec.ts'));
}

const specs = await write(await readMarkdown('docs/testing.md'));
// Each import registers the tests of a file.
for (const spec of specs) if (!isForeign(spec)) await import(spec);

describe('The recipes', () => {
  it('include every expected file', () => {
    expect(specs.map((path) => path.slice(folder.length + 1)).sort()).toEqual([
      'docs/testing.md/app.spec.ts',
      'docs/testing.md/config.spec.ts',
      'docs/testing.md/contention.spec.ts',
      'docs/testing.md/expiry.spec.ts',
      'docs/testing.md/fake-timers.jest.spec.ts',
      'docs/testing.md/fake-timers.vitest.spec.ts',
      'docs/testing.md/loss.spec.ts',
      'docs/testing.md/mocker.spec.ts',
      'docs/testing.md/order.service.spec.ts',
      'docs/testing.md/outage.spec.ts',
      'docs/testing.md/override.spec.ts',
      'docs/testing.md/plain.spec.ts',
      'docs/testing.md/report.job.spec.ts',
      'docs/testing.md/report.unit.spec.ts',
      'docs/testing.md/sharing.spec.ts',
    ]);
  });
});
