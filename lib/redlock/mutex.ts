import { elapsedBetween, type Instant } from './clock.js';
import type { MasterReport } from './errors.js';
import { ExtensionReplies } from './loss.js';
import type { Primitive } from './primitive.js';
import { QuorumCall, quorumOf, type SendRequest } from './quorum.js';
import { type Extension, type First, type Plan, type Round, type Rules, type SentRound, withdraw } from './round.js';
import { isSettled, type Reply, type RoundRequest, type Server } from './server.js';
import { isOpenAt, UnsureMasters } from './unsure-masters.js';
import { masterTimeoutFor, validityOf } from './validity.js';

const NEVER: Instant = Object.freeze({ monotonic: 0, wall: 0 });
const NONE: readonly Server[] = Object.freeze([]);

// An attempt becomes a lock when it is granted and counts, unless it is given up before.
type Phase = 'attempt' | 'given up' | 'lock' | 'released';

// The keys of one token on the masters: the three rounds of the algorithm (acquire, extend, release), and how long
// their result can be relied on.
// @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
export class Mutex {
  // As if the monotonic clock had missed nothing since the start of the round.
  since: Instant = NEVER;
  // Of the acquisition. Its process may have passed the lock on since.
  heldSince: Instant = NEVER;
  // Milliseconds from `since`.
  private validity = 0;
  // Masters on which there may be something to release.
  private reached: readonly Server[] = NONE;
  // The last round, until every master has answered it.
  private sent: SentRound | undefined;
  private phase: Phase = 'attempt';
  // Longest ttl in milliseconds that was requested: until it ends, there may be something to release.
  private life = 0;
  // Present from an extension until one succeeds.
  private replies: ExtensionReplies | undefined;
  // Absent for most locks.
  unsure: UnsureMasters | undefined;
  // After the last extension, to the masters from which the keys were gone.
  private heal: RoundRequest | undefined;
  private last: Server | undefined;

  constructor(
    private readonly rules: Rules,
    readonly primitive: Primitive,
    // Unique for each attempt.
    readonly token: string,
  ) {}

  get remaining(): number {
    return this.remainingAt(this.rules.clock.read());
  }

  get allHaveAnswered(): boolean {
    return this.sent === undefined;
  }

  // For a caller that has read the clock already.
  remainingAt(now: Instant): number {
    return this.phase === 'released' ? 0 : this.validity - elapsedBetween(this.since, now); // @mutant elapsed-ignored
  }

  // Since the last extension that succeeded; empty if none was tried since.
  get lastReplies(): readonly MasterReport[] {
    return this.replies?.last ?? [];
  }

  // It has succeeded if `remaining` is positive afterwards.
  acquire(ttl: number, plan: Plan): Promise<QuorumCall> {
    const { since, timeout, first, last } = plan;
    const { masters } = this.rules;
    this.last = last;
    if (first && !first.together) return this.acquireThrough(first, ttl, plan);
    const request = this.primitive.acquire(this.token, ttl, since);
    if (!first) return this.ask({ masters, request, timeout, countsFrom: since, now: since });
    // The first one first: this gives the previous holder's release a little more time to reach the others.
    const inOrder = [first.master, ...masters.filter((master) => master !== first.master)];
    const requestToFirst = first.request(this.token);
    const send = first.together?.(requestToFirst, request);
    return this.ask({ masters: inOrder, request, timeout, countsFrom: since, send, requestToFirst });
  }

  // It has succeeded if `extended` is true. A grant that arrives after the end of the old validity does not count: another
  // holder may have come and gone.
  // Protocol 6.3
  async extend(ttl: number): Promise<Extension> {
    const { clock, timing } = this.rules;
    const since = clock.read();
    // A shorter ttl may take effect on the masters even if their answers never arrive.
    if (validityOf(timing, ttl) < this.remaining) this.countFrom(since, ttl);
    const timeout = Math.min(masterTimeoutFor(timing, ttl), Math.max(this.remaining, 0));
    const settled = this.unsure?.settled ?? [];
    const quorumCall = await this.renew(ttl, timeout);
    const extended = quorumCall.outcome === 'granted' && this.remaining > 0;
    if (extended) {
      this.countFrom(since, ttl);
      this.replies = undefined;
      this.unsure?.forget(settled);
    }
    if (this.mayHeal && !quorumCall.isLost) this.healAll(quorumCall, ttl);
    return { extended, quorumCall };
  }

