// Checks commands: a shell can parse them, and the npm scripts, programs and files that they name exist.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../run.mjs';
import { lineAt } from './markdown.mjs';

const NPM = /\bnpm (?:run(?:-script)?\s+(?:(?:--silent|-s)\s+)?([\w:.-]+)|(test|start|stop))\b([^\n&|;`#]*)/g;
const WORKSPACE = /\s(?:-w|--workspace)[ =](\S+)/;
const PROGRAM = /\bnpx nestjs-redlock (\w[\w-]*)/g;
const FILE = /(?<=^|\s)(?:\.\/)?((?:scripts|test|lib|src|\.ci)\/[\w./-]+)/g;
const EARLIER = /^git checkout [0-9a-f]{7}\b/m;
const COMMENT = /(?<=^|\s)#.*/gm;
const CODE = /`([^`\n]+)`/g;

/** The commands of `nestjs-redlock`, as its program declares them. */
const commands = new Set(
  [...readFileSync(join(root, 'lib/cli/program.ts'), 'utf8').matchAll(/\.command\('(\w+)/g)].map(([, name]) => name),
);

/** Commands in a fenced block run in the folder of their file; commands in prose may also run in the root. */
export function checkShellBlock(file, block) {
  const at = (offset) => ({ file: file.name, line: block.line - 1 + lineAt(block.text, offset) });
  const text = block.text.replace(COMMENT, (comment) => ' '.repeat(comment.length));
  const problems = problemsOf(text, [file.folder]).map(({ offset, message }) => ({ ...at(offset), message }));
  const { status, stderr } = spawnSync('bash', ['-n'], { input: block.text, encoding: 'utf8' });
  if (status !== 0) problems.push({ ...at(0), message: `no shell can read this: ${stderr.trim()}` });
  // Files of an earlier commit may have moved since.
  const files = EARLIER.test(text) ? [] : text.matchAll(FILE);
  for (const { 1: path, index } of files) {
    if (![file.folder, root].some((folder) => existsSync(join(folder, path)))) {
      problems.push({ ...at(index), message: `there is no ${path}` });
    }
  }
  return problems;
}

export function checkCommandsInProse(file) {
  return [...file.prose.matchAll(CODE)].flatMap(({ 1: code, index }) =>
    problemsOf(code, [file.folder, root]).map(({ message }) => ({
      file: file.name,
      line: lineAt(file.prose, index),
      message,
    })),
  );
}

function problemsOf(text, folders) {
  const scripts = [...text.matchAll(NPM)].map(({ 1: named, 2: short, 3: rest, index }) => {
    const script = named ?? short;
    const workspace = WORKSPACE.exec(rest)?.[1];
    const manifests = workspace ? [workspaceOf(workspace)] : folders.map(nearestManifest);
    if (manifests.some((manifest) => manifest?.scripts?.[script])) return undefined;
    const names = new Set(manifests.map((manifest) => manifest?.name ?? workspace));
    return { offset: index, message: `npm script "${script}" is not one of ${[...names].join(' or ')}` };
  });
  const programs = [...text.matchAll(PROGRAM)]
    .filter(([, name]) => !commands.has(name))
    .map(({ 1: name, index }) => ({ offset: index, message: `nestjs-redlock has no command "${name}"` }));
  return [...scripts.filter((problem) => problem !== undefined), ...programs];
}

function nearestManifest(folder) {
  for (let at = folder; at.startsWith(root.replace(/\/$/, '')); at = dirname(at)) {
    if (existsSync(join(at, 'package.json'))) return readManifest(at);
  }
  return undefined;
}

/** Finds a workspace by its folder or its name, as npm does. */
function workspaceOf(nameOrFolder) {
  if (existsSync(join(root, nameOrFolder, 'package.json'))) return readManifest(join(root, nameOrFolder));
  return readdirSync(join(root, 'sample'))
    .map((folder) => join(root, 'sample', folder))
    .filter((folder) => existsSync(join(folder, 'package.json')))
    .map(readManifest)
    .find(({ name }) => name === nameOrFolder);
}

function readManifest(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}
