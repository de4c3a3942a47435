import { type Emit } from './checker.js';
import { type LeaseOptions, LeasesModel, type Request } from './leases.model.js';

export interface SharedOptions extends Omit<LeaseOptions, 'clients'> {
  /** The ttl of each shared and of each exclusive client, in ticks. */
  readonly shared: readonly number[];
  readonly exclusive: readonly number[];
  /** A master may reserve its key for a client, at most one master at a time. */
  readonly reservations?: boolean;
  /** Exclusive clients write writer keys, and no shared request is older. */
  readonly writerKeys?: boolean;
}

const NAMES = { shared: 'STU', exclusive: 'XYZ' };

/**
 * Section 11: shared and exclusive holders of one key. A string is an exclusive holder or a reservation of one; a set has
 * shared members, each with its end, and reservations.
 */
export class SharedModel extends LeasesModel {
  private readonly exclusive: readonly boolean[];

  constructor(private readonly settings: SharedOptions) {
    const clients = (['shared', 'exclusive'] as const).flatMap((kind) =>
      settings[kind].map((ttl, i) => ({ kind, ttl, name: NAMES[kind][i]! })),
    );
    super({ ...settings, clients });
    this.exclusive = clients.map(({ kind }) => kind === 'exclusive');
  }

  violation(state: Uint8Array): string | undefined {
    let believers = 0;
    let alone = 0;
    for (const [c, exclusive] of this.exclusive.entries()) {
      if (!this.believes(state, c)) continue;
      believers += 1;
      if (exclusive) alone += 1;
    }
    if (alone > 0 && believers > 1) return 'an exclusive holder and another one believe at the same time';
    for (let m = 0; m < this.options.masters; m += 1) {
      if (state[this.at.expiry(m)]! > this.lastEnd(state, m)) return 'a set outlives its last member';
    }
    return undefined;
  }

  override successors(state: Uint8Array, emit: Emit): void {
    super.successors(state, emit);
    for (let m = 0; m < this.options.masters; m += 1) {
      for (const c of this.exclusive.keys()) {
        if (this.settings.reservations) this.reserve(state, { c, m }, emit);
        if (this.settings.writerKeys) this.wait(state, { c, m }, emit);
      }
    }
  }

  /** Protocol 4.2 and 11.2. */
  protected grant(next: Uint8Array, { c, m }: Request): boolean {
    const reserved = next[this.at.reserved(m)]! - 1;
    if (this.exclusive[c]) {
      if (this.holder(next, m) >= 0 || this.hasMembers(next, m) || (reserved >= 0 && reserved !== c)) return false;
      next[this.at.end(c, m)] = this.ttl(c);
    } else {
      if (this.holder(next, m) >= 0 || (reserved >= 0 && this.exclusive[reserved])) return false;
      if (reserved !== c && next[this.at.writerKey(m)] !== 0) return false;
      this.add(next, { c, m });
    }
    if (reserved === c) next[this.at.reserved(m)] = 0;
    return true;
  }

  /** Protocol 6.2 and 11.3. An absent key or member is set again. */
  protected extend(next: Uint8Array, { c, m }: Request): boolean {
    const reserved = next[this.at.reserved(m)]! - 1;
    const holder = this.holder(next, m);
    if (this.exclusive[c]) {
      if (reserved >= 0 || (holder >= 0 && holder !== c)) return false;
      if (this.hasMembers(next, m)) {
        if (!this.weak.has('heal over a set')) return false;
        this.at.clear(next, m);
      }
      next[this.at.end(c, m)] = this.ttl(c);
      return true;
    }
    if (reserved >= 0 && this.exclusive[reserved]) return false;
    if (holder >= 0) {
      if (!this.weak.has('heal over a string')) return false;
      this.at.clear(next, m);
    }
    this.add(next, { c, m });
    return true;
  }

