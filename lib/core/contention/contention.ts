import type { Clock } from '../clock.js';

// At most this many different patterns, however many resources there are.
const MAX_PATTERNS = 100;

const LONGEST_PATTERN = 64;

// For all further patterns, and for resources for which the function throws or returns an empty string.
const OTHER = 'other';

// Names for kinds of resources, few enough to be attributes of metrics.
export class ResourcePatterns {
  private readonly known = new Set<string>();

  constructor(private readonly patternOf: (resource: string) => string = beginningOf) {}

  of(resources: readonly string[]): string {
    const pattern = patternOf(resources, this.patternOf);
    if (this.known.has(pattern)) return pattern;
    if (this.known.size >= MAX_PATTERNS) return OTHER;
    this.known.add(pattern);
    return pattern;
  }
}

function patternOf(resources: readonly string[], nameOf: (resource: string) => string = beginningOf): string {
  try {
    const [first = '', ...others] = resources.map((resource) => nameOf(resource));
    const all = others.length === 0 ? first : [...new Set([first, ...others])].sort().join(',');
    return all.slice(0, LONGEST_PATTERN) || OTHER;
  } catch {
    // The function is user code, and its error must not fail the acquisition.
    return OTHER;
  }
}

// A name without a colon may be one of many, so its pattern is `*`.
export function beginningOf(resource: string): string {
  return `${resource.slice(0, resource.indexOf(':') + 1)}*`;
}

// Of one pattern. Names of further ones are not kept.
const MAX_HOLDERS = 100;
// Bounds of the buckets of a histogram are this factor apart, as a power of two.
const BUCKETS_PER_DOUBLING = 8;

/**
 * How long calls of this instance have waited for one kind of resource, and for which holders, since the instance was
 * started. A wait is counted when it ends. All times are in milliseconds.
 */
export interface ResourceContention {
  /** The kind of resource, as in metrics: `order:*` for `order:42`; `other`: beyond a hundred, those that cost least. */
  readonly pattern: string;
  /**
   * Acquisitions that did not get the lock at once: they waited or, without a waiting budget, were refused. All others are
   * not counted.
   */
  readonly acquisitions: number;
  /** How many of them waited. */
  readonly waited: number;
  /** How long these waited. */
  readonly milliseconds: WaitedTime;
  /** The instances that were named as holders while calls waited: this one, too. The longest time first. */
  readonly holders: readonly BlamedHolder[];
  /**
   * The rest of `milliseconds.sum`: no holder was named, because there are several (shared locks, permits), because the
   * masters named different ones, or because too few masters voted.
   */
  readonly unnamed: number;
}

/** The time that acquisitions waited, in milliseconds. */
export interface WaitedTime {
  /** The sum over all acquisitions. */
  readonly sum: number;
  /** The longest wait. */
  readonly max: number;
  /** 99 of 100 waits were not longer than this, which is up to a tenth too much. */
  readonly p99: number;
}

/** An instance that calls have waited for. */
export interface BlamedHolder {
  /** The `instance` of the holder. */
  readonly instance: string;
  /** How long calls waited while it was named, in milliseconds. */
  readonly milliseconds: number;
}

class Waits {
  private acquisitions = 0;
  private waited = 0;
  sum = 0;
  private max = 0;
  // How many waits were in each bucket.
  private readonly histogram = new Map<number, number>();
  private readonly holders = new Map<string, number>();
  private unnamed = 0;

  add(blamed: Blamed | undefined): void {
    this.acquisitions++;
    if (!blamed) return;
    let taken = 0;
    for (const [instance, milliseconds] of blamed) {
      taken += milliseconds;
      this.blame(instance, milliseconds);
    }
    this.waited++;
    this.sum += taken;
    this.max = Math.max(this.max, taken);
    this.countIn(Math.ceil(Math.log2(taken) * BUCKETS_PER_DOUBLING), 1);
  }

  addAll({ acquisitions, waited, sum, max, histogram, holders, unnamed }: Waits): void {
    this.acquisitions += acquisitions;
    this.waited += waited;
    this.sum += sum;
    this.max = Math.max(this.max, max);
    for (const [bucket, count] of histogram) this.countIn(bucket, count);
    for (const [instance, milliseconds] of holders) this.blame(instance, milliseconds);
    this.unnamed += unnamed;
  }

