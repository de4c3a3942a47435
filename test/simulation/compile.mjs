// Compiles the library and the simulation to JavaScript, because Node 20 does not run TypeScript. Each mutant of the
// library gets a copy of its own.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { transform } from '@swc/core';
import embed from '../../scripts/embed.mjs';

const root = join(import.meta.dirname, '../..');
/** The folders of the library that the simulation needs. */
const LIBRARY = [
  'redlock',
  'waiting',
  'kinds',
  'fencing',
  'masters',
  'operate',
  'settings',
  'locks',
  'memory',
  'redis',
].map((room) => `lib/${room}`);
const parts = [...LIBRARY, 'test/simulation'];

/** Compiles everything that a run needs. `change` may replace the contents of a file. */
export async function compile(change = (_, text) => text, folders = parts) {
  embed();
  const cache = join(root, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'simulation-'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await Promise.all((await sources(folders)).map((file) => compileFile(file, folder, change)));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Of folders; a file is one of its own. */
async function sources(folders) {
  const lists = folders.map(async (part) => {
    if (part.endsWith('.ts')) return [part];
    const files = await readdir(join(root, part), { recursive: true });
    return files.filter((file) => /(?<!\.spec|\.d)\.ts$|\.lua$/.test(file)).map((file) => join(part, file));
  });
  return (await Promise.all(lists)).flat();
}

async function compileFile(file, folder, change) {
  const text = change(file, await readFile(join(root, file), 'utf8'));
  // The simulated servers do not run Lua: `change` only counts the lines that it would replace.
  if (file.endsWith('.lua')) return;
  const { code } = await transform(text, {
    filename: file,
    configFile: false,
    swcrc: false,
    sourceMaps: 'inline',
    jsc: { target: 'es2022', parser: { syntax: 'typescript', decorators: true }, transform: { legacyDecorator: true } },
    module: { type: 'es6' },
  });
  const target = join(folder, file.replace(/\.ts$/, '.js'));
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, code);
}

const ENTRIES = ['lib/index.ts', 'lib/internal.ts', 'lib/errors.ts'];
const JOBS = [...ENTRIES, ...LIBRARY, 'lib/nest', 'lib/schedule', 'test/simulation'];
/** What the engine imports of the folders that know Nest. */
const ENGINE =
  /schedule\/(job|job-(execution|locks|policy)|ticker|cron-schedule)\.ts$|nest\/(lockable-method|takers)\.ts$/;

/** Lines of the entries that export other files of those folders. */
const APART = /^export [^;]*? from '\.\/(?:nest\/(?!lockable-method)|runtime\/)[^;]*;\n/gm;

/**
 * Compiles what a run of the jobs simulation needs. The Nest module, the decorators and the services of lib/schedule and lib/nest
 * are left out: the engine does not need them.
 */
export function compileJobs(change = (_, text) => text) {
  return compile((file, text) => {
    if (ENTRIES.includes(file)) return text.replace(APART, '');
    const isApart = /^lib\/(nest|schedule)\//.test(file) && !ENGINE.test(file);
    return isApart ? '' : change(file, text);
  }, JOBS);
}
