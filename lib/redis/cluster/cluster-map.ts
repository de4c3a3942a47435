import { quorumOf } from '../../core/acquire/quorum-call.js';

// Names on the servers depend on it, so it never changes.
export const PARTITIONS = 256;
export const SLOTS = 16_384;
// All names of a partition are in the first of its slots.
const SLOTS_OF_PARTITION = SLOTS / PARTITIONS;

// The ownership of a partition by one process under one config epoch.
export interface Claim {
  readonly owner: string;
  readonly epoch: number;
}

export interface KnownPrimary extends Claim {
  // As the node announces it. An empty host means the address at which it was asked.
  readonly host: string;
  readonly port: number;
  readonly ranges: readonly (readonly [first: number, last: number])[];
}

interface KnownReplica {
  // The id of its primary.
  readonly primary: string;
  readonly host: string;
  readonly port: number;
}

export interface NodeView {
  readonly self: string;
  readonly ids: readonly string[];
  readonly primaries: readonly KnownPrimary[];
  readonly replicas: readonly KnownReplica[];
  // By partition; `undefined` where its slot has no owner.
  readonly claims: readonly (Claim | undefined)[];
}

export function isSameClaim(one: Claim | undefined, other: Claim | undefined): boolean {
  return one !== undefined && other !== undefined && one.owner === other.owner && one.epoch === other.epoch;
}

export function parseNodes(text: string): NodeView {
  const lines = text
    .split('\n')
    .map((line) => line.trim().split(' '))
    .filter(({ length }) => length >= 8);
  const [self = ''] = lines.find(([, , flags = '']) => flags.split(',').includes('myself')) ?? [];
  const primaries = lines.flatMap((fields) => primaryFrom(fields)).sort((a, b) => (a.owner < b.owner ? -1 : 1));
  return {
    self,
    ids: lines.map(([id = '']) => id),
    replicas: lines.flatMap(replicaFrom),
    ...owned(primaries),
  };
}

export function viewFromSlots(reply: unknown): NodeView {
  const byId = new Map<string, { host: string; port: number; ranges: (readonly [number, number])[] }>();
  const replicas = new Map<string, KnownReplica>();
  for (const [first, last, [host, port, id], ...others] of reply as [number, number, SlotNode, ...SlotNode[]][]) {
    for (const [at, theirs, replica] of others) replicas.set(replica, { primary: id, host: at ?? '', port: theirs });
    const known = byId.get(id) ?? { host: host ?? '', port, ranges: [] };
    known.ranges.push([first, last]);
    byId.set(id, known);
  }
  const primaries = [...byId]
    .map(([owner, known]) => ({ owner, epoch: 0, ...known }))
    .sort((a, b) => (a.owner < b.owner ? -1 : 1));
  const ids = primaries.map(({ owner }) => owner);
  return { self: '', ids, replicas: [...replicas.values()], ...owned(primaries) };
}

type SlotNode = [host: string | null, port: number, id: string];

function owned(primaries: readonly KnownPrimary[]): Pick<NodeView, 'primaries' | 'claims'> {
  const claims = Array.from({ length: PARTITIONS }, (_, partition) => {
    const slot = partition * SLOTS_OF_PARTITION;
    return primaries.find(({ ranges }) => ranges.some(([first, last]) => first <= slot && slot <= last));
  });
  return { primaries, claims };
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

function replicaFrom([, address = '', flags = '', primary = '']: readonly string[]): KnownReplica[] {
  const isKnown = flags.split(',').includes('slave') && !/handshake|noaddr/.test(flags);
  return isKnown ? [{ primary, ...addressIn(address) }] : [];
}

// `ip:port@bus,hostname` in a line of CLUSTER NODES.
function addressIn(field: string): { readonly host: string; readonly port: number } {
  const [, ip = '', port = '', hostname = ''] = /^(.*):(\d+)(?:@\d+)?(?:,([^,=]*)(?:,.*)?)?$/.exec(field) ?? [];
  return { host: hostname || ip, port: Number(port) };
}

function rangeFrom(text: string): readonly [number, number] {
  const [first = NaN, last = first] = text.split('-').map(Number);
  return [first, last];
}

const LAST_ASCII = 0x7f;

// By Redis' hash tag rule: only what stands between the first `{` and the first `}` after it counts, unless that is
// empty.
export function hashSlotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  return crcOf(close > open + 1 ? key.slice(open + 1, close) : key) % SLOTS;
}

