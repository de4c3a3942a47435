import { parseArgs } from 'node:util';

/** Like `parseArgs`. Who mistypes an option is told so in one line; the exit status is 2. */
export function optionsOf(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    console.error(error.message);
    return process.exit(2);
  }
}
