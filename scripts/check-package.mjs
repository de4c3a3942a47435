// Checks the package as it would be published: its types resolve everywhere, and it has every output of every source file, and
// nothing else.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mustRun, root } from './run.mjs';

/** The number of files, and bytes. */
const BUDGET = { files: 800, packed: 600_000, unpacked: 3_000_000 };

// It packs with npm, which `npm publish --dry-run` would keep from writing the file.
await mustRun('npx', ['attw', '--pack', '.'], { env: { npm_config_dry_run: 'false' } });

const files = readdirSync(`${root}/lib`, { recursive: true }).map((file) => file.replaceAll('\\', '/'));
const sources = files.filter((file) => file.endsWith('.ts'));
const schematics = files.filter((file) => file.endsWith('.json'));
// One format is enough for the command line, which is never imported, and for schematics, which are loaded by `require`.
const isOnlyIn = { esm: (file) => file.startsWith('cli/'), cjs: (file) => file.startsWith('schematics/') };
const outputs = (format) =>
  sources
    .filter((file) => !isOnlyIn[format === 'esm' ? 'cjs' : 'esm'](file))
    .flatMap((file) => ['.js', '.d.ts'].map((end) => file.replace(/\.ts$/, end)))
    .map((file) => `dist/${format}/${file}`);
const expected = new Set([
  ...['package.json', 'README.md', 'CHANGELOG.md', 'LICENSE', 'dist/cjs/package.json'],
  ...readdirSync(`${root}/docs`).flatMap((file) => (file.endsWith('.md') ? [`docs/${file}`] : [])),
  ...schematics.map((file) => `dist/cjs/${file}`),
  ...['postgres', 'mysql', 'sqlite'].map((dialect) => `dist/sql/${dialect}.sql`),
  ...outputs('esm'),
  ...outputs('cjs'),
]);

const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
  cwd: root,
  encoding: 'utf8',
});
const [{ files: listed, size, unpackedSize }] = JSON.parse(output);
const packed = new Set(listed.map(({ path }) => path));

const problems = [
  ...[...expected].filter((file) => !packed.has(file)).map((file) => `missing: ${file}`),
  ...[...packed].filter((file) => !expected.has(file)).map((file) => `should not be there: ${file}`),
  ...Object.entries({ files: packed.size, packed: size, unpacked: unpackedSize })
    .filter(([what, found]) => found > BUDGET[what])
    .map(([what, found]) => `${what}: ${found}, and at most ${BUDGET[what]}`),
];
for (const problem of problems) console.error(problem);
console.log(
  problems.length ? `${problems.length} problems` : `${packed.size} files, ${Math.ceil(size / 1024)} kB packed`,
);
process.exitCode = problems.length ? 1 : 0;
