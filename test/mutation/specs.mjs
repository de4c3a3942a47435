// The specs that can notice a mutant, the nearest and the fastest first.
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { root } from '../../scripts/run.mjs';

/** The folders of each stage, in the order in which they run: the fast ones first. */
export const STAGES = [
  ['test/unit', 'test/contract'],
  ['test/simulation', 'test/docs', 'test/e2e'],
  ['test/integration'],
];
/**
 * The faults of the simulation are tried with the same schedules as its other specs, for minutes. The command line runs
 * the built library, which has no mutant.
 */
const LEFT_OUT = /^test\/(?:simulation\/mutants\/|integration\/cli-)/;

export async function specsOf(stages) {
  const lists = stages.flat().map(async (folder) => {
    const files = await readdir(join(root, folder), { recursive: true });
    return files.filter((file) => file.endsWith('.spec.ts')).map((file) => `${folder}/${file.replaceAll('\\', '/')}`);
  });
  return (await Promise.all(lists))
    .flat()
    .filter((spec) => !LEFT_OUT.test(spec))
    .sort();
}

/** The specs of a stage that run a line of the mutant, in the order in which they are tried. */
export function specsFor({ file, line, lastLine }, coverage, folders) {
  const covers = ({ lines }) => lines[file]?.some((one) => one >= line && one <= lastLine) ?? false;
  const found = [...coverage.values()].filter((entry) => folderOf(entry.spec, folders) >= 0 && covers(entry));
  const rank = ({ spec, milliseconds }) => [
    folderOf(spec, folders),
    distance(spec, file),
    // What takes as long to start as to run is not worth telling apart.
    Math.round(milliseconds / 200),
  ];
  return found.sort((a, b) => compare(rank(a), rank(b))).map(({ spec }) => spec);
}

function folderOf(spec, folders) {
  return folders.findIndex((folder) => spec.startsWith(`${folder}/`));
}

/** The spec of the file itself, one of its folder, another one. */
function distance(spec, file) {
  const mirrored = file.replace(/^lib\//, 'test/unit/').replace(/\.ts$/, '');
  if (spec.startsWith(mirrored)) return 0;
  return dirname(spec) === dirname(mirrored) ? 1 : 2;
}

function compare(a, b) {
  const index = a.findIndex((value, each) => value !== b[each]);
  return index < 0 ? 0 : a[index] - b[index];
}
