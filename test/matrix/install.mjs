// The library as it would be published, and applications that install it.
import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import typescript from 'typescript';
import { root } from '../../scripts/run.mjs';
import { npmInstall, outputOf, OWN, refresh } from './command.mjs';

const SOURCES = fileURLToPath(new URL('consumer', import.meta.url));
const FORMATS = {
  esm: { type: 'module', module: typescript.ModuleKind.ES2022 },
  cjs: { type: 'commonjs', module: typescript.ModuleKind.CommonJS },
};

/** Packs the library. Resolves with the path of the tarball, whose name changes with its content. */
export async function pack() {
  const folder = join(OWN, 'tarball');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const [{ filename }] = JSON.parse(await outputOf('npm', args, { cwd: root }));
  const packed = join(folder, filename);
  const digest = createHash('sha256')
    .update(await readFile(packed))
    .digest('hex')
    .slice(0, 12);
  // npm would take a tarball of the same name for the one that is already installed.
  const named = packed.replace(/\.tgz$/, `-${digest}.tgz`);
  await rename(packed, named);
  return named;
}

/**
 * Resolves with the folder of an application that has the tarball, its other packages and the compiled sources of
 * `consumer/`.
 */
export async function install({ name, dependencies }, tarball) {
  const folder = join(OWN, 'consumers', name);
  const manifest = { name, private: true, dependencies: { ...dependencies, 'nestjs-redlock': `file:${tarball}` } };
  await refresh(folder, JSON.stringify(manifest), async () => {
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest, null, 2));
    await npmInstall(folder);
  });
  await compile(folder);
  return folder;
}

/** Removes the types only: another part of the matrix checks them. */
async function compile(folder) {
  const files = await readdir(SOURCES);
  for (const [format, { type, module }] of Object.entries(FORMATS)) {
    await rm(join(folder, format), { recursive: true, force: true });
    await mkdir(join(folder, format));
    await writeFile(join(folder, format, 'package.json'), JSON.stringify({ type }));
    for (const file of files.filter((each) => each.endsWith('.ts'))) {
      const source = await readFile(join(SOURCES, file), 'utf8');
      const { outputText } = typescript.transpileModule(source, { compilerOptions: { ...COMPILER_OPTIONS, module } });
      await writeFile(join(folder, format, file.replace(/\.ts$/, '.js')), outputText);
    }
  }
  for (const file of files.filter((each) => each.endsWith('.mjs'))) await cp(join(SOURCES, file), join(folder, file));
}

const COMPILER_OPTIONS = {
  target: typescript.ScriptTarget.ES2022,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  esModuleInterop: true,
};
