import { type ChildRecord } from './child.js';
import { type PlannedPhase } from './plan.js';
import { type Write } from './register.js';
import { type Claim, type TraceEvent } from './trace.js';

/** A fault as it was carried out. Times are milliseconds of the machine's monotonic clock. */
export interface AppliedFault {
  readonly kind: string;
  readonly targets: readonly number[];
  readonly at: number;
  readonly until: number;
}

/** A phase as it took place. */
export interface Phase extends Omit<PlannedPhase, 'name'> {
  readonly name: PlannedPhase['name'] | 'start' | 'end';
}

/** One worker process, from its start to its end. */
export type WorkerRecord = ChildRecord<TraceEvent>;

/** A key that still existed when every lock had to have ended. */
export interface GhostKey {
  readonly master: number;
  readonly key: string;
  /** Milliseconds until it expires; -1: never. */
  readonly ttl: number;
}

/** Everything that a run leaves behind for the checks. */
export interface Evidence {
  /** Names of all kinds of faults that the run could have had. */
  readonly kinds: readonly string[];
  readonly keys: readonly string[];
  readonly phases: readonly Phase[];
  readonly faults: readonly AppliedFault[];
  readonly workers: readonly WorkerRecord[];
  readonly writes: readonly Write[];
  readonly ghosts: readonly GhostKey[];
}

/** An event that must not have happened. */
export interface Violation {
  readonly at: number;
  readonly message: string;
}

/** The name whose permits the actors take. */
export const PERMITS_OF = 'p';
export const PERMITS = 3;

/** The checks treat each permit as a key, because it has one holder at a time, whose tokens order the holders of it alone. */
export function keyOfPermit(slot: number | undefined): string {
  return `${PERMITS_OF}#${slot}`;
}

/** The period in which a section certainly believed that it held some keys. */
export interface Belief extends Claim {
  readonly section: string;
  /** When the lock was requested. */
  readonly asked: number;
  readonly from: number;
  readonly to: number;
  readonly token?: number;
  /** When the token was known. */
  readonly tokenAt?: number;
}

/** The beliefs of all workers; see `Section` for what a worker records. */
export function beliefsOf({ workers }: Pick<Evidence, 'workers'>): Belief[] {
  return workers.flatMap(beliefsOfWorker);
}

function beliefsOfWorker({ events, killedAt = Infinity }: WorkerRecord): Belief[] {
  const beliefs = new Map<string, { -readonly [Name in keyof Belief]: Belief[Name] }>();
  for (const event of events) {
    if (event.kind === 'granted') {
      const { section, keys, mode, permits, asked, at, until } = event;
      const to = Math.max(at, Math.min(until, killedAt));
      beliefs.set(section, { section, keys, mode, permits, asked, from: at, to });
    }
    const belief = 'section' in event ? beliefs.get(event.section) : undefined;
    if (!belief) continue;
    // The last look counts: it covers everything before it, and replaces the previous end.
    if (event.kind === 'looked') belief.to = Math.min(event.until, killedAt);
    if (event.kind === 'token') Object.assign(belief, { token: event.token, tokenAt: event.at });
    if (event.kind === 'lost' || event.kind === 'left') belief.to = Math.min(belief.to, event.at);
  }
  return [...beliefs.values()];
}

/** The beliefs about one key, in the order in which they began. */
export function beliefsIn(key: string, beliefs: readonly Belief[]): Belief[] {
  return beliefs.filter(({ keys }) => keys.includes(key)).sort((a, b) => a.from - b.from);
}

/** Whether both began in one phase in which no assumption was broken, so that they must exclude each other. */
export function mustExclude(phases: readonly Phase[], a: Belief, b: Belief): boolean {
  const phase = phaseAt(phases, a.from);
  return phase !== undefined && assumptionsHold(phase) && phaseAt(phases, b.from) === phase;
}

/** After an assumption was broken, locks from that phase may live on for a while. */
export function assumptionsHold({ name }: Phase): boolean {
  return name !== 'assumptions broken' && name !== 'settling';
}

function phaseAt(phases: readonly Phase[], at: number): Phase | undefined {
  return phases.find(({ from, to }) => from <= at && at < to);
}
