import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A server's wall clock that a test can shift. */
export interface ClockShim extends Disposable {
  /** Environment variables for the server process. */
  readonly env: Readonly<Record<string, string>>;
  /** Sets the error of the wall clock to this many milliseconds from now on. */
  step(milliseconds: number): void;
}

/** Builds the shim. Returns `undefined` without Linux or a C compiler. */
export function buildClockShim(): ClockShim | undefined {
  if (process.platform !== 'linux') return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'redlock-clock-'));
  const library = join(folder, 'shim.so');
  const source = join(process.cwd(), 'test/support/clock-shim.c');
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const isBuilt = ['cc', 'gcc', 'clang'].some(
    (compiler) => spawnSync(compiler, ['-shared', '-fPIC', '-O1', '-o', library, source]).status === 0,
  );
  if (!isBuilt) {
    remove();
    return undefined;
  }
  const file = join(folder, 'offset');
  const step = (milliseconds: number): void => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(milliseconds) * 1_000_000n);
    // Write in place: the server has mapped this file into its memory.
    writeFileSync(file, bytes, { flag: 'r+' });
  };
  writeFileSync(file, Buffer.alloc(8));
  return { env: { LD_PRELOAD: library, CLOCK_OFFSET: file }, step, [Symbol.dispose]: remove };
}
