import { spawn } from 'node:child_process';

/** Time limit of one command, in milliseconds: none of them should take a tenth of it. */
const PATIENCE = 180_000;

/** Runs a command without stdin. Resolves with its exit code and its whole output. */
export function outcomeOf(command, args, { cwd, env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8');
      child[stream].on('data', (text) => (output[stream] += text));
    }
    const deadline = setTimeout(() => child.kill('SIGKILL'), PATIENCE);
    child.once('error', (error) => {
      clearTimeout(deadline);
      reject(error);
    });
    child.once('close', (code, signal) => {
      clearTimeout(deadline);
      resolve({ code: code ?? signal, ...output });
    });
  });
}

/** Resolves with what a command prints. Any exit code other than 0 is an error with the whole output. */
export async function outputOf(command, args, options) {
  const { code, stdout, stderr } = await outcomeOf(command, args, options);
  if (code === 0) return stdout;
  throw new Error(`${[command, ...args].join(' ')}: ${code}\n${stdout}${stderr}`.trimEnd());
}

const QUIET = ['--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];

/** Runs `npm install` in a folder with a package.json. No package that is needed has an install script. */
export function npmInstall(folder, ...args) {
  return outputOf('npm', ['install', '--ignore-scripts', '--no-package-lock', ...QUIET, ...args], { cwd: folder });
}
