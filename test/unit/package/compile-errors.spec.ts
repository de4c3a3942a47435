import { expect, it } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FILE = `${ROOT}test/unit/package/misuse.ts`;
const SOURCE = `
import { WithLock } from 'nestjs-redlock';
export class Orders {
  @WithLock((id: string) => id) async ship(id: number): Promise<void> { void id; }
  @WithLock((id) => id) async pay(id: string): Promise<void> { void id; }
  @WithLock('x', { onLocked: 'skip' }) async count(): Promise<number> { return 1; }
  @WithLock('x') total(): number { return 1; }
}`;

// The last lines of the errors, which TypeScript 7 shows of the last overload only.
function errors(): readonly string[] {
  const { config } = ts.readConfigFile(`${ROOT}tsconfig.json`, (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [FILE] }, ts.sys, ROOT);
  const host = ts.createCompilerHost(options);
  const original = { ...host };
  host.fileExists = (path) => path === FILE || original.fileExists(path);
  host.getSourceFile = (path, ...others) =>
    path === FILE ? ts.createSourceFile(path, SOURCE, ts.ScriptTarget.Latest) : original.getSourceFile(path, ...others);
  const program = ts.createProgram([FILE], { ...options, noEmit: true }, host);
  return program
    .getSemanticDiagnostics(program.getSourceFile(FILE))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n').split('\n').at(-1)!);
}

it('The last line of a compile error of @WithLock says what does not fit', () => {
  expect(errors()).toEqual([
    expect.stringContaining('the key function does not fit the arguments of this method'),
    expect.stringContaining('annotate the parameters of the key function, as in (id: string) => ...'),
    expect.stringContaining("onLocked: 'skip' gives undefined, which the result of this method does not include"),
    expect.stringContaining("'number' is not assignable to type 'PromiseLike<unknown>'"),
  ]);
});
