import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

/** For what hangs, in milliseconds: a busy machine takes minutes for the processes of a deployment. */
const WITHIN = 900_000;

async function soak(...args: string[]): Promise<{ code: number; stdout: string }> {
  const command = ['test/torture/start.mjs', '--soak', ...args];
  // Without the options that jest needs.
  const options = { env: { ...process.env, NODE_OPTIONS: '' }, timeout: WITHIN, maxBuffer: 2 ** 26 };
  return promisify(execFile)(process.execPath, command, options).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: unknown) => error as { code: number; stdout: string },
  );
}

it(
  'Six processes keep every promise through a deployment, a kill, and a Redis that pauses and restarts',
  async () => {
    const { code, stdout } = await soak('--seconds', '20');
    expect(stdout).toMatch(/\n0 violations/);
    expect(code).toBe(0);
  },
  WITHIN,
);

it(
  'Without locks, the soak names two holders and two leaders',
  async () => {
    const { code, stdout } = await soak('--seconds', '4', '--no-locks');
    expect(code).toBe(1);
    expect(stdout).toMatch(/no two holders of one key at a time: .* believed to hold/);
    expect(stdout).toMatch(/no two leaders, and growing terms: two leaders/);
  },
  WITHIN,
);
