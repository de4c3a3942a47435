import type { Clock, Instant } from '../../core/clock.js';
import { isRecent } from '../cluster/views.js';
import { endpointOf, type NodeAddress } from '../endpoint.js';
import type { SentinelConnection } from './sentinel.js';
import { type Asked, type SentinelAnswer, type Tally, tally } from './tally.js';

/** A sentinel gets this many milliseconds to answer. */
const ANSWER_WITHIN = 1_000;
/** What is wrong with a sentinel that cannot be counted. */
const UNCOUNTED = 'its user must be permitted SENTINEL MASTER, SENTINELS and MYID';

interface SentinelViewsContext {
  readonly clock: Clock;
  /** The sentinels that the user listed. */
  readonly listed: readonly NodeAddress[];
  /** Whether to ask sentinels that are not listed. */
  readonly asksPeers: boolean;
  /** Name of the primary, for messages. */
  readonly name: string;
  /** Whether a majority of all sentinels must name the primary. */
  readonly isStrict: boolean;
  readonly open: (address: NodeAddress) => SentinelConnection;
}

/** The result of asking all sentinels at one time. */
export interface SentinelView {
  /** When the question was sent. */
  readonly sent: Instant;
  readonly tally: Tally;
}

interface Member {
  readonly endpoint: string;
  readonly isListed: boolean;
  readonly connection: SentinelConnection;
  id: string | undefined;
  isAsked: boolean;
  problem: string | undefined;
}

interface Round {
  readonly answers: Map<Member, SentinelAnswer>;
  readonly open: Set<Member>;
  readonly end: (tally: Tally) => void;
  isOver: boolean;
}

/**
 * Asks the sentinels of a group which server is its primary: an old primary calls itself one for some seconds after a
 * failover. All of them are asked at once, so that one that hangs delays no answer. Protocol 13.3.
 */
export class SentinelViews {
  private readonly members = new Map<string, Member>();
  private current: Promise<SentinelView> | undefined;
  private isClosed = false;

  constructor(private readonly context: SentinelViewsContext) {
    for (const address of context.listed) this.add(address, true);
  }

  /** Resolves with the view under way, or with another one. */
  ask(): Promise<SentinelView> {
    return (this.current ??= this.begin());
  }

  /** Resolves with a view that was sent at most `age` milliseconds before a moment. */
  async askFor(moment: Instant, age: number): Promise<SentinelView> {
    const view = await this.ask();
    return isRecent(view.sent, moment, age) ? view : this.ask();
  }

  close(): void {
    this.isClosed = true;
    for (const { connection } of this.members.values()) connection.drop();
    this.members.clear();
  }

  private begin(): Promise<SentinelView> {
    const sent = this.context.clock.read();
    return new Promise<SentinelView>((resolve) => {
      const end = (result: Tally): void => {
        round.isOver = true;
        this.current = undefined;
        this.prune(round);
        resolve({ sent, tally: result });
      };
      const round: Round = { answers: new Map(), open: new Set(), end, isOver: false };
      for (const member of this.members.values()) this.question(round, member);
      // All of them may hang since the view before: then each drops its connection soon, and the next view asks again.
      if (round.open.size === 0) this.context.clock.schedule(ANSWER_WITHIN, () => this.settle(round)).unref();
    });
  }

  private question(round: Round, member: Member): void {
    if (member.isAsked || this.isClosed) return;
    member.isAsked = true;
    round.open.add(member);
    let isOver = false;
    const end = (answer: SentinelAnswer | undefined, problem: string | undefined): void => {
      if (isOver) return;
      isOver = true;
      limit.cancel();
      member.isAsked = false;
      member.problem = problem;
      round.open.delete(member);
      if (answer) this.take(round, member, answer);
      this.settle(round);
    };
    const limit = this.context.clock
      .schedule(ANSWER_WITHIN, () => {
        member.connection.drop();
        end(undefined, `no answer within ${ANSWER_WITHIN} ms`);
      })
      .unref();
    member.connection.ask().then(
      (answer) => end(answer, this.problemWith(answer)),
      (error: unknown) => end(undefined, (error as Error).message),
    );
  }

  private problemWith({ id, named }: SentinelAnswer): string | undefined {
    if (!named) return `it watches no primary with the name ${this.context.name}`;
    return id === undefined && this.context.isStrict ? UNCOUNTED : undefined;
  }

  private take(round: Round, member: Member, answer: SentinelAnswer): void {
    member.id = answer.id;
    round.answers.set(member, answer);
    if (!this.context.asksPeers || this.isClosed) return;
    for (const { id, address } of answer.peers) {
      const known = this.members.get(endpointOf(address));
      if (known) known.id ??= id;
      else if (![...this.members.values()].some((other) => other.id === id)) {
        const peer = this.add(address, false);
        peer.id = id;
        if (!round.isOver) this.question(round, peer);
      }
    }
  }

  private settle(round: Round): void {
    if (round.isOver) return;
    const result = this.count(round, true);
    const isDecided = result.primary !== undefined && result.isMajority;
    if (isDecided || round.open.size === 0) round.end(isDecided ? result : this.count(round, this.context.isStrict));
  }

  private count({ answers }: Round, isStrict: boolean): Tally {
    const asked = [...this.members.values()].map((member): Asked => {
      const problem = member.problem ?? (answers.has(member) ? undefined : 'no answer yet');
      return { ...member, answer: answers.get(member), problem };
    });
    return tally(asked, isStrict);
  }

  /** Sentinels that no other one knows any more, or that are in the list under another address, are not asked again. */
  private prune({ answers }: Round): void {
    if (answers.size === 0) return;
    const known = new Set([...answers.values()].flatMap(({ id, peers }) => [id, ...peers.map((peer) => peer.id)]));
    const listed = new Set([...this.members.values()].flatMap(({ isListed, id }) => (isListed ? [id] : [])));
    for (const { endpoint, isListed, id, connection } of this.members.values()) {
      if (isListed || (known.has(id) && !listed.has(id))) continue;
      this.members.delete(endpoint);
      connection.drop();
    }
  }

  private add(address: NodeAddress, isListed: boolean): Member {
    const endpoint = endpointOf(address);
    const connection = this.context.open(address);
    const member: Member = { endpoint, isListed, connection, id: undefined, isAsked: false, problem: undefined };
    this.members.set(endpoint, member);
    return member;
  }
}
