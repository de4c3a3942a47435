// One run of jest, in a process of its own, because a mutant may loop for ever.
import { spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { root } from '../../scripts/run.mjs';

const JEST = [
  ...['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'],
  ...['--config', 'test/mutation/jest/jest.config.js', '--runInBand'],
];
/** The title of a failure without a failing test. */
export const TIME_LIMIT = 'time limit';
/** From the start of jest to that of its first spec, and from a result to the end of the process. */
const START = 60_000;
/** From the first failure to the end of the process. */
const END = 3_000;

/**
 * Runs specs in this order.
 *
 * @param {string[]} specs paths below the root
 * @param {object} options
 * @param {object} [options.mutant] applied to the library
 * @param {string} [options.coverage] the folder for the coverage
 * @param {number} [options.testTimeout] in milliseconds
 * @param {(spec: string) => number} options.limitOf after so many milliseconds a spec hangs
 * @returns the specs with their times, and the first failure: its spec, and its title or 'time limit'
 */
export async function runSpecs(specs, { mutant, coverage, testTimeout, limitOf }) {
  const args = [...JEST, '--runTestsByPath', ...specs];
  if (coverage) args.push('--coverage', `--coverageDirectory=${coverage}`);
  else args.push('--bail');
  if (testTimeout) args.push(`--testTimeout=${testTimeout}`);
  const env = { ...process.env, MUTANT: mutant ? JSON.stringify(mutant) : '' };
  const child = spawn(process.execPath, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // A group of its own, with the servers that its specs start.
    detached: true,
  });
  setPriority(child.pid, constants.priority.PRIORITY_LOW);
  const done = [];
  const errors = [];
  let [running, failure, hasBegun] = [undefined, undefined, false];
  let timer;
  const limit = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      failure ??= { spec: running ?? done.at(-1)?.spec ?? specs[0], title: TIME_LIMIT };
      end(child);
    }, milliseconds);
  };
  const conclude = () => {
    clearTimeout(timer);
    timer = setTimeout(() => end(child), END);
  };
  limit(START);
  child.stderr.on('data', (chunk) => errors.push(chunk));
  child.on('message', ({ begins, fails, title, ends, milliseconds, longest, failure: summary }) => {
    if (fails) {
      failure ??= { spec: fails, title };
      // Enough to tear down what the spec has set up.
      limit(END);
    } else if (begins) {
      hasBegun = true;
      running = begins;
      limit(limitOf(begins));
    } else {
      running = undefined;
      done.push({ spec: ends, milliseconds, longest });
      if (summary) failure ??= { spec: ends, title: summary };
      // A mutant may leave something that keeps the process alive. Coverage is written at its end.
      if (done.length === specs.length && !coverage) conclude();
      else limit(START);
    }
  });
  const [code, signal] = await new Promise((resolve) => {
    child.once('exit', (...status) => resolve(status));
  });
  clearTimeout(timer);
  end(child);
  const log = Buffer.concat(errors).toString();
  if (!hasBegun) throw new Error(`jest has not run a spec, exit status ${code ?? signal}: ${log}`);
  // A process that has died of the mutant, for example of an error without a handler.
  if (done.length < specs.length && !failure)
    failure = { spec: running ?? done.at(-1).spec, title: `the process ended with ${code ?? signal}` };
  return { done, failure, log };
}

/** Does the task for each item, for as many at the same time as there are workers. */
export async function forEach(items, workers, task) {
  const waiting = items.values();
  const work = async () => {
    for (const item of waiting) await task(item);
  };
  await Promise.all(Array.from({ length: workers }, work));
}

/** Ends what is left of the group. */
function end({ pid }) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
