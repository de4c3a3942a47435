// The code of a thread, which both simulations share: plays plans, and adds up what their results say.
import { parentPort } from 'node:worker_threads';
import type { Outcome } from './play.js';

/** What one simulation plays. `Choice` is what the command line chooses. */
interface Simulation<Plan, Choice> {
  readonly rareStates: readonly string[];
  readonly plan: (seed: number, choice: Choice) => Plan;
  readonly play: (plan: Plan, choice: Choice, log?: (line: string) => void) => Promise<Outcome>;
  readonly describe: (plan: Plan) => string;
  /** The parts of which some may be left out, and how many of each must stay. */
  readonly parts: { readonly [Part in keyof Plan]?: number };
}

interface PlayRequest {
  readonly op: 'play';
  readonly from: number;
  readonly to: number;
  readonly stopAtFirst?: boolean;
}

interface ShowRequest {
  readonly op: 'show';
  readonly seed: number;
  readonly shrinks: boolean;
}

/** Limit on the number of plans to try. */
const MAX_TRIES = 400;

/** Answers the requests of the main thread. */
export function serve<Plan extends object, Choice>(simulation: Simulation<Plan, Choice>): void {
  // `show` plays a failing plan again and prints its error in full.
  Error.stackTraceLimit = 0;
  parentPort?.on('message', (request: Choice & (PlayRequest | ShowRequest)) => {
    const answer = request.op === 'play' ? playMany(request, simulation) : show(request, simulation);
    void answer.then((message) => parentPort?.postMessage(message));
  });
}

async function playMany<Plan, Choice>(
  request: Choice & PlayRequest,
  { plan, play, rareStates }: Simulation<Plan, Choice>,
) {
  const totals: Record<string, number> = { runs: 0, fingerprint: 0 };
  const counts: Record<string, Record<string, number>> = {
    reached: Object.fromEntries(rareStates.map((state) => [state, 0])),
  };
  const failures: object[] = [];
  for (let seed = request.from; seed < request.to; seed++) {
    const { property, message, ...result } = await play(plan(seed, request), request);
    for (const [name, value] of Object.entries({ runs: 1, ...result })) {
      if (typeof value === 'number') totals[name] = (totals[name] ?? 0) + value;
      else for (const each of value as readonly string[]) addTo((counts[name] ??= {}), each);
    }
    if (property === undefined) continue;
    failures.push({ seed, property, message });
    if (request.stopAtFirst) break;
  }
  return { ...totals, ...counts, failures };
}

function addTo(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** Plays a plan again with its trace, made as short as it still fails. */
async function show<Plan extends object, Choice>(
  request: Choice & ShowRequest,
  { plan, play, describe, parts }: Simulation<Plan, Choice>,
) {
  Error.stackTraceLimit = 20;
  let shown = plan(request.seed, request);
  const { property } = await play(shown, request);
  if (property !== undefined && request.shrinks) {
    const fails = async (candidate: Plan) => (await play(candidate, request)).property === property;
    shown = await shrink(shown, parts, fails);
  }
  const lines = [describe(shown)];
  const { message = '', events, fingerprint } = await play(shown, request, (line) => lines.push(line));
  lines.push(`${events} events, fingerprint ${fingerprint}`);
  lines.push(property === undefined ? 'No promise was broken.' : `BROKEN: ${property}: ${message}`);
  Error.stackTraceLimit = 0;
  return { lines, failed: property !== undefined };
}

/** Removes the parts without which the plan still fails. */
async function shrink<Plan extends object>(
  plan: Plan,
  parts: Simulation<Plan, unknown>['parts'],
  fails: (candidate: Plan) => Promise<boolean>,
): Promise<Plan> {
  let [smallest, tries] = [plan, 0];
  for (let before; before !== smallest && tries < MAX_TRIES;) {
    before = smallest;
    for (const [part, least] of Object.entries(parts) as [keyof Plan, number][]) {
      const listed = (): readonly unknown[] => smallest[part] as readonly unknown[];
      for (let index = listed().length - 1; index >= 0 && listed().length > least; index--) {
        const candidate = { ...smallest, [part]: listed().toSpliced(index, 1) };
        tries++;
        if (await fails(candidate)) smallest = candidate;
      }
    }
  }
  return smallest;
}
