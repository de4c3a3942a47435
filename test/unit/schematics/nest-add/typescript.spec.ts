import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findTypeScript } from '../../../../lib/schematics/nest-add/typescript.js';

describe('findTypeScript', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'redlock-typescript-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function install(path: string, name: string, code = ''): Promise<void> {
    const place = join(folder, path, 'node_modules', name);
    await mkdir(place, { recursive: true });
    await writeFile(join(place, 'package.json'), JSON.stringify({ name, main: 'index.js' }));
    await writeFile(join(place, 'index.js'), code);
  }

  it('finds the compiler of the application', async () => {
    await install('', 'typescript', "module.exports = { version: '5.9.3', createSourceFile() {} }");
    expect(findTypeScript(folder)?.version).toBe('5.9.3');
  });

  it('passes over a compiler without an API, as version 7 is, for that of the command line of Nest', async () => {
    await install('', 'typescript', "module.exports = { version: '7.0.2' }");
    await install('', '@nestjs/cli');
    await install(
      'node_modules/@nestjs/cli',
      'typescript',
      "module.exports = { version: '6.0.3', createSourceFile() {} }",
    );
    expect(findTypeScript(folder)?.version).toBe('6.0.3');
  });

  it('finds nothing in an application without a compiler', () => {
    expect(findTypeScript(folder)).toBeUndefined();
  });
});
