import { play, type Result, type RunOptions } from './run.js';
import type { Schedule } from './schedule.js';
import { shrink } from './shrink.js';

interface ShowOptions extends RunOptions {
  /** Whether a failing schedule is shortened first. */
  readonly shrink: boolean;
  /** The command to type before `--replay`. */
  readonly command: string;
}

/** Plays a schedule and prints every event. */
export async function show(
  schedule: Schedule,
  { shrink: shrinks, command, ...options }: ShowOptions,
  print: (line: string) => void,
): Promise<Result> {
  const lines: string[] = [];
  const result = await play(schedule, { ...options, log: (line) => lines.push(line) });
  if (result.property !== undefined && shrinks) {
    const shorter = await shrink(schedule, result.property, options);
    print(`\nSeed ${schedule.seed} made as short as it still fails:`);
    await show(shorter, { ...options, shrink: false, command }, print);
    return result;
  }
  print(describe(schedule));
  for (const line of lines) print(line);
  print(`${result.events} events, fingerprint ${result.fingerprint}, trace ${digest(lines)}`);
  if (result.broken.length > 0) print(`broken assumptions: ${result.broken.join('; ')}`);
  if (result.property === undefined) print('No promise was broken.');
  else print(`BROKEN: ${result.property}: ${result.message}\nreplay: ${command} --replay ${schedule.seed}`);
  return result;
}

function describe({ seed, options, servers, processes }: Schedule): string {
  const clocks = [...servers, ...processes].map(
    ({ rate, offset }) => `${((rate - 1) * 1e6).toFixed(0)} ppm ${offset >= 0 ? '+' : ''}${offset} ms`,
  );
  return (
    `seed ${seed}: ${servers.length} masters, ${processes.length} processes, ${JSON.stringify(options)}\n` +
    `clocks: ${clocks.join(', ')}`
  );
}

function digest(lines: readonly string[]): string {
  let value = 0x811c9dc5;
  for (const line of lines) {
    for (let i = 0; i < line.length; i++) value = Math.imul(value ^ line.charCodeAt(i), 0x01000193);
  }
  return (value >>> 0).toString(16).padStart(8, '0');
}
