import { overlaps } from '../torture/check-exclusion.js';
import type { ChildRecord } from '../torture/child.js';
import { judge as judgeLedger, type LedgerRow, type StockRow } from '../torture/fenced/verdict.mjs';
import { explain, type RunLine } from '../torture/jobs/verdict.mjs';
import { judge as judgeElection } from '../torture/leader/verdict.mjs';
import type { SoakEvent } from './trace.js';

/** One process, from its start to its end. */
export type InstanceRecord = ChildRecord<SoakEvent>;

export interface Interval {
  readonly from: number;
  readonly to: number;
}

export interface Reply {
  readonly request: string;
  readonly instance: string;
  readonly asked: number;
  readonly at: number;
  readonly status?: number | undefined;
  readonly retryAfter?: string | undefined;
  /** Why there was no answer. */
  readonly error?: string | undefined;
  readonly body?: string | undefined;
}

/** Everything that a run leaves behind for the checks. */
export interface Story {
  readonly instances: readonly InstanceRecord[];
  /** Redis was stopped. */
  readonly outages: readonly Interval[];
  /** Redis took long to answer. */
  readonly slow: readonly Interval[];
  /** What the wall clock shows when the monotonic one shows 0. */
  readonly epoch: number;
  /** Ticks after the first and up to the second moment count. */
  readonly ticks: readonly [from: number, until: number];
  readonly replies: readonly Reply[];
  readonly stock: readonly StockRow[];
  readonly ledger: readonly (LedgerRow & { readonly request: string })[];
  /** Requests that the application has confirmed. */
  readonly confirmed: { readonly sales: readonly string[]; readonly invoices: readonly string[] };
  /** Requests whose invoice was charged. */
  readonly charged: readonly string[];
}

interface Finding {
  /** What the check has looked at: without any, it has shown nothing. */
  readonly seen: number;
  readonly problems: readonly string[];
  readonly remark?: string;
}

const SECOND = 1_000;
/** Of the lock of a job. */
export const JOB_TTL = 2_000;
/** A lock has to be taken again so long after Redis answers. Far more than a busy machine needs: what hangs is noticed. */
const RECOVERS_WITHIN = 15_000;
/** In its first minutes, the heap of a process grows. The second half of a long life is judged. */
const LONG_LIFE = 300_000;
/** Bytes for each second. */
const STEEPEST = 2_048;

export const CHECKS = {
  'no two holders of one key at a time': holders,
  'no tick lost or run twice': ticks,
  'no two leaders, and growing terms': leaders,
  'no lost update': updates,
  'no invoice lost': invoices,
  'no error to a client but 423 and 503 with Retry-After': answers,
  'locks again after each outage': recovery,
  'no unhandled rejection, exception or warning': unhandled,
  'each process ends by itself, and leaves nothing': endings,
  'heap flat': heap,
} satisfies Record<string, (story: Story) => Finding>;

/** @returns for each check what it looked at and what it found */
export function judge(story: Story): [check: string, finding: Finding][] {
  return Object.entries(CHECKS).map(([name, check]) => {
    const { problems, ...finding } = check(story);
    return [name, { ...finding, problems: finding.seen > 0 ? problems : ['nothing was there to be checked'] }];
  });
}

/** Whether a client may get that: an answer to its request, 423 or 503 with a time, or no answer from a killed process. */
export function problemOf({ request, instance, at, status, retryAfter, error, body }: Reply, killedAt = Infinity) {
  if (error !== undefined) return at < killedAt ? `${request} of ${instance} got no answer: ${error}` : undefined;
  if (status !== undefined && status >= 200 && status < 300) return undefined;
  if ((status === 423 || status === 503) && Number(retryAfter) > 0) return undefined;
  return `${request} of ${instance} got ${status}, Retry-After ${retryAfter}: ${body}`;
}

/** From the moment before Redis stopped to the first lock after it answered again. */
export function withoutLocks({ outages, instances }: Story): Interval[] {
  const grants = eventsOf(instances, 'granted').map(({ at }) => at);
  return outages.map(({ from, to }) => {
    return { from, to: grants.reduce((first, at) => (at >= to && at < first ? at : first), Infinity) };
  });
}