  // On every master that a request for the keys may have reached. Resolves when a quorum has answered, or after the master
  // timeout; never rejects.
  // `now`: a reading of this turn of the event loop, if there is one. `lost` is called before that if the answers show that
  // another holder may have had the keys.
  release(keepFor: number, now?: Instant, lost?: (quorumCall: QuorumCall) => void): Promise<void> {
    this.phase = 'released';
    this.withdraw();
    const { reached, primitive, token } = this;
    if (reached.length === 0) return Promise.resolve(); // @mutant nothing-released
    const request = primitive.release(token, keepFor, Math.max(keepFor, this.life));
    const { masters: all, clock, timing, releases } = this.rules;
    // Protocol 7.6
    const lossAt = lost && quorumOf(all.length);
    // Protocol 7.1
    // One that never had the keys says so: another holder may have them there. It need not learn of the release.
    const question = lost && reached.length < all.length ? primitive.release(token, keepFor, 0) : undefined;
    const send: SendRequest = (master, reply) =>
      master.ask(
        question && !reached.includes(master) ? question : request,
        this.unsure ? (answer) => reply(this.unsure?.counted(master, answer) ?? answer) : reply,
      );
    const masters = lost ? all : reached;
    releases.begin();
    return new Promise((resolve) => {
      const conclude = (quorumCall: QuorumCall): void => {
        releases.end();
        if (quorumCall.isLost) lost?.(quorumCall);
        resolve();
      };
      new QuorumCall({ masters, last: this.last, send, clock, timeout: timing.masterTimeout, conclude, lossAt, now });
    });
  }

  // An attempt begins no other round after it.
  giveUp(): void {
    if (this.phase === 'attempt') this.phase = 'given up';
    if (this.sent?.quorumCall?.isOpen) this.sent.quorumCall.giveUp();
  }

  private async acquireThrough(first: First, ttl: number, { since, timeout }: Plan): Promise<QuorumCall> {
    const { master: one, request, granted } = first;
    const alone = await this.ask({ masters: [one], request: request(this.token), timeout });
    const [answer] = alone.answered;
    if (answer?.kind === 'granted') granted?.(answer);
    if (this.phase === 'given up' || alone.outcome !== 'granted' || !answer) return alone;
    const toOthers = this.primitive.acquire(this.token, ttl, since);
    // Protocol 5.6
    const send: SendRequest = (master, reply) => (master === one ? reply(answer) : master.ask(toOthers, reply));
    return this.ask({ masters: this.rules.masters, request: toOthers, timeout, countsFrom: since, send });
  }

  private renew(ttl: number, timeout: number): Promise<QuorumCall> {
    const { rules, primitive, token } = this;
    if (this.heal) this.heal.withdrawn = true;
    this.heal = undefined;
    const request = primitive.extend(token, ttl, rules.clock.read(), false);
    const send: SendRequest = (master, reply) =>
      master.ask(request, (answer) => {
        // It has come after the others.
        const isLate = answer.kind === 'gone' && this.sent?.request === request;
        if (isLate && this.heal && this.mayHeal) this.known.heal(master, this.heal);
        this.unsure?.noteSeen(master, answer);
        reply(this.unsure?.counted(master, answer) ?? answer);
      });
    return this.ask({ masters: rules.masters, request, timeout, send, isExtension: true });
  }

