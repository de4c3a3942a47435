import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

describe('The page of the performance', () => {
  it('has the ratios and the chart that the results of the benchmark give', async () => {
    const { stderr } = await promisify(execFile)(process.execPath, ['test/benchmark/page.mjs', '--check']);
    expect(stderr).toBe('');
  });
});
