// The TypeScript compiler, kept warm: it lists the mutants, and refuses those that do not compile.
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
      if (file.startsWith('lib/cli/')) return [];
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