  // A heal is no vote, and comes after the extension has counted: no extension sets keys, however late it arrives.
  // Protocol 6.2
  private healAll(quorumCall: QuorumCall, ttl: number): void {
    const { masters, clock } = this.rules;
    this.heal = this.primitive.extend(this.token, ttl, clock.read(), true);
    for (const master of masters) {
      if (quorumCall.answerOf(master)?.kind === 'gone') this.known.heal(master, this.heal);
    }
  }

  // No key is set after its release.
  private get mayHeal(): boolean {
    return this.phase === 'lock' && this.remaining > 0;
  }

  private get known(): UnsureMasters {
    return (this.unsure ??= new UnsureMasters());
  }

  private ask(round: Round): Promise<QuorumCall> {
    const { masters, request, timeout, countsFrom, requestToFirst, isExtension, now } = round;
    const send: SendRequest = round.send ?? ((master, reply) => master.ask(request, reply));
    const { clock } = this.rules;
    // Unsent requests of the previous round are obsolete.
    if (this.sent) withdraw(this.sent);
    const before = isExtension && !this.sent?.isExtension ? this.sent?.quorumCall : undefined;
    if (before) this.noteOpen(before, true);
    const sent: SentRound = { request, requestToFirst, isExtension, quorumCall: undefined };
    this.sent = sent;
    this.life = Math.max(this.life, request.ttl);
    const conclude = (quorumCall: QuorumCall): void => {
      // A request without an answer counts as one that may have taken effect: no later answer can add a master.
      this.noteReached(quorumCall);
      // Without `countsFrom`, the first master alone has granted.
      if (isExtension || quorumCall.outcome !== 'granted' || !countsFrom) return;
      if (this.phase === 'attempt') this.phase = 'lock';
      this.heldSince = countsFrom;
      this.countFrom(countsFrom, request.ttl);
      this.noteOpen(quorumCall, false);
    };
    // Every master has answered: no request is left to withdraw.
    const settle = (): void => {
      if (this.sent === sent) this.sent = undefined;
    };
    const late =
      countsFrom &&
      ((master: Server, answer: Reply): void =>
        this.noteLate(master, answer, elapsedBetween(countsFrom, clock.read()) > timeout));
    const lossAt = isExtension ? quorumOf(masters.length) : undefined;
    const quorumCall = new QuorumCall({ masters, send, clock, timeout, conclude, late, settle, lossAt, now });
    sent.quorumCall = quorumCall;
    if (isExtension) (this.replies ??= new ExtensionReplies()).begin(quorumCall);
    return quorumCall.decided;
  }

  private noteOpen(quorumCall: QuorumCall, withMissing: boolean): void {
    for (const master of this.rules.masters) if (isOpenAt(master, quorumCall, withMissing)) this.known.add(master, 1);
  }

  // To the acquisition, after its decision. An answer that came later than in time shows nothing of the time in between.
  private noteLate(master: Server, answer: Reply, isLate: boolean): void {
    if (this.phase !== 'lock') return;
    const isUnsure = !isSettled(answer) || (isLate && answer.kind === 'granted');
    if (this.unsure || isUnsure) this.known.noteLate(master, answer, isLate);
  }

  private countFrom(since: Instant, ttl: number): void {
    // Protocol 3.2 and 4.4
    this.since = since; // @mutant start-time-taken-after-replies
    this.validity = validityOf(this.rules.timing, ttl);
  }

  // Every request that was sent is followed by its release, and no other request may be sent after that.
  // Protocol 4.5 and 7.3
  private withdraw(): void {
    if (this.heal) this.heal.withdrawn = true;
    if (!this.sent) return;
    withdraw(this.sent); // @mutant sent-again-after-its-release
    if (this.sent.quorumCall?.isOpen) this.noteReached(this.sent.quorumCall);
  }

  private noteReached({ reached }: QuorumCall): void {
    if (this.reached.length === 0) this.reached = reached;
    else if (this.reached.length < this.rules.masters.length)
      this.reached = [...new Set([...this.reached, ...reached])];
  }
}
