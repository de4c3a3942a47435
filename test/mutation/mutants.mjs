// The TypeScript compiler, kept warm: it lists the mutants, and refuses those that do not compile.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import ts from 'typescript';
import { root } from '../../scripts/run.mjs';
import { editsOf } from './operators.mjs';

export class Compiler {
  /** Contents that differ from those on the disk, with a version. */
  #changed = new Map();
  #version = 0;
  #service;
  #files;

  constructor() {
    const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
    const { options } = ts.parseJsonConfigFileContent({ ...config, include: ['lib'] }, ts.sys, root);
    this.#files = sourcesIn(join(root, 'lib'));
    this.#service = ts.createLanguageService(
      {
        ...ts.sys,
        useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
        getCompilationSettings: () => options,
        getCurrentDirectory: () => root,
        getDefaultLibFileName: ts.getDefaultLibFilePath,
        getScriptFileNames: () => this.#files,
        getScriptVersion: (file) => String(this.#changed.get(file)?.version ?? 0),
        getScriptSnapshot: (file) => this.#snapshotOf(file),
      },
      ts.createDocumentRegistry(),
    );
  }

  /** Every mutant of the library outside the command line. */
  mutants() {
    const program = this.#service.getProgram();
    const checker = program.getTypeChecker();
    return this.#files.flatMap((path) => {
      const file = relative(root, path).split(sep).join('/');
      if (/^lib\/(?:cli|admin)\//.test(file)) return [];
      const source = program.getSourceFile(path);
      return editsOf(source, checker).map((edit) => ({ file, ...edit, ...placeOf(source, edit) }));
    });
  }

  /** The first complaint about the mutant's file, or `undefined` if it compiles. */
  refusalOf({ file, start, end, text }) {
    const path = join(root, file);
    const original = readFileSync(path, 'utf8');
    this.#set(path, original.slice(0, start) + text + original.slice(end));
    try {
      const complaints = this.#service.getSyntacticDiagnostics(path);
      const [first] = complaints.length > 0 ? complaints : this.#service.getSemanticDiagnostics(path);
      return first && ts.flattenDiagnosticMessageText(first.messageText, ' ');
    } finally {
      this.#set(path, original);
    }
  }

  #set(path, text) {
    this.#changed.set(path, { text, version: ++this.#version });
  }

  #snapshotOf(path) {
    const text = this.#changed.get(path)?.text ?? ts.sys.readFile(path);
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
  }
}

function sourcesIn(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.ts'));
  return files.sort().map((file) => join(folder, file));
}

/** The lines, counted from one, what stands there, and the text of the line around it. */
function placeOf(source, { start, end }) {
  const [line, lastLine] = [start, end].map((offset) => source.getLineAndCharacterOfPosition(offset).line + 1);
  const around = source.text.split('\n')[line - 1].trim();
  return { line, lastLine, around, before: source.text.slice(start, end) };
}

/**
 * A random sample. Each mutant has a number that follows from the seed and from what it changes, not from its place, so
 * a change elsewhere in the library leaves most of the sample as it was.
 */
export function sampleOf(mutants, { seed, size }) {
  const numbered = mutants.map((mutant) => ({ mutant, number: hash(`${seed} ${mutant.id}`) }));
  numbered.sort((a, b) => (a.number < b.number ? -1 : 1));
  return numbered.slice(0, size).map(({ mutant }) => mutant);
}

/** Names each mutant after its file, the text around it and the change. Equal names are counted. */
export function withNames(mutants) {
  const times = new Map();
  return mutants.map((mutant) => {
    const { file, around, before, text } = mutant;
    const name = JSON.stringify([file, around, before, text]);
    const time = times.get(name) ?? 0;
    times.set(name, time + 1);
    return { id: hash(`${name} ${time}`).slice(0, 10), ...mutant };
  });
}

function hash(text) {
  return createHash('sha256').update(text).digest('hex');
}
