import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { fencedDatabases } from './support/fenced-databases.js';

const SECONDS = 15;

it.each(fencedDatabases().map(({ name, dialect }) => [name, dialect]))(
  'on %s, no holder that is stopped or killed commits late',
  async (name, dialect) => {
    const args = ['test/torture/start.mjs', '--fenced', '--seconds', String(SECONDS), '--database', dialect];
    // Without the options that jest needs.
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_OPTIONS: '' } });
    expect(stdout).toMatch(new RegExp(`${name}, ${SECONDS} s, with the fence: [1-9]\\d* commits`));
    expect(stdout).toContain('0 late, 0 lost updates, 0 commits beside a fenced transaction');
  },
  120_000,
);
