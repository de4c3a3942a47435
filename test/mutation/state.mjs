// What is known of each mutant, one line of JSON for each, so that a run that was stopped can be resumed.
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';
import { TIME_LIMIT } from './trial.mjs';

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

/** One line: place, operator and change. */
export function show({ id, file, line, operator, before, text }) {
  return `${id} ${file}:${line} ${operator}: ${short(before)} -> ${short(text)}`;
}

/** Counts, share and survivors. */
export function reportOn(results) {
  const counts = new Map([['refused by the compiler', 0]]);
  for (const { verdict, spec, title } of results) {
    const kind = verdict === 'refused' ? 'refused by the compiler' : verdict;
    const key = verdict === 'killed' ? `killed by ${spec.split('/').slice(0, 2).join('/')}` : kind;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (title === TIME_LIMIT)
      counts.set('of these, by a time limit', (counts.get('of these, by a time limit') ?? 0) + 1);
  }
  const survivors = results.filter(({ verdict }) => verdict === 'survived');
  const refused = counts.get('refused by the compiler');
  const seconds = results.reduce((sum, result) => sum + result.seconds, 0);
  const share = (part, whole) => (whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)} %`);
  const noticed = results.length - survivors.length;
  return [
    ...survivors.map(({ mutant, title }) => `SURVIVED ${show(mutant)}  (${title})`),
    '',
    ...[...counts].map(([kind, count]) => `${String(count).padStart(6)}  ${kind}`),
    `${results.length} mutants, ${noticed} noticed: ${share(noticed, results.length)}`,
    `of those that compile: ${share(noticed - refused, results.length - refused)}`,
    `${(seconds / 60).toFixed(1)} min, ${(seconds / Math.max(1, results.length)).toFixed(1)} s each`,
  ].join('\n');
}

function short(text) {
  const line = text.replaceAll(/\s+/g, ' ');
  return JSON.stringify(line.length > 60 ? `${line.slice(0, 57)}...` : line);
}