// Resources with one hash tag are in one partition.
// Protocol 12.1
export function partitionOf(resource: string): number {
  return Math.floor(hashSlotOf(resource) / SLOTS_OF_PARTITION);
}

// The hash tag of each partition: of the strings of 0-9 and a-z whose slot is its first one, the shortest, then the
// first in ASCII order. They never change: with another table, a process would not see the locks of the others.
// Protocol 12.1
export const TAGS: readonly string[] = [
  '1bz 5n3 53t d5m nbd 7me j3j 3xc 04s a2j if5 0i4 o4m cu4 kec 2jb',
  'dlj 5js 574 92e 3el bcu 74b fvs 003 4xr akm 0mt 23e cqt 6bk x3',
  '5nw dhn 96a 530 bgq 3ah frw 70f pt6 047 0ip 4e9 c1x ex oin 6fo',
  '5j7 9of d1i 57p 7ia fox 38o j7n 4x6 00w 0m0 4ay c58 a8 xw kag',
  '17p h8q he6 1j7 n7n 78o box 3ia 0ay 4m0 40w 0x6 06 6nf c9q mq',
  '130 hx9 hav 1nw 30f brw 7ah fgq 0e9 4ip 447 81f 4v kin 67a i1',
  'h85 174 1js her bvs 34b fcu 7el 4mt ekm 0xr 403 cdr 0r m5 63e',
  'qsu 13t 1n3 5bz 7xc n3j 3me jbd 4i4 8le e2j 44s 6jb 42 iu k4m',
  'fjl 7lu 712 3ys 1cj hlk 52d 975 265 k94 cmk 9k 05c a3z 4dm ebt',
  'ng4 7h5 75r f3k 9n2 5kc h5l 93u 22u 6z4 02bb 2o2 m2k 4yb ice 0ld',
  '7l1 nc0 3y7 71v 5og 9j6 1za h1h c0h dh 2k6 kd7 49n 8x7 8ax any',
  '7hq 3d8 wu7 756 hho 1gn 931 5rh 6zp 221 yg cio asv 01g 8e8 aj9',
  '356 su7 7d8 3hq 1rh h9a 5gn daw gio 6ov 621 la 8iq afp 41g 846',
  '31v 7y7 jc0 3l1 d8p 5za qkn 1og 5f 6k6 66q g0h 8m1 ab0 i6o 09n',
  'b3k 35r 3h5 jg4 092l l5l 1kc hdb 6o2 1b 2z4 62u 4ld 8i5 0yb i2k',
  '7ys 312 3lu bjl hym 12d des 5cj 6kr gmk he 665 abt 0dm 802 45c',
].flatMap((row) => row.split(' '));

// CRC-16/XMODEM of the UTF-8 bytes. Those of an ASCII string are its character codes.
function crcOf(text: string): number {
  let crc = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > LAST_ASCII) return Buffer.from(text).reduce(nextCrc, 0);
    crc = nextCrc(crc, code);
  }
  return crc;
}

// Divides by the polynomial x^16 + x^12 + x^5 + 1, eight bits at a time and without a table.
function nextCrc(crc: number, byte: number): number {
  const high = (crc >> 8) ^ byte;
  const folded = high ^ (high >> 4);
  return ((crc << 8) ^ (folded << 12) ^ (folded << 5) ^ folded) & 0xffff;
}

const FOREIGN = 'its nodes belong to several clusters: give the nodes of one cluster, and start anew';

export class ClusterMap {
  primaries: ReadonlyMap<string, KnownPrimary> = new Map();
  // Named while too few primaries had answered: other nodes may have taken their places.
  candidates: readonly KnownPrimary[] = [];
  fault: string | undefined;
  private size = 0;
  private readonly claims: (Claim | undefined)[] = Array.from({ length: PARTITIONS });
  // By partition: primaries other than the owner that knew its claim in a round that confirmed it.
  private readonly others: number[] = Array.from({ length: PARTITIONS }, () => 0);

  // Without `asksMajority`, the newest claim is taken.
  constructor(private readonly asksMajority: boolean) {}

  claimOf(partition: number): Claim | undefined {
    return this.claims[partition];
  }

  partitionsOf(owner: string): readonly number[] {
    return this.claims.flatMap((claim, partition) => (claim?.owner === owner ? [partition] : []));
  }

