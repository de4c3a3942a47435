import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { processTerminal } from '../../../lib/cli/terminal.js';

type Streams = Parameters<typeof processTerminal>[0];

/** Streams of a process. Only the properties of `stdout` decide whether the terminal shows colours. */
function streams(stdout: object = {}) {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const all = { stdin: input, stdout: Object.assign(output, stdout), stderr: errors } as unknown as Streams;
  return { input, output, errors, terminal: processTerminal(all) };
}

describe('The terminal', () => {
  it('paints only where the terminal shows colours', () => {
    const painted = (stdout?: object) => streams(stdout).terminal.paint('red', 'x');
    expect(painted()).toBe('x');
    expect(painted({ isTTY: true, hasColors: () => false })).toBe('x');
    expect(painted({ isTTY: true, hasColors: () => true })).toBe('\x1b[31mx\x1b[0m');
  });

  it('asks on stderr and prints on stdout, and takes the end of the input for no answer', async () => {
    const { input, output, errors, terminal } = streams();
    const answer = terminal.ask('Sure? ');
    input.write('yes\nand more\n');
    expect(await answer).toBe('yes');
    terminal.print('done');
    expect([String(output.read()), String(errors.read())]).toEqual(['done\n', 'Sure? ']);

    const closed = streams();
    const none = closed.terminal.ask('Sure? ');
    closed.input.end();
    expect(await none).toBeUndefined();
  });
});
