import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { editsOf } from './operators.mjs';

const FILE = 'source.ts';

/** The source with each change of one operator, or of all. */
function mutantsOf(text: string, operator?: string): string[] {
  const source = ts.createSourceFile(FILE, text, ts.ScriptTarget.ES2023, true);
  const host: ts.CompilerHost = {
    getSourceFile: (name) => (name === FILE ? source : undefined),
    getDefaultLibFileName: () => 'lib.d.ts',
    getCurrentDirectory: () => '',
    getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    fileExists: (name) => name === FILE,
    readFile: () => undefined,
    writeFile: () => undefined,
  };
  const program = ts.createProgram([FILE], { noLib: true, strict: true }, host);
  return editsOf(source, program.getTypeChecker())
    .filter((edit) => operator === undefined || edit.operator === operator)
    .map((edit) => text.slice(0, edit.start) + edit.text + text.slice(edit.end));
}

describe('A mutant', () => {
  it.each<[operator: string, text: string, mutants: string[]]>([
    ['comparison', 'a < b;', ['a <= b;', 'a >= b;']],
    ['comparison', 'a === b;', ['a !== b;']],
    ['condition', 'while (a) b();', ['while (false) b();']],
    ['condition', 'a ? b : c;', ['false ? b : c;', 'true ? b : c;']],
    ['negation', 'if (a) b();', ['if (!(a)) b();']],
    ['negation', 'x = !a;', ['x = a;']],
    ['logic', 'a && b;', ['a || b;']],
    [
      'logic',
      'declare const n: number | undefined; n ?? 1;',
      [...['declare const n: number | undefined; n;', 'declare const n: number | undefined; n || 1;']],
    ],
    ['logic', 'declare const o: object | undefined; o ?? p;', ['declare const o: object | undefined; o;']],
    ['arithmetic', 'a + 1;', ['a - 1;']],
    ['arithmetic', 'i++;', ['i--;']],
    ['arithmetic', "a + 'b';", []],
    ['assignment', 'a += b;', ['a -= b;']],
    ['boolean', 'f(true);', ['f(false);']],
    ['number', 'f(0);', ['f(1);', 'f((-1));']],
    ['text', "f('a');", ["f('');"]],
    ['text', "f('');", ["f('mutated');"]],
    ['statement', 'a();', ['{}']],
    ['jump', 'for (;;) { a(); break; }', ['for (;;) { a(); {} }']],
    ['jump', 'function f() { return 1; }', []],
    ['body', 'function f(): void { a(); }', ['function f(): void {}']],
    ['body', 'function f(): number { return 1; }', []],
    ['chain', 'a?.b;', ['a.b;']],
    ['list', 'f([a]);', ['f([]);']],
    ['spread', 'f([...a, b]);', ['f([b]);']],
    ['method', 'Math.min(a, b);', ['Math.max(a, b);']],
    ['method', 'a.filter(f);', ['a;']],
  ])('by the operator %s of %s', (operator, text, mutants) => {
    expect(mutantsOf(text, operator)).toEqual(mutants);
  });

  it.each([
    ["import { a } from 'a';"],
    ["export { a } from 'a';"],
    ["type A = 'a' | 1 | true;"],
    ['interface A { a: 1 }'],
    ['/** 1 < 2 */'],
  ])('is not made of what has no effect: %s', (text) => {
    expect(mutantsOf(text)).toEqual([]);
  });

  it('is not made of texts for people', () => {
    expect(mutantsOf("throw new LockError('a');", 'text')).toEqual([]);
    expect(mutantsOf("logger.warn(`a ${b}`, 'c');", 'text')).toEqual([]);
    expect(mutantsOf("const reason = 'it was restarted';", 'text')).toEqual([]);
  });

  it('is different from every other', () => {
    const mutants = mutantsOf('function f(a: number): void { if (a < 1 && !b) g(a + 2, [...c]); else d ??= true; }');
    expect(new Set(mutants).size).toBe(mutants.length);
    expect(mutants.length).toBeGreaterThan(10);
  });
});
