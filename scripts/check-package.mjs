// Checks the package as it would be published: its types resolve everywhere, and it has every entry, what
// entries share, and nothing else.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mustRun, root } from './run.mjs';

/** The number of files, and bytes. */
const BUDGET = { files: 350, packed: 460_800, unpacked: 3_000_000 };

// It packs with npm, which `npm publish --dry-run` would keep from writing the file.
await mustRun('npx', ['attw', '--pack', '.'], { env: { npm_config_dry_run: 'false' } });

const { exports } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
const formats = Object.values(exports).flatMap(({ import: esm, require: cjs }) => (esm ? [esm, cjs] : []));
const expected = new Set([
  ...['package.json', 'README.md', 'CHANGELOG.md', 'LICENSE', 'dist/cjs/package.json', 'dist/esm/cli/main.js'],
  ...readdirSync(`${root}/docs`).flatMap((file) => (file.endsWith('.md') ? [`docs/${file}`] : [])),
  ...['collection.json', 'nest-add/schema.json', 'nest-add/nest-add.js'].map((file) => `dist/cjs/schematics/${file}`),
  ...['postgres', 'mysql', 'sqlite'].map((dialect) => `dist/sql/${dialect}.sql`),
  ...formats.flatMap(({ types, default: code }) => [types, code]).map((file) => file.slice(2)),
]);
// What several entries share.
const SHARED = /^dist\/(esm|cjs)\/(chunks\/[\w.-]+\.js|[\w./-]+\.d\.ts)$/;

const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
  cwd: root,
  encoding: 'utf8',
});
const [{ files: listed, size, unpackedSize }] = JSON.parse(output);
const packed = new Set(listed.map(({ path }) => path));

// Entries that work without Nest, and must not load it by way of what others share with them.
const WITHOUT_NEST = ['esm/cli/main.js', ...['sql', 'opentelemetry'].map((name) => `esm/${name}/index.js`)];

function loadsNest(file, seen = new Set()) {
  if (seen.has(file)) return false;
  seen.add(file);
  const imports = readFileSync(join(root, 'dist', file), 'utf8').matchAll(/^import (?:[^;"]*from )?"(.+)";$/gm);
  return [...imports].some(([, name]) =>
    name.startsWith('.') ? loadsNest(join(dirname(file), name), seen) : name.startsWith('@nestjs/'),
  );
}

const problems = [
  ...WITHOUT_NEST.filter((file) => loadsNest(file)).map((file) => `it loads Nest: dist/${file}`),
  ...[...expected].filter((file) => !packed.has(file)).map((file) => `missing: ${file}`),
  ...[...packed]
    .filter((file) => !expected.has(file) && !SHARED.test(file))
    .map((file) => `should not be there: ${file}`),
  ...Object.entries({ files: packed.size, packed: size, unpacked: unpackedSize })
    .filter(([what, found]) => found > BUDGET[what])
    .map(([what, found]) => `${what}: ${found}, and at most ${BUDGET[what]}`),
];
for (const problem of problems) console.error(problem);
console.log(
  problems.length ? `${problems.length} problems` : `${packed.size} files, ${Math.ceil(size / 1024)} kB packed`,
);
process.exitCode = problems.length ? 1 : 0;
