// What is known of each mutant, one line of JSON for each, so that a run that was stopped can be resumed.
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';

export const folder = join(root, 'build/mutation');
const file = join(folder, 'results.jsonl');

/** The last result of each mutant. */
export async function readResults() {
  const text = await readFile(file, 'utf8').catch(() => '');
  const results = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return new Map(results.map((result) => [result.id, result]));
}

export async function writeResult(result) {
  await mkdir(folder, { recursive: true });
  await appendFile(file, `${JSON.stringify(result)}\n`);
}
