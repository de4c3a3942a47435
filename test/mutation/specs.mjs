// The specs that can notice a mutant, the nearest and the fastest first.
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { root } from '../../scripts/run.mjs';

/** In the order in which they run. The folders of the second group take long: only survivors of the first reach it. */
export const GROUPS = [
  ['test/unit', 'test/contract', 'test/docs', 'test/e2e'],
  ['test/simulation', 'test/integration'],
];
/** It tries other faults with the same schedules as the spec of the simulation, for minutes. */
const LEFT_OUT = /^test\/simulation\/mutants\//;

export async function allSpecs() {
  const lists = GROUPS.flat().map(async (folder) => {
    const files = await readdir(join(root, folder), { recursive: true });
    return files.filter((file) => file.endsWith('.spec.ts')).map((file) => `${folder}/${file.replaceAll('\\', '/')}`);
  });
  return (await Promise.all(lists))
    .flat()
    .filter((spec) => !LEFT_OUT.test(spec))
    .sort();
}

/** The specs of a group that run a line of the mutant, in the order in which they are tried. */
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
