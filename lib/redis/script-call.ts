import type { Instant } from '../core/clock.js';
import type { MasterReply, Quarantine } from '../core/master.interface.js';
import type { Connection } from './connection.js';
import type { DataRecord } from './data-record.js';
import { isReply, isTime, LOST_DATA, replyFrom } from './replies.js';
import { isCompared, isVote, type ServerRequest } from './request-encoding.js';
import { type PendingRequest, tokensOf } from './request-queue.js';
import { UNMARKED } from './scripts/constants.js';

// Requests are sent again so many times, at most, when the identity of their server is in doubt once more.
const MAX_REPETITIONS = 3;

// Returns the answer to a request that is not to be sent again.
export type Verdict = (request: ServerRequest) => MasterReply | undefined;

// One script with the requests of one turn of the event loop: which of its answers count, and which requests are sent
// again.
export abstract class ScriptCall<Data extends DataRecord> {
  // That the script compares; empty if it compares none.
  protected readonly history: string;
  private readonly epoch: number;

  constructor(
    private readonly peer: Pick<Connection, 'failure'>,
    readonly asked: readonly PendingRequest[],
    protected readonly sent: Instant,
    protected readonly data: Data | undefined,
    // How often the requests were sent before.
    protected readonly repetitions: number,
  ) {
    this.history = data?.historyToCompare(sent) ?? '';
    this.epoch = data?.epoch ?? 0;
  }

  // Of the votes in the reply.
  protected abstract quarantineAfter(values: readonly unknown[], isMarked: boolean): Quarantine | undefined;
  // Why a request has to be sent again, whatever its answer.
  protected abstract doubtAbout(one: PendingRequest, value: unknown): MasterReply | undefined;
  // Of a grant. `undefined` if it is not yet known whether the grant counts: the answer is given later.
  protected abstract confirmed(one: PendingRequest, grant: MasterReply): MasterReply | undefined;
  // Finds out which data is there, and then calls `goOn`.
  protected abstract examine(why: MasterReply, goOn: (verdict: Verdict) => void): void;
  protected abstract sendAgain(asked: readonly PendingRequest[]): void;

  // The data is still that which the requests were meant for.
  protected get isCurrent(): boolean {
    return this.epoch === (this.data?.epoch ?? 0);
  }

  // What stands between may answer anything.
  receive(values: unknown): void {
    const { asked } = this;
    if (Array.isArray(values) && values.length >= asked.length && values.slice(asked.length).every(isTime)) {
      this.read(values);
    } else for (const one of asked) one.reply({ kind: 'refused', code: 'ERR', reason: 'unexpected reply to a script' });
  }

  private read(values: readonly unknown[]): void {
    // Only the script of such a request has looked at the marker.
    const isMarked = !values.includes(UNMARKED) && this.asked.some(({ request }) => isCompared(request));
    if (this.history !== '' && isMarked) this.data?.noteComparison(this.history, this.sent);
    const quarantine = this.quarantineAfter(values, isMarked);
    const doubts = new Map<MasterReply, PendingRequest[]>();
    this.asked.forEach((one, index) => {
      const value = values[index];
      const doubt = value === UNMARKED ? LOST_DATA : this.doubtAbout(one, value);
      if (doubt) {
        doubts.set(doubt, [...(doubts.get(doubt) ?? []), one]);
        return;
      }
      const answer = this.answerTo(one, value, quarantine);
      if (answer) one.reply(answer);
    });
    for (const [why, asked] of doubts) this.repeat(asked, why);
  }

  // `undefined` if it is given later.
  private answerTo(one: PendingRequest, value: unknown, quarantine: Quarantine | undefined): MasterReply | undefined {
    if (isReply(value)) return this.failure(value, [one]);
    const answer = replyFrom(value);
    if (answer.kind !== 'granted') return answer;
    // A grant of a master that may have forgotten others does not count.
    // Protocol 8.7
    if (quarantine && isVote(one.request)) return this.withheld(quarantine);
    return this.confirmed(one, answer);
  }

  // Sends again what may still be answered, when it is known which data is there.
  protected repeat(asked: readonly PendingRequest[], why: MasterReply): void {
    if (this.repetitions === MAX_REPETITIONS) {
      for (const one of asked) one.reply(why);
      return;
    }
    this.examine(why, (verdict) => {
      const again: PendingRequest[] = [];
      for (const one of asked) {
        const { request } = one;
        // What has been withdrawn was followed by its release already: sent again, it would come after it.
        const answer = 'withdrawn' in request && request.withdrawn ? why : verdict(request);
        if (answer) one.reply(answer);
        else again.push(one);
      }
      if (again.length > 0) this.sendAgain(again);
    });
  }

  // In place of a grant that does not count.
  protected withheld(quarantine: Quarantine): MasterReply {
    return { kind: 'quarantined', sent: true, ...quarantine };
  }

  protected failure(error: unknown, asked = this.asked): MasterReply {
    return this.peer.failure(error, tokensOf(asked));
  }
}