  // Whether each majority of the primaries has one that is not the owner and knows its claim. The old and the new owner
  // of a shard are one seat, so a majority with the owner in it is not enough.
  // Protocol 12.7
  maySeal(partition: number): boolean {
    const { size } = this;
    return size <= 1 || (this.others[partition] ?? 0) >= size - Math.floor(size / 2);
  }

  learn(views: readonly NodeView[]): { readonly confirmed: ReadonlySet<number>; readonly changed: readonly number[] } {
    const confirmed = new Set<number>();
    const changed: number[] = [];
    if (!formOneCluster(views)) this.fault = FOREIGN;
    if (this.fault !== undefined) return { confirmed, changed };
    const voters = this.asksMajority ? votersIn(views) : views;
    const size = Math.max(0, ...voters.map(({ primaries }) => primaries.length));
    const majority = this.asksMajority ? quorumOf(size) : 1;
    const isMajority = voters.length >= majority;
    this.candidates = isMajority ? [] : [...primariesIn(views).values()];
    if (!isMajority) return { confirmed, changed };
    this.primaries = primariesIn(voters);
    this.size = size;
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const claim = this.claimIn(voters, partition, majority);
      if (!claim) continue;
      if (!this.asksMajority || isOwnClaim(voters, partition, claim)) confirmed.add(partition);
      const isKnown = isSameClaim(this.claims[partition], claim);
      // What a node knows only grows, so earlier rounds count as long as the claim is the same.
      const before = isKnown ? (this.others[partition] ?? 0) : 0;
      const others = voters.filter(({ self, claims }) => self !== claim.owner && isSameClaim(claims[partition], claim));
      this.others[partition] = Math.max(before, others.length);
      if (isKnown) continue;
      this.claims[partition] = { owner: claim.owner, epoch: claim.epoch };
      changed.push(partition);
    }
    return { confirmed, changed };
  }

  private claimIn(views: readonly NodeView[], partition: number, majority: number): Claim | undefined {
    let newest: Claim | undefined;
    for (const { claims } of views) {
      const claim = claims[partition];
      if (!claim || (newest && claim.epoch <= newest.epoch)) continue;
      const known = views.filter((view) => isSameClaim(view.claims[partition], claim)).length;
      if (known >= majority) newest = claim;
    }
    return newest;
  }
}

// The process knows before the others under which epoch it serves: slots that went away and came back, which an operator
// names at each node, have their old claim there until the new epoch is heard of.
// Protocol 12.7
function isOwnClaim(voters: readonly NodeView[], partition: number, claim: Claim): boolean {
  return voters.some(({ self, claims }) => self === claim.owner && isSameClaim(claims[partition], claim));
}

// If only by way of others. Nodes without a primary that they know do not matter.
function formOneCluster(views: readonly NodeView[]): boolean {
  let unconnected = views.filter(({ primaries }) => primaries.length > 0);
  const known = new Set(unconnected[0]?.ids);
  for (let isGrowing = true; isGrowing && unconnected.length > 0;) {
    const remaining = unconnected.filter(({ ids }) => !ids.some((id) => known.has(id)));
    for (const { ids } of unconnected.filter((view) => !remaining.includes(view))) for (const id of ids) known.add(id);
    isGrowing = remaining.length < unconnected.length;
    unconnected = remaining;
  }
  return unconnected.length === 0;
}

// One view of each primary: one node may be reached under two addresses.
function votersIn(views: readonly NodeView[]): readonly NodeView[] {
  const voters = new Map(views.map((view) => [view.self, view]));
  return [...voters.values()].filter(({ primaries, self }) => primaries.some(({ owner }) => owner === self));
}

function primariesIn(views: readonly NodeView[]): ReadonlyMap<string, KnownPrimary> {
  const found = new Map<string, KnownPrimary>();
  for (const { primaries } of views) {
    for (const primary of primaries) {
      const known = found.get(primary.owner);
      if (!known || known.epoch < primary.epoch) found.set(primary.owner, primary);
    }
  }
  return found;
}

// Protocol 12.10
export class ClusterTwins {
  // The ids of the nodes of each.
  private readonly clusters: ReadonlySet<string>[] = [];

  add(ids: ReadonlySet<string>): void {
    this.clusters.push(ids);
  }

  // The same for all clusters of this service that have a node in common; `undefined` while no node is known.
  idOf(ids: ReadonlySet<string>): string | undefined {
    const [id] = this.clusters.find((others) => [...others].some((other) => ids.has(other))) ?? [];
    return id;
  }
}
