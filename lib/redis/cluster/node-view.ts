/** Number of partitions of a cluster. Names on the servers depend on it, so it never changes. */
export const PARTITIONS = 256;
export const SLOTS = 16_384;
/** All names of a partition are in the first of its slots. */
export const SLOTS_OF_PARTITION = SLOTS / PARTITIONS;

/** The ownership of a partition by one process under one config epoch. */
export interface Claim {
  /** Id of the node. */
  readonly owner: string;
  readonly epoch: number;
}

/** A primary with slots, as one node knows it. */
export interface KnownPrimary extends Claim {
  /** What the node announces, `host:port`; an empty host means the address at which it was asked. */
  readonly host: string;
  readonly port: number;
  /** First and last slot of each range. */
  readonly ranges: readonly (readonly [first: number, last: number])[];
}

/** What one node knows about its cluster. */
export interface NodeView {
  /** Id of the node that answered. */
  readonly self: string;
  /** Whether the node that answered is a replica. */
  readonly isReplica: boolean;
  /** Ids of all nodes that it knows. */
  readonly ids: readonly string[];
  /** Primaries that have slots, sorted by id. */
  readonly primaries: readonly KnownPrimary[];
  /** The claim of each partition; `undefined` where its slot has no owner. */
  readonly claims: readonly (Claim | undefined)[];
  /** Equal for views that agree on all owners and epochs. */
  readonly signature: string;
}

/** Whether two claims are the same. */
export function isSameClaim(one: Claim | undefined, other: Claim | undefined): boolean {
  return one !== undefined && other !== undefined && one.owner === other.owner && one.epoch === other.epoch;
}

/** Parses the answer to CLUSTER NODES. */
export function parseNodes(text: string): NodeView {
  const lines = text
    .split('\n')
    .map((line) => line.trim().split(' '))
    .filter(({ length }) => length >= 8);
  const self = lines.find(([, , flags = '']) => flags.split(',').includes('myself'));
  const primaries = lines.flatMap((fields) => primaryFrom(fields)).sort((a, b) => (a.owner < b.owner ? -1 : 1));
  return {
    self: self?.[0] ?? '',
    isReplica: self?.[2]?.split(',').includes('slave') ?? false,
    ids: lines.map(([id = '']) => id),
    ...owned(primaries),
  };
}

/** Converts the answer to CLUSTER SLOTS, which names no epochs. */
export function viewFromSlots(reply: unknown): NodeView {
  const byId = new Map<string, { host: string; port: number; ranges: (readonly [number, number])[] }>();
  for (const [first, last, primary] of reply as [number, number, [string | null, number, string]][]) {
    const [host, port, id] = primary;
    const known = byId.get(id) ?? { host: host ?? '', port, ranges: [] };
    known.ranges.push([first, last]);
    byId.set(id, known);
  }
  const primaries = [...byId]
    .map(([owner, known]) => ({ owner, epoch: 0, ...known }))
    .sort((a, b) => (a.owner < b.owner ? -1 : 1));
  const ids = primaries.map(({ owner }) => owner);
  return { self: '', isReplica: false, ids, ...owned(primaries) };
}

function owned(primaries: readonly KnownPrimary[]): Pick<NodeView, 'primaries' | 'claims' | 'signature'> {
  const claims = Array.from({ length: PARTITIONS }, (_, partition) => {
    const slot = partition * SLOTS_OF_PARTITION;
    return primaries.find(({ ranges }) => ranges.some(([first, last]) => first <= slot && slot <= last));
  });
  return { primaries, claims, signature: signatureOf(primaries) };
}

function primaryFrom([
  owner = '',
  address = '',
  flags = '',
  ,
  ,
  ,
  epoch,
  ,
  ...slots
]: readonly string[]): KnownPrimary[] {
  const isPrimary = flags.split(',').includes('master');
  // What is in brackets is a slot that is being moved, of which the node is still the owner, or not yet.
  const ranges = slots.filter((slot) => !slot.startsWith('[')).map(rangeFrom);
  if (!isPrimary || ranges.length === 0) return [];
  return [{ owner, epoch: Number(epoch), ...addressIn(address), ranges }];
}

/** Reads the address in a line of CLUSTER NODES: `ip:port@bus,hostname`. */
export function addressIn(field: string): { readonly host: string; readonly port: number } {
  const [, ip = '', port = '', hostname = ''] = /^(.*):(\d+)(?:@\d+)?(?:,([^,=]*)(?:,.*)?)?$/.exec(field) ?? [];
  return { host: hostname || ip, port: Number(port) };
}

function rangeFrom(text: string): readonly [number, number] {
  const [first = NaN, last = first] = text.split('-').map(Number);
  return [first, last];
}

function signatureOf(primaries: readonly KnownPrimary[]): string {
  return primaries.map(({ owner, epoch, ranges }) => `${owner} ${epoch} ${ranges.join(' ')}`).join('\n');
}
