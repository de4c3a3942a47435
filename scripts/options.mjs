import { parseArgs } from 'node:util';

/** Like `parseArgs`, but an invalid option prints one line and ends the process with exit status 2. */
export function optionsOf(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    console.error(error.message);
    return process.exit(2);
  }
}
