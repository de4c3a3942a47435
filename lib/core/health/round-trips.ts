import { askAll, quorumOf } from '../acquire/quorum-call.js';
import type { Clock } from '../clock.js';
import type { Master } from '../master.interface.js';

interface RoundTrip {
  readonly master: string;
  // Milliseconds.
  readonly fastest: number;
}

// Only the fastest of so many answers shows the network: others may have waited for this process or the server.
const ANSWERS = 3;
// In milliseconds.
const ANSWER_WITHIN = 5_000;
// A time limit this many times as long as the fastest answer leaves room for slower ones.
const ROOM = 3;
const STEP = 50;

// Masters that answer within `enough` milliseconds are asked once, so that this costs next to nothing where the network
// is fast. No lock uses `key`.
export async function measureRoundTrips(
  masters: readonly Master[],
  { key, clock, enough }: { readonly key: string; readonly clock: Clock; readonly enough: number },
): Promise<readonly RoundTrip[]> {
  const trips = new Map<string, number>();
  for (let i = 0; i < ANSWERS; i++) {
    const open = masters.filter((master) => !master.problem() && (trips.get(master.name) ?? Infinity) >= enough);
    if (open.length === 0) break;
    const asked = clock.read().monotonic;
    await askAll({
      masters: open,
      request: { op: 'inspect', keys: [key] },
      clock,
      timeout: ANSWER_WITHIN,
      judge: (answer, { name }) => {
        const taken = clock.read().monotonic - asked;
        const hasAnswered = answer.kind !== 'unreachable' && answer.kind !== 'timeout';
        if (hasAnswered) trips.set(name, Math.min(taken, trips.get(name) ?? Infinity));
        return answer;
      },
    });
  }
  return [...trips].map(([master, fastest]) => ({ master, fastest }));
}

export function warningOfRoundTrips(
  trips: readonly RoundTrip[],
  masterTimeout: number,
  masters: number,
): string | undefined {
  const slow = trips.filter(({ fastest }) => fastest >= masterTimeout);
  if (slow.length === 0) return undefined;
  const each = slow.map(({ master, fastest }) => `${master} in ${Math.ceil(fastest)} ms`).join(', ');
  const effect = masters - slow.length < quorumOf(masters) ? 'no lock can be taken' : 'their votes do not count';
  const enough = enoughFor(Math.max(...slow.map(({ fastest }) => fastest)));
  return `masterTimeout (${masterTimeout} ms) is too short: ${each} at the fastest, so ${effect}; set masterTimeout to '${enough}ms' or more`;
}

// In milliseconds.
export function enoughFor(fastest: number): number {
  return Math.ceil((ROOM * fastest) / STEP) * STEP;
}