  report(pattern: string): ResourceContention {
    const { acquisitions, waited, sum, max, unnamed } = this;
    const holders = [...this.holders].map(([instance, milliseconds]) => ({ instance, milliseconds }));
    holders.sort((one, other) => other.milliseconds - one.milliseconds);
    return { pattern, acquisitions, waited, milliseconds: { sum, max, p99: this.p99 }, holders, unnamed };
  }

  private blame(instance: string | undefined, milliseconds: number): void {
    const before = instance === undefined ? undefined : this.holders.get(instance);
    if (instance === undefined || (before === undefined && this.holders.size >= MAX_HOLDERS)) {
      this.unnamed += milliseconds;
    } else this.holders.set(instance, (before ?? 0) + milliseconds);
  }

  private countIn(bucket: number, count: number): void {
    this.histogram.set(bucket, (this.histogram.get(bucket) ?? 0) + count);
  }

  private get p99(): number {
    let left = Math.ceil(this.waited * 0.99);
    for (const [bucket, count] of [...this.histogram].sort(([one], [other]) => one - other)) {
      left -= count;
      if (left <= 0) return Math.min(this.max, 2 ** (bucket / BUCKETS_PER_DOUBLING));
    }
    return 0;
  }
}

export class Contention {
  private readonly waits = new Map<string, Waits>();
  // Of the kinds that have cost the least time, beyond a hundred.
  private readonly other = new Waits();

  // Without `blamed`, the acquisition was refused without a wait.
  add(resources: readonly string[], blamed: Blamed | undefined): void {
    const pattern = patternOf(resources);
    const waits = this.waits.get(pattern) ?? this.begin(pattern);
    waits.add(blamed);
  }

  private begin(pattern: string): Waits {
    if (this.waits.size >= MAX_PATTERNS) this.forgetLeast();
    const waits = new Waits();
    this.waits.set(pattern, waits);
    return waits;
  }

  private forgetLeast(): void {
    const [least] = [...this.waits].sort(([, one], [, other]) => one.sum - other.sum);
    if (!least) return;
    this.waits.delete(least[0]);
    this.other.addAll(least[1]);
  }

  // Those that cost the most time first.
  get report(): readonly ResourceContention[] {
    const rows = [...this.waits].map(([pattern, waits]) => waits.report(pattern));
    const other = this.other.report(OTHER);
    if (other.acquisitions > 0) rows.push(other);
    return rows.sort((one, other) => other.milliseconds.sum - one.milliseconds.sum);
  }
}

// Milliseconds, by the instance that was named as the holder; `undefined` if none was.
export type Blamed = ReadonlyMap<string | undefined, number>;

// The holder of one resource, from the first call of this process that waits for it to the last.
class Line {
  waiting = 0;
  private since: number;
  private readonly totals = new Map<string | undefined, number>();

  constructor(
    private readonly clock: Clock,
    private holder: string | undefined,
  ) {
    this.since = clock.read().monotonic;
  }

  get isNamed(): boolean {
    return this.holder !== undefined;
  }

  note(holder: string | undefined): void {
    this.count();
    this.holder = holder;
  }

  get blamed(): Blamed {
    this.count();
    return new Map(this.totals);
  }

  private count(): void {
    const now = this.clock.read().monotonic;
    this.totals.set(this.holder, (this.totals.get(this.holder) ?? 0) + now - this.since);
    this.since = now;
  }
}

// The lines of those resources for which calls wait.
export class Lines {
  private readonly lines = new Map<string, Line>();

  constructor(private readonly clock: Clock) {}

  // The holder from now on; `undefined` if none is known, as while the first call asks.
  note(resources: readonly string[], holder: string | undefined): void {
    if (this.lines.size === 0) return;
    for (const resource of resources) this.lines.get(resource)?.note(holder);
  }

  // Begins a wait; the result ends it. `holderOf` is asked for resources for which no call waits yet.
  wait(resources: readonly string[], holderOf: (resource: string) => string | undefined): () => Blamed {
    const lines = resources.map((resource) => {
      const line = this.lines.get(resource) ?? new Line(this.clock, holderOf(resource));
      this.lines.set(resource, line);
      line.waiting++;
      return line;
    });
    const line = lines.find(({ isNamed }) => isNamed) ?? lines[0];
    const before = line?.blamed;
    return () => {
      lines.forEach((each, index) => {
        if (--each.waiting === 0) this.lines.delete(resources[index] as string);
      });
      return new Map([...(line?.blamed ?? [])].map(([holder, total]) => [holder, total - (before?.get(holder) ?? 0)]));
    };
  }
}
