import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const WITHIN = 120_000;

it(
  'Twenty seconds of faults give no two leaders, growing terms, and events in their order',
  async () => {
    const program = 'test/torture/leader/main.mjs';
    // A violation is an exit status, which rejects with the output.
    const { stdout } = await promisify(execFile)(process.execPath, [program, '--seconds', '20'], { timeout: WITHIN });
    expect(stdout).toContain('| moments with two leaders | 0 |');
    expect(stdout).toMatch(/\| elections \| (?:[2-9]|\d\d+) \|/);
  },
  WITHIN,
);
