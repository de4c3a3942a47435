import { type LeaseOptions, LeasesModel, type Request } from './leases.model.js';

export interface PermitsOptions extends Omit<LeaseOptions, 'clients'> {
  readonly permits: number;
  /** The ttl of each client, in ticks. */
  readonly clients: readonly number[];
}

/** Protocol 11.10: `c` permits are `c` ordinary locks. An attempt may choose any slot. */
export class PermitsModel extends LeasesModel {
  protected override readonly choices: number;
  private readonly counter: boolean;

  constructor(private readonly settings: PermitsOptions) {
    const clients = settings.clients.map((ttl, c) => ({ name: 'ABCD'[c]!, kind: 'permit', ttl }));
    super({ ...settings, clients });
    this.counter = this.weak.has('a counter of two on each master');
    this.choices = this.counter ? 1 : settings.permits;
  }

  violation(state: Uint8Array): string | undefined {
    let believers = 0;
    let slots = 0;
    let shared = false;
    for (let c = 0; c < this.options.clients.length; c += 1) {
      if (!this.believes(state, c)) continue;
      believers += 1;
      const slot = 1 << state[this.at.choice(c)]!;
      shared ||= (slots & slot) !== 0;
      slots |= slot;
    }
    const { permits } = this.settings;
    if (believers > permits) return `${believers} clients believe that they hold one of ${permits} permits`;
    return shared && !this.counter ? 'two clients believe that they hold one slot' : undefined;
  }

  protected grant(next: Uint8Array, { c, m, choice }: Required<Request>): boolean {
    if (this.isTaken(next, { c, m, choice })) return false;
    next[this.at.end(c, m)] = this.ttl(c);
    return true;
  }

  protected extend(next: Uint8Array, { c, m }: Request): boolean {
    return this.grant(next, { c, m, choice: next[this.at.choice(c)]! });
  }

  protected remove(next: Uint8Array, { c, m }: Request): void {
    next[this.at.end(c, m)] = 0;
  }

  // Protocol 11.10
  private isTaken(state: Uint8Array, { c, m, choice }: Required<Request>): boolean {
    let others = 0;
    for (let other = 0; other < this.options.clients.length; other += 1) {
      if (other !== c && state[this.at.end(other, m)]! > 0 && state[this.at.choice(other)] === choice) others += 1;
    }
    return others >= (this.counter ? this.settings.permits : 1);
  }

  /** A client without a key has no slot, and two slots are alike. */
  protected override settle(next: Uint8Array): void {
    super.settle(next);
    let first = -1;
    for (let c = 0; c < this.options.clients.length; c += 1) {
      const at = this.at.choice(c);
      const used = this.active(next, c) || this.at.hasKey(next, c);
      if (!used) next[at] = 0;
      else if (this.settings.sorted && this.choices === 2) {
        if (first < 0) first = next[at]!;
        if (first === 1) next[at] = 1 - next[at]!;
      }
    }
  }

  protected showKey(state: Uint8Array, m: number): string {
    const keys = this.options.clients.flatMap(({ name }, c) => {
      const end = state[this.at.end(c, m)]!;
      const slot = this.counter ? '' : ` in ${state[this.at.choice(c)]!}`;
      return end > 0 ? [`${name}/${end}${slot}`] : [];
    });
    return keys.length > 0 ? keys.join(' ') : '-';
  }
}
