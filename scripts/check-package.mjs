// Checks the package as it would be published: it has every output of every source file, and nothing else.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

const sources = readdirSync(`${root}/lib`, { recursive: true })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'));
// The command line is started and never imported: one format is enough.
const isProgram = (file) => file.startsWith('cli/');
const outputs = (format) =>
  sources
    .filter((file) => format === 'esm' || !isProgram(file))
    .flatMap((file) => ['.js', '.js.map', '.d.ts', '.d.ts.map'].map((end) => file.replace(/\.ts$/, end)))
    .map((file) => `dist/${format}/${file}`);
const expected = new Set([
  ...['package.json', 'README.md', 'CHANGELOG.md', 'LICENSE', 'dist/cjs/package.json'],
  ...readdirSync(`${root}/docs`).flatMap((file) => (file.endsWith('.md') ? [`docs/${file}`] : [])),
  ...sources.map((file) => `lib/${file}`),
  ...outputs('esm'),
  ...outputs('cjs'),
]);

const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
  cwd: root,
  encoding: 'utf8',
});
const [{ files, size }] = JSON.parse(output);
const packed = new Set(files.map(({ path }) => path));

const problems = [
  ...[...expected].filter((file) => !packed.has(file)).map((file) => `missing: ${file}`),
  ...[...packed].filter((file) => !expected.has(file)).map((file) => `should not be there: ${file}`),
];
for (const problem of problems) console.error(problem);
console.log(
  problems.length ? `${problems.length} problems` : `${packed.size} files, ${Math.ceil(size / 1024)} kB packed`,
);
process.exitCode = problems.length ? 1 : 0;