function holders({ instances }: Story): Finding {
  const workers = instances.map(({ name, events, exit, killedAt }) => {
    const own = events.filter((event) => event.kind === 'granted' || event.kind === 'looked' || event.kind === 'lost');
    return { name, events: own, exit, killedAt };
  });
  const granted = eventsOf(instances, 'granted');
  const keys = [...new Set(granted.flatMap((event) => event.keys))];
  const phases = [{ name: 'start', from: -Infinity, to: Infinity }] as never;
  const found = overlaps({ keys, phases, workers, kinds: [], faults: [], writes: [], ghosts: [] });
  const lost = eventsOf(instances, 'lost').length;
  const remark = `${keys.length} keys, ${lost} locks lost`;
  return { seen: granted.length, problems: found.map(({ message }) => message), remark };
}

function ticks(story: Story): Finding {
  const { instances, epoch, ticks } = story;
  const [from, until] = ticks;
  const stalls = eventsOf(instances, 'stalled').map(({ from, at }) => ({ from, to: at }));
  const gaps = [...withoutLocks(story), ...story.slow, ...stalls];
  const runs = instances.flatMap(({ name, events, killedAt, toldAt }) =>
    events.flatMap((event) => (event.kind === 'tick' ? [{ ...event, instance: name, killedAt, toldAt }] : [])),
  );
  const endOf = (start: Omit<(typeof runs)[0], 'event'>): (typeof runs)[0] | undefined =>
    runs.find(
      ({ event, job, tick, attempt, instance }) =>
        event !== 'start' &&
        job === start.job &&
        tick === start.tick &&
        attempt === start.attempt &&
        instance === start.instance,
    );
  // Whether or not it ran a tick, the process may have held the lock of a job: to look whether there is one to run.
  const orphans = instances.flatMap(({ killedAt }) =>
    killedAt === undefined ? [] : [{ from: killedAt, to: killedAt + JOB_TTL }],
  );
  const totals = { seen: 0, again: 0, excused: 0, problems: [] as string[] };
  for (const job of new Set(runs.map((run) => run.job))) {
    const own = runs.filter((run) => run.job === job);
    const starts = own.filter(({ event }) => event === 'start');
    const mayMiss = (tick: number): boolean =>
      [...gaps, ...orphans].some((gap) => gap.from < tick - epoch + SECOND && gap.to > tick - epoch);
    const mayRepeat = ({ tick, attempt, instance }: RunLine): boolean => {
      const run = starts.find((one) => one.tick === tick && one.attempt === attempt && one.instance === instance)!;
      const end = endOf(run);
      const wasHandedOn = end?.event === 'aborted' && run.toldAt !== undefined && run.toldAt < end.at;
      const { killedAt = Infinity } = run;
      const until = (end?.at ?? killedAt) + SECOND;
      return wasHandedOn || killedAt < until || gaps.some((gap) => gap.from < until && gap.to > run.at);
    };
    const lines = own.filter((run): run is (typeof own)[0] & { event: 'start' | 'end' } => run.event !== 'aborted');
    const verdict = explain({ lines, kills: [], from, until, mayMiss, mayRepeat });
    totals.seen += verdict.counts.scheduled;
    totals.again += verdict.counts.again;
    totals.excused += verdict.counts.excused;
    totals.problems.push(...verdict.problems.map((problem) => `${job}: ${problem}`));
  }
  const remark = `${totals.excused} due while no process could lock, ${totals.again} run again`;
  return { seen: totals.seen, problems: totals.problems, remark };
}

function leaders({ instances }: Story): Finding {
  const lines = instances.flatMap(({ name, events }) =>
    events.flatMap((event) => (event.kind === 'election' ? [{ ...event.line, instance: name }] : [])),
  );
  const { counts, problems } = judgeElection({ lines, kills: [] });
  return { seen: counts.elections, problems };
}

function updates({ stock, ledger, confirmed }: Story): Finding {
  const { late, lost } = judgeLedger(stock, ledger, {});
  const sold = new Set(ledger.map(({ request }) => request));
  const problems = confirmed.sales.filter((request) => !sold.has(request)).map((request) => `sale ${request} is gone`);
  if (sold.size < ledger.length) problems.push(`${ledger.length - sold.size} sales were written twice`);
  if (late > 0) problems.push(`${late} late commits: see the order of the tokens in the table ledger`);
  if (lost > 0) problems.push(`${lost} lost updates: see what each row of the table ledger had read`);
  return { seen: ledger.length, problems };
}

