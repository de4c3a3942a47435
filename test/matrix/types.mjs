// Type checks an application with the tarball as its users would, with the declarations of all its packages.
import { equal, ok } from 'node:assert/strict';
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { outcomeOf } from './command.mjs';

const SOURCES = fileURLToPath(new URL('consumer', import.meta.url));

/** One cell: an application, a compiler, a setting. */
export function typeCell({ check, folder, compiler }) {
  const { typescript, setting, refused, consumer } = check;
  return {
    table: 'types',
    row: `TypeScript ${typescript}, ${setting.name}`,
    column: consumer,
    part: 'types',
    run: async () => {
      const project = await write(join(folder, 'types', `${typescript}, ${setting.name}`), check);
      const { code, stdout } = await outcomeOf(process.execPath, [compiler, '--pretty', 'false', '-p', project]);
      if (!refused) return void equal(code, 0, stdout);
      checkRefusal(stdout, refused);
      return { notApplicable: `${refused.why} (${refused.codes[0]})` };
    },
  };
}

/** The compiler must refuse what cannot work, and nothing else. */
function checkRefusal(output, { codes, names, why }) {
  const errors = output.split('\n').filter((line) => /error TS\d+:/.test(line));
  ok(
    errors.some((line) => line.includes(names)),
    `is not refused, although: ${why}\n${output}`,
  );
  const others = errors.filter((line) => !codes.some((code) => line.includes(`error ${code}:`)));
  equal(others.join('\n'), '', `is refused for another reason than: ${why}`);
}

async function write(folder, { typescript, setting }) {
  await mkdir(folder, { recursive: true });
  for (const file of await readdir(SOURCES))
    if (file.endsWith('.ts')) await cp(join(SOURCES, file), join(folder, file));
  const compilerOptions = {
    ...{ target: 'ES2022', lib: ['ES2023', 'ESNext.Disposable'], types: ['node'] },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
    // The compiler itself detects what has not changed since the last run.
    ...{ noEmit: true, incremental: true, tsBuildInfoFile: './.tsbuildinfo' },
    ...setting.options,
    // Version 6 still supports this, but only on request.
    ...(setting.options.moduleResolution === 'node10' && typescript.startsWith('6.') && { ignoreDeprecations: '6.0' }),
  };
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: setting.type }));
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }, null, 2));
  return folder;
}
