import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { embeddedPage } from '../../../scripts/embed-page.mjs';

describe('The embedded page', () => {
  it('is the page of lib/dashboard/page: run `npm run build` after a change', async () => {
    const path = new URL('../../../lib/dashboard/page.generated.ts', import.meta.url);
    expect(await readFile(path, 'utf8')).toBe(embeddedPage());
  });
});
