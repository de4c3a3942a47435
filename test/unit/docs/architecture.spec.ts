import { expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');

it('The page on the architecture names each folder of the library, and no file that does not exist', async () => {
  const page = await readFile(join(root, 'docs/architecture.md'), 'utf8');
  const files = await readdir(join(root, 'lib'), { recursive: true, withFileTypes: true });
  const sources = files.filter(({ name }) => name.endsWith('.ts')).map(({ parentPath }) => `${parentPath}/`);
  const folders = [...new Set(sources)]
    .map((folder) => folder.slice(root.length + 1))
    .filter((name) => name !== 'lib/');
  const rows = [...page.matchAll(/^- `(lib\/\S+\/)`/gm)].map(([, folder]) => folder);
  expect(rows.sort()).toEqual(folders.sort());
  const named = [...page.matchAll(/`((?:lib\/)?[\w./-]+\/[\w.-]+\.ts)`/g)].map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((path) => !existsSync(join(root, 'lib', path.replace(/^lib\//, ''))))).toEqual([]);
});
