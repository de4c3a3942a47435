import { endpointOf, type NodeAddress, type Translation } from '../urls.js';
import { redactedMessageOf } from '../replies.js';
import type { RedisClient } from '../redis-client.interface.js';
import { quorumOf } from '../../core/acquire/quorum-call.js';
import type { Clock, Instant } from '../../core/clock.js';
import { isRecent } from '../cluster/views.js';

interface NamedPrimary {
  readonly address: NodeAddress;
  // Number of the failover that made it the primary: it grows with each.
  readonly epoch: number;
}

interface Peer {
  readonly id: string;
  readonly address: NodeAddress;
}

export interface SentinelAnswer {
  // Its own id; `undefined` if the sentinel does not report it.
  readonly id: string | undefined;
  readonly peers: readonly Peer[];
  // `undefined` if the sentinel does not know a primary of that name.
  readonly named: NamedPrimary | undefined;
}

export interface Asked {
  readonly endpoint: string;
  readonly isListed: boolean;
  readonly id: string | undefined;
  readonly answer: SentinelAnswer | undefined;
  readonly problem: string | undefined;
}

type Tally =
  | { readonly primary: NamedPrimary; readonly isMajority: boolean }
  | { readonly primary: undefined; readonly reason: string };

export function keyOf({ address, epoch }: NamedPrimary): string {
  return `${endpointOf(address)} in epoch ${epoch}`;
}

interface Votes {
  readonly primary: NamedPrimary;
  readonly voters: Set<string>;
}

// All sentinels of the group count: those that are listed, and those that they know. Unless `isStrict`, the primary is
// the one that most of the answers name.
export function tally(asked: readonly Asked[], isStrict: boolean): Tally {
  const ids = new Set<string>();
  const votes = new Map<string, Votes>();
  const listed = new Set<string>();
  for (const { answer, endpoint, id = answer?.id, isListed } of asked) {
    // A listed sentinel that has never told its id may be one of those that the others know.
    if (isListed) listed.add(id ?? endpoint);
    if (id !== undefined && (isListed || answer)) ids.add(id);
    for (const peer of answer?.peers ?? []) ids.add(peer.id);
    const voter = id ?? (isStrict ? undefined : endpoint);
    if (!answer?.named || voter === undefined) continue;
    const key = keyOf(answer.named);
    const same = votes.get(key) ?? { primary: answer.named, voters: new Set() };
    votes.set(key, same);
    same.voters.add(voter);
  }
  const all = Math.max(ids.size, listed.size);
  const majority = quorumOf(all);
  const [most] = [...votes.values()].sort((one, other) => other.voters.size - one.voters.size);
  if (most && most.voters.size >= majority) return { primary: most.primary, isMajority: true };
  if (most && !isStrict) return { primary: most.primary, isMajority: false };
  return { primary: undefined, reason: reasonFor(asked, [...votes.values()], { all, majority, isStrict }) };
}

function reasonFor(
  asked: readonly Asked[],
  votes: readonly Votes[],
  { all, majority, isStrict }: { readonly all: number; readonly majority: number; readonly isStrict: boolean },
): string {
  const named = votes.map(({ primary, voters }) => `${voters.size} of ${all} name ${endpointOf(primary.address)}`);
  const problems = asked.flatMap(({ endpoint, problem }) => (problem === undefined ? [] : [`${endpoint}: ${problem}`]));
  const needed = isStrict
    ? `a majority of its sentinels (${majority} of ${all}) must name its address`
    : 'none of its sentinels names its address';
  const found = named.length > 0 ? named : isStrict ? ['none does'] : [];
  return [needed, [...found, ...problems].join('; ')].filter(Boolean).join(': ');
}

interface SentinelOptions {
  readonly name: string;
  // The client opens its connection with the first command, and not again.
  readonly open: () => RedisClient;
  readonly translate: Translation;
  readonly secrets: readonly string[];
}

