import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The repository's root folder. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** Runs a command with visible output and without stdin; resolves with its exit code. */
export function run(command, args, { cwd = root, env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit'],
      // On Windows, npm is a batch file.
      shell: process.platform === 'win32',
    });
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? `killed by ${signal}`));
  });
}

/** Like {@link run}, but rejects unless the command succeeds. */
export async function mustRun(command, args, options) {
  const code = await run(command, args, options);
  if (code !== 0) throw new Error(`${[command, ...args].join(' ')}: ${code}`);
}
