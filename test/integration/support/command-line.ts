import { cli, type Ended, on } from '../../support/cli.js';

export interface CommandLine {
  /** Runs a command on the masters. Its time limit is for busy machines, unless one is given. */
  readonly run: (...args: readonly string[]) => Promise<Ended>;
  /** What the command prints as JSON. */
  readonly json: <T = unknown>(...args: readonly string[]) => Promise<T>;
}

/** The command line, in this process, with the URLs of some masters. */
export function commandLineOn(urls: () => readonly string[]): CommandLine {
  const run = (...args: readonly string[]): Promise<Ended> => {
    const limit = args.includes('--timeout') ? [] : ['--timeout', '20s'];
    return cli([...args, ...on(urls()), ...limit]);
  };
  const json = async <T>(...args: readonly string[]): Promise<T> =>
    JSON.parse((await run(...args, '--json')).stdout) as T;
  return { run, json };
}
