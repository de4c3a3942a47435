import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const root = resolve(import.meta.dirname, '../../..');
const IMPORT = /^(?:import|export)\s+(?!type\b)[^;]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm;

/** Packages that a file needs at run time, directly or through other files. */
async function packagesOf(file: string, seen = new Set<string>()): Promise<Set<string>> {
  // A generated file contains programs of a browser as strings, and imports nothing.
  if (seen.has(file) || file.endsWith('.generated.ts')) return new Set();
  seen.add(file);
  const packages = new Set<string>();
  const source = await readFile(file, 'utf8');
  for (const [, from, bare, dynamic] of source.matchAll(IMPORT)) {
    const name = (from ?? bare ?? dynamic)!;
    const found = name.startsWith('.')
      ? await packagesOf(join(dirname(file), name.replace(/\.js$/, '.ts')), seen)
      : [name.startsWith('node:') ? 'node' : name];
    for (const each of found) packages.add(each);
  }
  return packages;
}

interface Manifest {
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>;
}

describe('Optional peers', () => {
  it.each<[string, string[]]>([
    ['index', []],
    ['testing/index', []],
    ['dashboard/index', []],
    ['schedule/index', ['@nestjs/schedule', 'cron']],
    ['terminus/index', ['@nestjs/terminus']],
    ['opentelemetry/index', ['@opentelemetry/api']],
  ])('of %s are %j', async (entry, expected) => {
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Manifest;
    const optional = Object.keys(manifest.peerDependenciesMeta);
    const packages = [...(await packagesOf(join(root, `lib/${entry}.ts`)))];
    expect(packages.filter((name) => optional.includes(name))).toEqual(expected);
    expect(packages.filter((name) => name !== 'node' && !(name in manifest.peerDependencies))).toEqual([]);
  });

  it('are found where they are imported', async () => {
    const packages = await packagesOf(join(root, 'lib/index.ts'));
    expect([...packages].sort()).toEqual([
      '@nestjs/common',
      '@nestjs/core',
      'ioredis',
      'node',
      'reflect-metadata',
      'rxjs',
    ]);
  });
});