function invoices({ confirmed, charged }: Story): Finding {
  const done = new Set(charged);
  const problems = confirmed.invoices.filter((id) => !done.has(id)).map((id) => `invoice ${id} was never charged`);
  return { seen: confirmed.invoices.length, problems };
}

function answers({ replies: all, instances, outages, slow }: Story): Finding {
  const stalls = eventsOf(instances, 'stalled').map(({ from, at }) => ({ from, to: at }));
  const gaps = [...outages, ...slow, ...stalls];
  // A lock that ended because the machine was too busy ends its request: with 500, or in the middle of the stream.
  const hasLost = ({ error, body, asked, at }: Reply): boolean =>
    (error === 'aborted' || body?.includes('"LOCK_LOST"') === true) &&
    gaps.some(({ from, to }) => from < at && to > asked);
  const replies = all.filter((reply) => !hasLost(reply));
  const killed = new Map(instances.map(({ name, killedAt }) => [name, killedAt]));
  const problems = replies.flatMap((reply) => problemOf(reply, killed.get(reply.instance)) ?? []);
  const count = (is: (reply: Reply) => boolean): number => replies.filter(is).length;
  const [locked, unavailable] = [423, 503].map((code) => count(({ status }) => status === code));
  const remark = `${locked} of 423, ${unavailable} of 503, ${count(({ error }) => error !== undefined)} cut off, ${all.length - replies.length} lost their lock`;
  return { seen: all.length, problems, remark };
}

function recovery(story: Story): Finding {
  const delays = withoutLocks(story).map(({ to }, i) => to - story.outages[i]!.to);
  const slow = delays.filter((delay) => delay > RECOVERS_WITHIN);
  const problems = slow.map((delay) => `the first lock came ${Math.round(delay)} ms after Redis answered again`);
  return { seen: delays.length, problems, remark: `after ${Math.round(Math.max(...delays))} ms at most` };
}

function unhandled({ instances }: Story): Finding {
  const problems = instances.flatMap(({ name, events }) =>
    eventsOf([{ events }], 'unhandled').map(({ message }) => `${name}: ${message}`),
  );
  return { seen: instances.length, problems };
}

function endings({ instances }: Story): Finding {
  const told = instances.filter(({ killedAt }) => killedAt === undefined);
  const problems = told.flatMap(({ name, events, exit }) => {
    const [closed] = eventsOf([{ events }], 'closed');
    const left = closed?.left.join(', ');
    if (exit !== 0 || !closed) return [`${name} ended with ${exit}; left after close(): ${left ?? 'it did not close'}`];
    return left ? [`${name} has left after close(): ${left}`] : [];
  });
  return { seen: told.length, problems };
}

function heap({ instances }: Story): Finding {
  const slopes = instances.flatMap(({ name, events }) => {
    const samples = eventsOf([{ events }], 'heap');
    const [from = 0, to = 0] = [samples[0]?.at, samples.at(-1)?.at];
    const second = samples.filter(({ at }) => at > (from + to) / 2);
    return to - from < LONG_LIFE ? [] : [{ name, slope: slopeOf(second.map(({ at, bytes }) => [at / SECOND, bytes])) }];
  });
  const problems = slopes
    .filter(({ slope }) => slope > STEEPEST)
    .map(({ name, slope }) => `the heap of ${name} grows by ${Math.round(slope)} bytes a second`);
  const steepest = Math.max(...slopes.map(({ slope }) => slope));
  // Shorter runs do not judge it, and say so.
  const remark =
    slopes.length > 0 ? `${Math.round(steepest)} bytes a second at most` : 'no process lived for long enough';
  return { seen: Math.max(1, slopes.length), problems, remark };
}

/** Of the line with the least squares. */
function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (of: 0 | 1): number => points.reduce((sum, point) => sum + point[of], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const sum = (of: (dx: number, dy: number) => number): number =>
    points.reduce((all, point) => all + of(point[0] - x, point[1] - y), 0);
  return sum((dx, dy) => dx * dy) / sum((dx) => dx * dx);
}

function eventsOf<Kind extends SoakEvent['kind']>(
  instances: readonly Pick<InstanceRecord, 'events'>[],
  kind: Kind,
): Extract<SoakEvent, { kind: Kind }>[] {
  return instances.flatMap(({ events }) =>
    events.filter((event): event is Extract<SoakEvent, { kind: Kind }> => event.kind === kind),
  );
}
