import { createInterface } from 'node:readline';

/** Styles for output on a terminal. */
export type Style = 'bold' | 'red' | 'green' | 'yellow';

/** The output of a command, and the input that it asks for. */
export interface Terminal {
  /** Prints a result. */
  print(text: string): void;
  /** Prints an error. */
  complain(text: string): void;
  /** Resolves with a line of input; `undefined` when there is none. */
  ask(question: string): Promise<string | undefined>;
  paint(style: Style, text: string): string;
}

const CODES: Readonly<Record<Style, number>> = { bold: 1, red: 31, green: 32, yellow: 33 };

/** The terminal of this process. Questions go to stderr, because stdout may go into a file. */
export function processTerminal({ stdin, stdout, stderr } = process): Terminal {
  // Only a terminal has the method. It also respects NO_COLOR, FORCE_COLOR and the type of the terminal.
  const hasColours = stdout.isTTY && stdout.hasColors();
  // A reader that closes the pipe early, such as `head`, ends the program.
  stdout.on('error', () => process.exit());
  return {
    print: (text) => void stdout.write(`${text}\n`),
    complain: (text) => void stderr.write(`${text}\n`),
    ask: (question) =>
      new Promise((resolve) => {
        stderr.write(question);
        const lines = createInterface({ input: stdin });
        lines.once('line', (line) => {
          resolve(line);
          lines.close();
        });
        lines.once('close', () => resolve(undefined));
      }),
    paint: (style, text) => (hasColours ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text),
  };
}
