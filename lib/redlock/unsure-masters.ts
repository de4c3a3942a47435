import type { QuorumCall } from './quorum.js';
import { HEALED, isSettled, type Reply, type RoundRequest, type Server } from './server.js';

interface Unsure {
  open: number;
  isAbsent: boolean;
}

// The masters that may have lacked the keys since the last round that counted began: their keys were set again, or may still
// be. If such a master says that it has the keys, that does not show that it has had them all the time. Of three masters, a
// and b extend the lock, and c is about to get its key again. Then a loses its key, another holder takes a and c, works and
// releases them, and c gets the key. With the next extension, b and c have it.
// Protocol 6.3
export class UnsureMasters {
  private readonly known = new Map<Server, Unsure>();
  private readonly heals = new Map<Server, number>();

  has(master: Server): boolean {
    return this.known.has(master);
  }

  timesSetAgain(master: Server): number {
    return this.heals.get(master) ?? 0;
  }

  // A request that sets its keys may still take effect.
  mayBeSet(master: Server): boolean {
    return (this.known.get(master)?.open ?? 0) > 0;
  }

  // Sets the keys again.
  heal(master: Server, request: RoundRequest): void {
    this.heals.set(master, this.timesSetAgain(master) + 1);
    this.add(master, 1);
    master.ask(request, (answer) => this.noteSet(master, answer));
  }

  // To the acquisition, after its decision. Between that and an answer that came later than in time, another holder may have
  // come and gone.
  noteLate(master: Server, answer: Reply, isLate: boolean): void {
    if (this.has(master)) this.noteSet(master, answer);
    else if (!isSettled(answer)) this.add(master, 1);
    else if (isLate && answer.kind === 'granted') this.add(master, 0);
  }

  // `requests`: those that may set its keys, and that it has not answered.
  add(master: Server, requests: number): void {
    const open = requests + (this.known.get(master)?.open ?? 0);
    this.known.set(master, { open, isAbsent: requests > 0 });
  }

  // One of these requests. Without an answer, it may come at any time, over a connection that was replaced.
  private noteSet(master: Server, answer: Reply): void {
    const one = this.known.get(master);
    if (!one || !isSettled(answer)) return;
    one.open = Math.max(0, one.open - 1);
    if (answer.kind === 'granted') one.isAbsent = false;
  }

  // The answer to an extension. Keys that were absent, and are there now, have been set by one of these requests.
  noteSeen(master: Server, { kind }: Reply): void {
    const one = this.known.get(master);
    if (!one) return;
    if (kind === 'granted' && one.isAbsent) one.open = Math.max(0, one.open - 1);
    if (kind === 'granted') one.isAbsent = false;
    if (kind === 'gone') one.isAbsent = true;
  }

  // What the answer of the master counts for.
  counted(master: Server, answer: Reply): Reply {
    return answer.kind === 'granted' && this.has(master) ? HEALED : answer;
  }

  // Of these, a round that begins now makes sure, if it is granted.
  get settled(): readonly Server[] {
    return [...this.known].flatMap(([master, { open }]) => (open === 0 ? [master] : []));
  }

  forget(masters: readonly Server[]): void {
    for (const master of masters) if (!this.mayBeSet(master)) this.known.delete(master);
  }
}

// Whether an acquisition may still set the keys there: the connection broke or, `withMissing`, it was not answered.
export function isOpenAt(master: Server, quorumCall: QuorumCall, withMissing: boolean): boolean {
  const answer = quorumCall.answerOf(master);
  return answer ? !isSettled(answer) : withMissing && quorumCall.hasAsked(master);
}
