// Which spec runs which line of the library, and how long each takes. Kept until the spec or the library changes.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { root } from '../../scripts/run.mjs';
import { folder } from './state.mjs';
import { forEach, runSpecs } from './trial.mjs';

const cache = join(folder, 'coverage');
/** Milliseconds after which a spec hangs that has never been timed. */
const UNTIMED = 600_000;

/** The coverage of these specs: runs those whose coverage is not known. */
export async function coverageOf(specs, { workers, print }) {
  await mkdir(cache, { recursive: true });
  const library = await hashOfLibrary();
  const known = new Map();
  const unknown = [];
  for (const spec of specs) {
    const key = createHash('sha256')
      .update(library)
      .update(await readFile(join(root, spec)))
      .digest('hex');
    const entry = JSON.parse(await readFile(`${pathOf(spec)}.json`, 'utf8').catch(() => '{}'));
    if (entry.key === key) known.set(spec, entry);
    else unknown.push({ spec, key });
  }
  if (unknown.length > 0) print(`coverage of ${unknown.length} specs`);
  await forEach(unknown, workers, async ({ spec, key }) => {
    const coverage = pathOf(spec);
    const { done, failure, log } = await runSpecs([spec], { coverage, limitOf: () => UNTIMED });
    if (failure) print(`FAILS without a mutant, and is left out: ${spec}: ${failure.title}\n${log}`);
    else {
      const lines = linesOf(JSON.parse(await readFile(join(coverage, 'coverage-final.json'), 'utf8')));
      const entry = { key, ...done[0], lines };
      await writeFile(`${coverage}.json`, JSON.stringify(entry));
      known.set(spec, entry);
      print(`  ${spec}: ${(entry.milliseconds / 1_000).toFixed(1)} s, ${Object.keys(lines).length} files`);
    }
    await rm(coverage, { recursive: true, force: true });
  });
  return known;
}

function pathOf(spec) {
  return join(cache, spec.replaceAll('/', '+'));
}

async function hashOfLibrary() {
  const hash = createHash('sha256');
  const files = await readdir(join(root, 'lib'), { recursive: true });
  for (const file of files.filter((one) => one.endsWith('.ts')).sort())
    hash.update(file).update(await readFile(join(root, 'lib', file)));
  return hash.digest('hex');
}

/** The lines of the library that were executed. To jest, each line is a statement. */
function linesOf(coverage) {
  const files = Object.values(coverage).map(({ path, statementMap, s }) => {
    const executed = Object.entries(statementMap).filter(([id]) => s[id] > 0);
    return [relative(root, path).split(sep).join('/'), executed.map(([, { start }]) => start.line)];
  });
  return Object.fromEntries(files.filter(([file]) => file.startsWith('lib/')));
}
