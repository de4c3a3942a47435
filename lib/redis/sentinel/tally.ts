import { endpointOf, type NodeAddress } from '../endpoint.js';

/** The primary that a sentinel names. */
export interface NamedPrimary {
  readonly address: NodeAddress;
  /** Number of the failover that made it the primary: it grows with each. */
  readonly epoch: number;
}

/** Another sentinel of the group, as one of them knows it. */
export interface Peer {
  readonly id: string;
  readonly address: NodeAddress;
}

/** What one sentinel says. */
export interface SentinelAnswer {
  /** Its own id; `undefined` if it does not tell. */
  readonly id: string | undefined;
  readonly peers: readonly Peer[];
  /** `undefined` if it does not know a primary of that name. */
  readonly named: NamedPrimary | undefined;
}

/** One of the sentinels that were to be asked. */
export interface Asked {
  readonly endpoint: string;
  /** Whether it is in the list that the user gave. */
  readonly isListed: boolean;
  /** Its id, if it has ever told. */
  readonly id: string | undefined;
  readonly answer: SentinelAnswer | undefined;
  /** Why there is no answer, or what is wrong with it. */
  readonly problem: string | undefined;
}

/** What a majority of all sentinels of the group says, or why there is none. */
export type Tally =
  | { readonly primary: NamedPrimary; readonly isMajority: boolean }
  | { readonly primary: undefined; readonly reason: string };

/** Identifies a primary in one epoch. */
export function keyOf({ address, epoch }: NamedPrimary): string {
  return `${endpointOf(address)} in epoch ${epoch}`;
}

interface Votes {
  readonly primary: NamedPrimary;
  readonly voters: Set<string>;
}

/**
 * Counts the answers so far. All sentinels of the group count: those that are listed, and those that they know.
 *
 * @param isStrict whether only a majority may name the primary; otherwise most of the answers do
 */
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
  const majority = Math.floor(all / 2) + 1;
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