export class Sentinel {
  private client: RedisClient | undefined;
  // The last error of the connection, which says more than that of a command.
  private trouble: unknown;

  constructor(private readonly options: SentinelOptions) {}

  async ask(): Promise<SentinelAnswer> {
    const { name, translate, secrets } = this.options;
    const client = this.connected();
    const call = (...args: string[]): Promise<unknown> => client.call('sentinel', args);
    // In one write: what it says of itself belongs together.
    const [named, master, peers, id] = await Promise.allSettled([
      call('get-master-addr-by-name', name),
      call('master', name),
      call('sentinels', name),
      call('myid'),
    ]);
    if (named.status === 'rejected') {
      const trouble: unknown = this.trouble ?? named.reason;
      throw new Error(redactedMessageOf(trouble, secrets));
    }
    const [others, about] = [valueOf(peers), valueOf(master)];
    const address = named.value as readonly string[] | null;
    return {
      // Without the others and the epoch, its word cannot be counted.
      id: Array.isArray(others) && Array.isArray(about) ? textOf(valueOf(id)) : undefined,
      peers: Array.isArray(others) ? others.flatMap((fields) => peerFrom(fields, translate)) : [],
      named: address
        ? {
            address: translate({ host: address[0] ?? '', port: Number(address[1]) }),
            epoch: Number(fieldsOf(about).get('config-epoch') ?? 0),
          }
        : undefined,
    };
  }

  // The next question opens another connection.
  drop(): void {
    this.client?.disconnect();
    this.client = undefined;
  }

  private connected(): RedisClient {
    if (this.client && this.client.status !== 'end') return this.client;
    const client = this.options.open();
    this.trouble = undefined;
    client.on('error', (error) => (this.trouble = error));
    this.client = client;
    return client;
  }
}

function valueOf(result: PromiseSettledResult<unknown>): unknown {
  return result.status === 'fulfilled' ? result.value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function fieldsOf(list: unknown): ReadonlyMap<string, string> {
  const values = Array.isArray(list) ? list.map(String) : [];
  return new Map(values.flatMap((name, i) => (i % 2 === 0 ? [[name, values[i + 1] ?? '']] : [])));
}

function peerFrom(list: unknown, translate: Translation): readonly Peer[] {
  const fields = fieldsOf(list);
  const [id = '', host = '', port] = ['runid', 'ip', 'port'].map((name) => fields.get(name));
  return id === '' || host === '' ? [] : [{ id, address: translate({ host, port: Number(port) }) }];
}

// In milliseconds.
const ANSWER_WITHIN = 1_000;
const UNCOUNTED = 'its user must be permitted SENTINEL MASTER, SENTINELS and MYID';

interface SentinelViewsContext {
  readonly clock: Clock;
  readonly listed: readonly NodeAddress[];
  readonly asksPeers: boolean;
  readonly name: string;
  readonly isStrict: boolean;
  readonly open: (address: NodeAddress) => Pick<Sentinel, 'ask' | 'drop'>;
}

export interface SentinelView {
  readonly sent: Instant;
  readonly tally: Tally;
}

interface Member {
  readonly endpoint: string;
  readonly isListed: boolean;
  readonly connection: Pick<Sentinel, 'ask' | 'drop'>;
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

// Asks the sentinels of a group which server is its primary: an old primary calls itself one for some seconds after a
// failover. All of them are asked at once, so that one that hangs delays no answer.
// Protocol 13.3
export class SentinelViews {
  private readonly members = new Map<string, Member>();
  private current: Promise<SentinelView> | undefined;
  private isClosed = false;

  constructor(private readonly context: SentinelViewsContext) {
    for (const address of context.listed) this.add(address, true);
  }

  ask(): Promise<SentinelView> {
    return (this.current ??= this.begin());
  }

  // Resolves with a view that was sent at most `age` milliseconds before the moment.
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

  // Sentinels that no other one knows any more, or that are in the list under another address, are not asked again.
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
