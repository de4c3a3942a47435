// The code of one thread: plays schedules and returns the results.
import { parentPort } from 'node:worker_threads';
import { KINDS, generateAny } from './generator.js';
import { PROFILES, scheduleFor } from './mutants/profiles.js';
import { RARE_STATES } from './properties/sometimes.js';
import { play, type Result, type RunOptions } from './run.js';
import type { FaultKind, Schedule } from './schedule.js';
import { show } from './show.js';

interface Choice {
  /** Kinds of faults, if not all of them. */
  readonly faults?: readonly FaultKind[];
  /** Name of a mutant whose profile to use. */
  readonly mutant?: string;
}

type Request =
  | (Choice & { readonly op: 'play'; readonly from: number; readonly to: number; readonly stopAtFirst: boolean })
  | (Choice & { readonly op: 'show'; readonly seed: number; readonly shrink: boolean; readonly command: string });

/** Results of several schedules. */
export interface Summary {
  runs: number;
  events: number;
  grants: number;
  /** Schedules that broke no assumption. */
  sound: number;
  fingerprint: number;
  readonly broken: Record<string, number>;
  /** Number of schedules in which some client had wrong clocks, which must not affect the others. */
  readonly ailments: Record<string, number>;
  /** Number of schedules in which each rare state was reached. */
  readonly reached: Record<string, number>;
  /** Number of faults of each kind. */
  readonly faults: Record<string, number>;
  readonly failures: number[];
  first: (Result & { readonly seed: number }) | undefined;
}

// `show` plays a failing schedule again and prints its error in full.
Error.stackTraceLimit = 0;

parentPort?.on('message', (request: Request) => {
  void (request.op === 'play' ? playMany(request) : showOne(request)).then((answer) => parentPort?.postMessage(answer));
});

async function playMany({ from, to, stopAtFirst, ...choice }: Extract<Request, { op: 'play' }>): Promise<Summary> {
  const { schedule, options } = chosen(choice);
  const summary: Summary = {
    ...{ runs: 0, events: 0, grants: 0, sound: 0, fingerprint: 0, broken: {}, ailments: {}, faults: {} },
    ...{ reached: Object.fromEntries(RARE_STATES.map((state) => [state, 0])), failures: [] },
    first: undefined,
  };
  for (let seed = from; seed < to; seed++) {
    const result = await play(schedule(seed), options);
    summary.runs++;
    summary.events += result.events;
    summary.grants += result.grants;
    summary.sound += result.broken.length === 0 ? 1 : 0;
    summary.fingerprint = (summary.fingerprint + result.fingerprint) >>> 0;
    count(summary.broken, result.broken);
    count(summary.ailments, result.ailments);
    count(summary.faults, result.faults);
    count(summary.reached, result.reached);
    if (result.property === undefined) continue;
    summary.failures.push(seed);
    summary.first ??= { ...result, seed };
    if (stopAtFirst) break;
  }
  return summary;
}

function count(counts: Record<string, number>, names: readonly string[]): void {
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
}

async function showOne({ seed, shrink, command, ...choice }: Extract<Request, { op: 'show' }>) {
  Error.stackTraceLimit = 20;
  const { schedule, options } = chosen(choice);
  const lines: string[] = [];
  const result = await show(schedule(seed), { ...options, shrink, command }, (line) => lines.push(line));
  Error.stackTraceLimit = 0;
  return { lines, result };
}

function chosen({ faults, mutant }: Choice): {
  readonly schedule: (seed: number) => Schedule;
  readonly options: RunOptions;
} {
  const unknown = faults?.find((kind) => !KINDS.has(kind));
  if (unknown !== undefined) throw new Error(`no such fault: ${unknown}; there are ${[...KINDS].join(', ')}`);
  if (mutant === undefined) return { schedule: (seed) => generateAny(seed, faults), options: {} };
  const { modelFaults } = PROFILES[mutant] ?? {};
  return { schedule: (seed) => scheduleFor(mutant, seed), options: modelFaults ? { modelFaults } : {} };
}
