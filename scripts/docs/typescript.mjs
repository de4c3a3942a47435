// Compiles the TypeScript in Markdown with the settings of the project. The blocks of a Markdown file become the files
// of a folder beside it, which exists only for the compiler. There they find each other, and the packages of their
// project.
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { root } from '../run.mjs';

/** Declares the globals of test runners. It exists only for the compiler, so that the project itself has none. */
const TEST_GLOBALS = join(root, 'scripts/docs/test-globals.ts');
const TEST_GLOBALS_CODE = `
import type * as jest from '@jest/globals';
declare global {
  const afterEach: typeof jest.afterEach;
  const beforeEach: typeof jest.beforeEach;
  const describe: typeof jest.describe;
  const expect: typeof jest.expect;
  const it: typeof jest.it;
  /** Of Vitest. */
  const vi: Pick<typeof jest.jest, 'advanceTimersByTimeAsync' | 'useFakeTimers' | 'useRealTimers'>;
}`;

/** The code of a block. For a diff, this is the code after the change, with an empty line for each removed one. */
export function codeOf({ language, lines }) {
  if (language !== 'diff') return lines.join('\n');
  return lines.map((line) => (line.startsWith('-') ? '' : line.slice(1))).join('\n');
}

/** @param blocks pairs of a Markdown file and one of its blocks */
export function checkTypeScript(blocks) {
  const sources = new Map();
  const problems = [];
  for (const { file, block } of blocks) {
    const path = pathOf(file, block);
    if (sources.has(path)) {
      problems.push({ file: file.name, line: block.line, message: `is a second ${block.fileName} in this file` });
    }
    // Empty lines before the code make its positions the same as in the Markdown file.
    sources.set(path, { file, code: '\n'.repeat(block.line - 1) + codeOf(block) });
  }
  return [...problems, ...compile(sources)];
}

function pathOf(file, { fileName, line }) {
  const name = fileName ?? `line-${line}.ts`;
  return join(file.folder, `${file.name.split('/').at(-1)}.blocks`, name);
}

function compile(sources) {
  if (sources.size === 0) return [];
  const { options } = settings();
  const host = ts.createCompilerHost(options);
  const { fileExists, directoryExists, readFile, getSourceFile } = host;
  const folders = new Set([...sources.keys()].map(dirname));
  const codeAt = (path) => (path === TEST_GLOBALS ? TEST_GLOBALS_CODE : sources.get(path)?.code);
  host.directoryExists = (path) => folders.has(path) || directoryExists(path);
  host.fileExists = (path) => codeAt(path) !== undefined || fileExists(path);
  host.readFile = (path) => codeAt(path) ?? readFile(path);
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const code = codeAt(path);
    if (code === undefined) return getSourceFile(path, languageVersion, ...rest);
    return ts.createSourceFile(path, code, languageVersion, true);
  };
  const program = ts.createProgram([TEST_GLOBALS, ...sources.keys()], options, host);
  const ofAll = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()];
  const ofBlocks = [...sources.keys()].flatMap((path) => {
    const sourceFile = program.getSourceFile(path);
    return [...program.getSyntacticDiagnostics(sourceFile), ...program.getSemanticDiagnostics(sourceFile)];
  });
  return [...ofAll, ...ofBlocks].map((diagnostic) => problemOf(diagnostic, sources));
}

function settings() {
  const path = join(root, 'tsconfig.json');
  const { config, error } = ts.readConfigFile(path, ts.sys.readFile);
  if (error) throw new Error(ts.flattenDiagnosticMessageText(error.messageText, '\n'));
  const parsed = ts.parseJsonConfigFileContent({ ...config, include: [], files: ['lib/index.ts'] }, ts.sys, root);
  // Forced, even where a package.json says CommonJS: blocks must share names by imports only.
  parsed.options.moduleDetection = ts.ModuleDetectionKind.Force;
  return parsed;
}

function problemOf({ file: source, start, code, messageText }, sources) {
  const message = `TS${code}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  if (!source) return { file: 'tsconfig.json', line: 1, message };
  const { line } = source.getLineAndCharacterOfPosition(start);
  return { file: sources.get(source.fileName).file.name, line: line + 1, message };
}
