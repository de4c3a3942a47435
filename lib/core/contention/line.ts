import type { Clock } from '../clock.js';

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
