// Other versions of Node and of TypeScript, from the npm registry.
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keep } from './cache.mjs';
import { npmInstall, outputOf } from './command.mjs';

/** Resolves with the path of a version of Node. */
export async function ensureNode(version) {
  if (process.versions.node === version) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = await keep(`node-${version}`, async (draft) => {
    const packed = (
      await outputOf('npm', ['pack', `${name}@${version}`, '--silent', '--prefer-offline'], { cwd: draft })
    ).trim();
    await outputOf('tar', ['xzf', packed, 'package/bin/node'], { cwd: draft });
    await rm(join(draft, packed));
  });
  return join(folder, 'package/bin/node');
}

/** Resolves with the path of a version of the TypeScript compiler. */
export async function ensureTypeScript(version) {
  const folder = await keep(`typescript-${version}`, async (draft) => {
    await writeFile(
      join(draft, 'package.json'),
      JSON.stringify({ private: true, dependencies: { typescript: version } }),
    );
    await npmInstall(draft);
  });
  return join(folder, 'node_modules/typescript/bin/tsc');
}
