import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const WITHIN = 120_000;

it(
  'Twenty seconds of faults give no two leaders, growing terms, and events in their order',
  async () => {
    const args = ['test/torture/start.mjs', '--leader', '--seconds', '20'];
    // A violation is an exit status, which rejects with the output. Without the options that jest needs.
    const options = { timeout: WITHIN, env: { ...process.env, NODE_OPTIONS: '' } };
    const { stdout } = await promisify(execFile)(process.execPath, args, options);
    expect(stdout).toContain('| moments with two leaders | 0 |');
    expect(stdout).toMatch(/\| elections \| (?:[2-9]|\d\d+) \|/);
  },
  WITHIN,
);
