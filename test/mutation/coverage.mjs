// Which spec runs which line of the library, and how long each takes. Kept until the spec or the library changes.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { SourceMap } from 'node:module';
import { join } from 'node:path';
import { root } from '../../scripts/run.mjs';
import config from './jest/jest.config.js';
import transformer from './jest/transform.mjs';
import { folder } from './state.mjs';
import { forEach, runSpecs } from './trial.mjs';

const cache = join(folder, 'coverage');
/** Milliseconds after which a spec hangs that has never been timed. */
const UNTIMED = 600_000;
/** How jest compiles a spec and what it imports. */
const AS_JEST = { supportsStaticESM: true, supportsDynamicImport: true, config: { rootDir: root } };

/** The coverage of all specs: runs those whose coverage is not known. */
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
    const entry = JSON.parse(await readFile(pathOf(spec, 'json'), 'utf8').catch(() => '{}'));
    if (entry.key === key) known.set(spec, entry);
    else unknown.push({ spec, key });
  }
  if (unknown.length > 0) print(`coverage of ${unknown.length} specs`);
  const linesOf = lineTables();
  await forEach(unknown, workers, async ({ spec, key }) => {
    const { done, failure, log } = await runSpecs([spec], { coverage: cache, limitOf: () => UNTIMED });
    if (failure) print(`FAILS without a mutant, and is left out: ${spec}: ${failure.title}\n${log}`);
    else {
      const { longest, scripts } = JSON.parse(await readFile(pathOf(spec, 'raw'), 'utf8'));
      const lines = {};
      for (const { file, ranges } of scripts) {
        const executed = executedLines(await linesOf(file), ranges);
        lines[file] = [...new Set([...(lines[file] ?? []), ...executed])].sort((a, b) => a - b);
      }
      const entry = { key, spec, milliseconds: done[0].milliseconds, longest, lines };
      await writeFile(pathOf(spec, 'json'), JSON.stringify(entry));
      known.set(spec, entry);
      print(`  ${spec}: ${(entry.milliseconds / 1_000).toFixed(1)} s, ${scripts.length} files`);
    }
    await rm(pathOf(spec, 'raw'), { force: true });
  });
  return known;
}

function pathOf(spec, extension) {
  return join(cache, `${spec.replaceAll('/', '+')}.${extension}`);
}

async function hashOfLibrary() {
  const hash = createHash('sha256');
  const files = await readdir(join(root, 'lib'), { recursive: true });
  for (const file of files.filter((one) => one.endsWith('.ts')).sort())
    hash.update(file).update(await readFile(join(root, 'lib', file)));
  return hash.digest('hex');
}

/** For each file, the line of the source for each character of the compiled text; 0 where there is none. */
function lineTables() {
  const [[, [, options]]] = Object.entries(config.transform);
  const compiler = transformer.createTransformer(options);
  const tables = new Map();
  return async (file) => {
    const known = tables.get(file);
    if (known) return known;
    const path = join(root, file);
    const { code, map } = compiler.process(await readFile(path, 'utf8'), path, AS_JEST);
    const [, inline] = /sourceMappingURL=data:application\/json;(?:charset=utf-8;)?base64,(\S+)/.exec(code) ?? [];
    const sourceMap = new SourceMap(JSON.parse(map ?? Buffer.from(inline, 'base64').toString()));
    const table = [];
    code.split('\n').forEach((text, line) => {
      for (let column = 0; column <= text.length; column++) {
        const { originalLine, generatedLine } = sourceMap.findEntry(line, column);
        const isHere = generatedLine === line && column < text.length && text[column] !== ' ';
        table.push(isHere ? originalLine + 1 : 0);
      }
    });
    tables.set(file, table);
    return table;
  };
}

/** V8 nests the ranges: the smallest around a character decides. It comes after those around it. */
function executedLines(table, ranges) {
  const counts = new Uint8Array(table.length);
  const outerFirst = [...ranges].sort(([a, b], [c, d]) => a - c || d - b);
  for (const [start, end, count] of outerFirst) counts.fill(count > 0 ? 1 : 0, start, end);
  const lines = new Set();
  for (let offset = 0; offset < table.length; offset++) if (counts[offset] && table[offset]) lines.add(table[offset]);
  return lines;
}
