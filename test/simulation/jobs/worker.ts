// The code of one thread: plays plans and returns the results.
import { parentPort } from 'node:worker_threads';
import { generate } from './generator.js';
import { play } from './play.js';
import { RARE_STATES } from './rare-states.js';
import { shrink } from './shrink.js';
import type { JobProperty } from './violation.js';

type Request =
  | { readonly op: 'play'; readonly from: number; readonly to: number; readonly stopAtFirst: boolean }
  | { readonly op: 'show'; readonly seed: number; readonly shrinks: boolean };

/** A plan that broke a promise. */
interface Failure {
  readonly seed: number;
  readonly property: JobProperty;
  readonly message: string | undefined;
}

// `show` plays a failing plan again and prints its error in full.
Error.stackTraceLimit = 0;

parentPort?.on('message', (request: Request) => {
  void (request.op === 'play' ? playMany(request) : show(request)).then((answer) => parentPort?.postMessage(answer));
});

async function playMany({ from, to, stopAtFirst }: Extract<Request, { op: 'play' }>) {
  const total = { runs: 0, events: 0, ticks: 0, starts: 0, fingerprint: 0 };
  const reached = Object.fromEntries(RARE_STATES.map((state) => [state, 0]));
  const failures: Failure[] = [];
  for (let seed = from; seed < to; seed++) {
    const result = await play(generate(seed));
    total.runs++;
    total.events += result.events;
    total.ticks += result.ticks;
    total.starts += result.starts;
    total.fingerprint = (total.fingerprint + result.fingerprint) >>> 0;
    for (const state of result.reached) reached[state] = (reached[state] ?? 0) + 1;
    if (result.property === undefined) continue;
    failures.push({ seed, property: result.property, message: result.message });
    if (stopAtFirst) break;
  }
  return { total, reached, failures };
}

async function show({ seed, shrinks }: Extract<Request, { op: 'show' }>) {
  Error.stackTraceLimit = 20;
  const lines: string[] = [];
  let plan = generate(seed);
  const { property } = await play(plan);
  if (property !== undefined && shrinks) plan = await shrink(plan, property);
  lines.push(JSON.stringify(plan, (_, value: unknown) => (value === Infinity ? 'for ever' : value), 1));
  const result = await play(plan, (line) => lines.push(line));
  lines.push(`${result.events} events, fingerprint ${result.fingerprint}`);
  lines.push(property === undefined ? 'No promise was broken.' : `BROKEN: ${property}: ${result.message ?? ''}`);
  Error.stackTraceLimit = 0;
  return { lines, failed: property !== undefined };
}