  /** Protocol 7.1 and 11.4. */
  protected remove(next: Uint8Array, { c, m }: Request): void {
    if (next[this.at.end(c, m)] === 0) return;
    if (this.weak.has('release by DEL')) {
      this.at.clear(next, m);
      return;
    }
    next[this.at.end(c, m)] = 0;
    if (this.exclusive[c]) return;
    const last = this.lastEnd(next, m);
    // Protocol 11.1
    if (this.weak.has('expiry that only grows') && last > 0) return;
    const at = this.at.expiry(m);
    next[at] = this.weak.has('expiry relative to the last request') ? Math.min(next[at]!, last) : last;
  }

  private add(next: Uint8Array, { c, m }: Request): void {
    next[this.at.end(c, m)] = this.ttl(c);
    const last = this.lastEnd(next, m);
    const at = this.at.expiry(m);
    if (this.weak.has('expiry relative to the last request')) next[at] = this.ttl(c);
    else if (this.weak.has('expiry that only grows')) next[at] = Math.max(next[at]!, last);
    else next[at] = last;
  }

  /** A waiter is woken at this master. */
  private reserve(state: Uint8Array, request: Request, emit: Emit): void {
    const { c, m } = request;
    if (this.active(state, c) || this.holder(state, m) >= 0) return;
    for (let other = 0; other < this.options.masters; other += 1) if (state[this.at.reserved(other)]! > 0) return;
    if (this.exclusive[c] && this.hasMembers(state, m)) return;
    const next = this.copy(state);
    next[this.at.reserved(m)] = c + 1;
    this.emit(next, 'reserve', emit, request);
  }

  /** Protocol 11.6: an exclusive client that is refused by a set. */
  private wait(state: Uint8Array, request: Request, emit: Emit): void {
    const { c, m } = request;
    if (!this.exclusive[c] || this.believes(state, c) || state[this.at.writerKey(m)] !== 0) return;
    let refused = false;
    for (let other = 0; other < this.options.masters; other += 1) refused ||= this.hasMembers(state, other);
    if (!refused) return;
    const next = this.copy(state);
    next[this.at.writerKey(m)] = c + 1;
    this.emit(next, 'wait', emit, request);
  }

  protected override held(next: Uint8Array, c: number): void {
    for (let m = 0; m < this.options.masters; m += 1) {
      if (next[this.at.writerKey(m)] === c + 1) next[this.at.writerKey(m)] = 0;
    }
  }

  private holder(state: Uint8Array, m: number): number {
    for (const [c, exclusive] of this.exclusive.entries()) {
      if (exclusive && state[this.at.end(c, m)]! > 0) return c;
    }
    return -1;
  }

  private hasMembers(state: Uint8Array, m: number): boolean {
    const reserved = state[this.at.reserved(m)]! - 1;
    return state[this.at.expiry(m)]! > 0 || (reserved >= 0 && !this.exclusive[reserved]);
  }

  private lastEnd(state: Uint8Array, m: number): number {
    let last = 0;
    for (const [c, exclusive] of this.exclusive.entries()) {
      if (!exclusive) last = Math.max(last, state[this.at.end(c, m)]!);
    }
    return last;
  }

  protected showKey(state: Uint8Array, m: number): string {
    const { clients } = this.options;
    const holds = clients.flatMap(({ name }, c) => {
      const end = state[this.at.end(c, m)]!;
      return end > 0 ? [`${name}/${end}`] : [];
    });
    const reserved = state[this.at.reserved(m)]! - 1;
    if (reserved >= 0) holds.push(`for ${clients[reserved]!.name}`);
    const writer = clients[state[this.at.writerKey(m)]! - 1];
    const want = writer ? ` writer ${writer.name}` : '';
    const expiry = state[this.at.expiry(m)]!;
    if (expiry > 0 || (reserved >= 0 && !this.exclusive[reserved])) return `{${holds.join(' ')}}/${expiry}${want}`;
    return `${holds.length > 0 ? holds.join(' ') : '-'}${want}`;
  }
}
