import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));

const FOLDERS = {
  ours: ROOT,
  redlock5: join(MODULES, 'redlock'),
  redlock4: join(MODULES, 'redlock4'),
  'redlock-universal': join(MODULES, 'redlock-universal'),
  'redis-semaphore': join(MODULES, 'redis-semaphore'),
  'redis-kit': join(MODULES, '@redis-kit/lock'),
  'nest-redlock': join(MODULES, '@anchan828/nest-redlock'),
  murlock: join(MODULES, 'murlock'),
};

/** Bytes of each package as packed and as installed, and of all its dependencies without peers. */
export async function packageSizes() {
  const found = {};
  for (const [name, folder] of Object.entries(FOLDERS)) {
    const args = ['pack', folder, '--dry-run', '--json', '--ignore-scripts'];
    const { stdout } = await promisify(execFile)('npm', args, { cwd: MODULES, maxBuffer: 2 ** 26 });
    const [{ size, unpackedSize, entryCount }] = [JSON.parse(stdout)].flatMap((packs) => Object.values(packs));
    const dependencies = await dependenciesOf(folder);
    dependencies.delete(folder);
    const sizes = await Promise.all([...dependencies].map(sizeOf));
    const brought = sizes.reduce((sum, bytes) => sum + bytes, 0);
    found[name] = { packed: size, unpacked: unpackedSize, files: entryCount, dependencies: sizes.length, brought };
  }
  return found;
}

/** Folders of a package and of all its direct and indirect dependencies. */
async function dependenciesOf(folder, seen = new Set()) {
  if (seen.has(folder)) return seen;
  seen.add(folder);
  const { dependencies = {} } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) await dependenciesOf(installed(name, folder), seen);
  return seen;
}

/** The folder in which Node finds a package from another folder. */
function installed(name, folder) {
  for (let at = folder; at !== dirname(at); at = dirname(at)) {
    const candidate = join(at, 'node_modules', name);
    if (existsSync(candidate)) return candidate;
  }
  throw new Error(`${name} is not installed for ${folder}`);
}

/** Bytes of all files of a package, without the packages that are nested in it. */
async function sizeOf(folder) {
  const entries = await readdir(folder, { withFileTypes: true });
  const sizes = entries.map((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' ? 0 : sizeOf(path);
    return stat(path).then(({ size }) => size);
  });
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}
