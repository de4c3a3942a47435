// Where the models of leases keep what, and the canonical form of their states.
import { decrement, sortRecords, swap } from './states.js';

/** Fields of a master before those of its clients, of a master for one client, and of a client. */
const MASTER = 4;
const [CELL, CLIENT] = [2, 3];

export class LeaseLayout {
  readonly losses: number;
  readonly width: number;
  private readonly masterWidth: number;
  private readonly clients: number;
  private readonly weights: Uint32Array;

  /** When the key expires, where that is not the end of its one holder. */
  readonly expiry = (m: number): number => m * this.masterWidth;
  readonly quarantine = (m: number): number => m * this.masterWidth + 1;
  /** For which client the key is reserved, plus one. */
  readonly reserved = (m: number): number => m * this.masterWidth + 2;
  /** Whose writer key is on this master, plus one. */
  readonly writerKey = (m: number): number => m * this.masterWidth + 3;
  /** What a master has for one client: until when it holds, and whether the answer counts for the round that runs. */
  readonly end = (c: number, m: number): number => m * this.masterWidth + MASTER + c * CELL;
  readonly counted = (c: number, m: number): number => this.end(c, m) + 1;
  /** Ticks for which a client still believes in its lock, and ticks of validity that its round can still yield. */
  readonly belief = (c: number): number => this.masters * this.masterWidth + c * CLIENT;
  readonly round = (c: number): number => this.belief(c) + 1;
  readonly choice = (c: number): number => this.belief(c) + 2;

  /** The kinds of the clients: those of one kind are alike. */
  constructor(
    private readonly masters: number,
    private readonly kinds: readonly string[],
  ) {
    this.clients = kinds.length;
    this.masterWidth = MASTER + CELL * this.clients;
    this.losses = this.belief(this.clients);
    this.width = this.losses + 1;
    this.weights = new Uint32Array(this.clients);
  }

  countedBy(state: Uint8Array, c: number): number {
    let count = 0;
    for (let m = 0; m < this.masters; m += 1) count += state[this.counted(c, m)]!;
    return count;
  }

  hasKey(state: Uint8Array, c: number): boolean {
    for (let m = 0; m < this.masters; m += 1) if (state[this.end(c, m)]! > 0) return true;
    return false;
  }

  /** Removes all keys of a master, and what it knows of those that wait. */
  clear(next: Uint8Array, m: number): void {
    for (const at of [this.expiry(m), this.reserved(m), this.writerKey(m)]) next[at] = 0;
    for (let c = 0; c < this.clients; c += 1) next[this.end(c, m)] = 0;
  }

  /** One tick on a master. Reservations and writer keys are shorter than a tick. */
  age(next: Uint8Array, m: number): void {
    decrement(next, this.quarantine(m));
    next[this.reserved(m)] = 0;
    next[this.writerKey(m)] = 0;
    for (let c = 0; c < this.clients; c += 1) decrement(next, this.end(c, m));
    const expires = next[this.expiry(m)] === 1;
    if (decrement(next, this.expiry(m)) > 0 || !expires) return;
    for (let c = 0; c < this.clients; c += 1) next[this.end(c, m)] = 0;
  }

  /** Puts like clients and masters in an order. States that are equal but for the order are mostly, not always, merged. */
  sort(state: Uint8Array): void {
    for (let c = 0; c < this.clients; c += 1) this.weights[c] = this.weight(state, c);
    for (let end = this.clients - 1; end > 0; end -= 1) {
      for (let c = 0; c < end; c += 1) {
        if (this.kinds[c] === this.kinds[c + 1] && this.weights[c]! > this.weights[c + 1]!) this.swapClients(state, c);
      }
    }
    sortRecords(state, { width: this.masterWidth, count: this.masters });
  }

  /** A number that does not depend on the order of masters. */
  private weight(state: Uint8Array, c: number): number {
    let cells = 0;
    for (let m = 0; m < this.masters; m += 1) {
      const cell = 1 + state[this.end(c, m)]! * 2 + state[this.counted(c, m)]!;
      cells += cell * cell * cell;
    }
    return (state[this.belief(c)]! * 8 + state[this.round(c)]!) * 65_536 + cells;
  }

  private swapClients(state: Uint8Array, c: number): void {
    const { weights } = this;
    [weights[c], weights[c + 1]] = [weights[c + 1]!, weights[c]!];
    swap(state, this.belief(c), this.belief(c + 1), CLIENT);
    for (let m = 0; m < this.masters; m += 1) {
      swap(state, this.end(c, m), this.end(c + 1, m), CELL);
      for (const at of [this.reserved(m), this.writerKey(m)]) {
        if (state[at] === c + 1) state[at] = c + 2;
        else if (state[at] === c + 2) state[at] = c + 1;
      }
    }
  }
}
