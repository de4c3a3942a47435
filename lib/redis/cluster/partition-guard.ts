import { isReply, millisecondsFrom, type ServerIdentity } from '../replies.js';
import { type Claim, type ClusterMap, PARTITIONS } from './cluster-map.js';
import type { Clock, Instant } from '../../core/clock.js';
import type { Quarantine } from '../../core/master.interface.js';
import type { Random } from '../../core/holder.js';
import { driftOf, type Settings } from '../../core/settings/settings.js';
import { generationFrom } from '../../core/state/state-entry.js';
import { DataRecord } from '../data-record.js';
import type { Marker } from '../guard/marker.js';
import { RAISE_SEAL, SEAL } from '../scripts/lua.generated.js';
import type { ClusterNames } from './cluster-names.js';
import type { ClusterNode } from './cluster-node.js';
import { VIEW_AGE } from './views.js';

// The marker of a partition. It is part of the data and names the process that the data belongs to: with any other
// process, or under another claim, the data may lack acknowledged writes.
// Protocol 12.5
export interface Seal extends Pick<Marker, 'run' | 'replid' | 'nonce' | 'from' | 'maxTtl' | 'reason' | 'generation'> {
  // The claim under which the process served the partition; empty where the service reports none.
  readonly owner: string;
  readonly epoch: string;
}

// Those that a client reads. `at` and `by` are for operators.
export const SEAL_FIELDS = [
  ...(['run', 'replid', 'owner', 'epoch', 'nonce', 'from', 'max', 'why', 'generation'] as const),
] as const;

export function sealFrom(values: readonly (string | null)[]): Seal | undefined {
  const [run, replid, owner, epoch, nonce, from, max, why, generation] = values.map((value) => value ?? '');
  if (!nonce) return undefined;
  return {
    ...{ run: run ?? '', replid: replid ?? '', owner: owner ?? '', epoch: epoch ?? '', nonce },
    ...{ from: Number(from), maxTtl: Number(max), reason: why ?? '', generation: generation ?? '' },
  };
}

const NO_SEAL = 'it has no seal: it is new, or has lost its data';

// Protocol 12.5
export function reasonForSeal(
  seal: Seal | undefined,
  { run, replid }: ServerIdentity,
  claim: Claim,
): string | undefined {
  if (!seal) return NO_SEAL;
  if (seal.owner !== '' && seal.owner !== claim.owner) return 'another node served it before';
  if (seal.run !== run) return 'the process that serves it was restarted';
  if (seal.replid !== replid) return 'its data has another history';
  if (seal.owner !== '' && seal.epoch !== String(claim.epoch))
    return 'it was served by another node meanwhile, or other slots were moved';
  return undefined;
}

export class PartitionRecord extends DataRecord {
  // `undefined` while the data is unknown.
  seal: Seal | undefined;
  // Of the data that was known last; empty if none was.
  generation = '';
  // The number of generation changes in the cluster when that of this partition last changed.
  changedAt = 0;
  // Monotonic time of this process from which votes count.
  private votesFrom = Infinity;

  // `longest`: the longest quarantine, in milliseconds.
  constructor(private readonly longest: () => number) {
    super('its owner is not known yet');
  }

  votesAt({ monotonic }: Instant): boolean {
    return this.seal !== undefined && monotonic >= this.votesFrom;
  }

  isNewAt(now: Instant): boolean {
    return this.seal?.reason === NO_SEAL && !this.votesAt(now);
  }

  quarantineAt(now: Instant): Quarantine | undefined {
    if (this.votesAt(now)) return undefined;
    const remaining = this.seal ? Math.max(1, Math.ceil(this.votesFrom - now.monotonic)) : this.longest();
    return { reason: this.reason, remaining };
  }

  doubt(reason: string): void {
    if (this.seal) this.epoch++;
    this.seal = undefined;
    this.reason = reason;
  }

  // `time` is the clock of the process that serves it, in milliseconds.
  accept(seal: Seal, time: number, now: Instant): void {
    const isSame = seal.nonce === this.seal?.nonce;
    if (isSame && this.votesAt(now)) return;
    const from = now.monotonic + Math.min(Math.max(0, seal.from - time), this.longest());
    // The clock of the process may have been set forward while this client watched.
    this.votesFrom = isSame ? Math.max(this.votesFrom, from) : from;
    if (!isSame) {
      this.epoch++;
      this.comparedAt = undefined;
    }
    this.seal = seal;
    this.replid = seal.replid;
    this.generation = seal.generation;
    this.reason = seal.reason;
  }
}

// How often another client may write seals between a reading and a writing of this one.
const MAX_RACES = 10;

interface PartitionGuardContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: Settings;
  readonly names: ClusterNames;
  readonly map: ClusterMap;
  readonly nodes: () => readonly ClusterNode[];
  // `clusterNodeTimeout`: views do not protect, and the wait is longer.
  readonly nodeTimeout: number | undefined;
  // Milliseconds that a node gets to answer.
  readonly patience: number;
}

interface Reading {
  readonly node: ClusterNode;
  readonly partition: number;
  readonly seal: Seal | undefined;
  // Clock of the process after the reading, in milliseconds.
  readonly time: number;
}

// The restart guard of a cluster. A seal in the data of each partition names the process that the data belongs to.
// Where it names another one, the data is unknown: it gets a new seal, and does not vote until every lock from before
// has ended.
export class PartitionGuard {
  readonly records: readonly PartitionRecord[] = Array.from(
    { length: PARTITIONS },
    () => new PartitionRecord(() => this.longest),
  );
  changes = 0;
  // A permission was missing at the last check: then another one at once would not help.
  isForbidden = false;
  // The largest in any seal, in milliseconds.
  private maxTtl: number;
  private readonly unread = new WeakSet<ClusterNode>();
  private readonly mistaken = new Set<ClusterNode>();
  private checking: Promise<void> | undefined;
  private again = false;

  constructor(private readonly context: PartitionGuardContext) {
    this.maxTtl = context.settings.maxTtl;
  }

  // In milliseconds.
  // Protocol 12.6
  get longest(): number {
    const { settings, nodeTimeout = 0 } = this.context;
    const locks = this.maxTtl + driftOf(settings, this.maxTtl);
    return Math.ceil(locks + 2 * nodeTimeout + VIEW_AGE + settings.masterTimeout);
  }

  votesAnywhere(now: Instant): boolean {
    return this.records.some((record) => record.votesAt(now));
  }

  // All of its data is, and may be that of a cluster that has lost it.
  isNewAt(now: Instant): boolean {
    return this.records.every((record) => record.isNewAt(now));
  }

  // The shortest first.
  quarantinesAt(now: Instant, partitions: Iterable<number> = this.records.keys()): readonly Quarantine[] {
    const all = [...partitions].flatMap((partition) => this.records[partition]?.quarantineAt(now) ?? []);
    return all.sort((one, other) => one.remaining - other.remaining);
  }

  get isComplete(): boolean {
    return this.records.every(({ seal }) => seal !== undefined);
  }

  forget(node: ClusterNode): void {
    this.unread.add(node);
  }

  invalidate(partition: number): void {
    this.records[partition]?.doubt('another node serves it now');
  }

  check(): Promise<void> {
    this.again = true;
    this.checking ??= this.checkWhileNeeded().finally(() => (this.checking = undefined));
    return this.checking;
  }

  private async checkWhileNeeded(): Promise<void> {
    for (let round = 0; this.again && round < MAX_RACES; round++) {
      this.again = false;
      this.isForbidden = false;
      const readings = await this.read();
      if (readings.some((reading) => this.reasonToSeal(reading) !== undefined)) await this.learnLongest(readings);
      // After all readings: one of them may know of longer locks.
      const written = await Promise.all(readings.map((reading) => this.checkSeal(reading, readings)));
      await this.recognizeMistaken();
      if (written.includes(true)) this.again = true;
    }
  }

  // The history of the data changes without a new connection, for example when the first replica attaches.
  private async recognizeMistaken(): Promise<void> {
    const nodes = [...this.mistaken];
    this.mistaken.clear();
    await Promise.all(nodes.map((node) => this.within(node.recognize()).catch(() => undefined)));
  }

  private async read(): Promise<readonly Reading[]> {
    const readings = await Promise.all(
      this.context.nodes().map(async (node) => {
        const isUnread = this.unread.delete(node);
        const partitions = this.context.map
          .partitionsOf(node.id)
          .filter((partition) => isUnread || this.records[partition]?.seal === undefined);
        if (!node.isConnected || partitions.length === 0) return [];
        const found = await this.within(this.readFrom(node, partitions)).catch((error: unknown) => {
          if (isReply(error)) for (const partition of partitions) this.refuse(partition, error);
        });
        if (!found) this.unread.add(node);
        return found ?? [];
      }),
    );
    const all = readings.flat();
    for (const { seal } of all) if (seal) this.maxTtl = Math.max(this.maxTtl, seal.maxTtl);
    return all;
  }

  private reasonToSeal({ node, partition, seal }: Reading): string | undefined {
    const claim = this.context.map.claimOf(partition);
    return node.identity && claim?.owner === node.id ? reasonForSeal(seal, node.identity, claim) : undefined;
  }

  // Another process may have raised the largest ttl since this client read the seals, and the data that was lost may
  // have had a lock that long. The seals of the other primaries still have that ttl.
  private async learnLongest(readings: readonly Reading[]): Promise<void> {
    const { map, names, nodes } = this.context;
    const isRead = new Set(readings.filter(({ seal }) => seal).map(({ partition }) => partition));
    const asked = nodes().flatMap((node) =>
      map.partitionsOf(node.id).flatMap((partition) => (isRead.has(partition) ? [] : [{ node, partition }])),
    );
    const found = await Promise.all(
      asked.map(({ node, partition }) =>
        this.within(node.call('hget', [names.sealOf(partition), 'max'])).catch(() => undefined),
      ),
    );
    this.maxTtl = found.reduce<number>((longest, one) => Math.max(longest, Number(one ?? 0)), this.maxTtl);
  }

  private async readFrom(node: ClusterNode, partitions: readonly number[]): Promise<readonly Reading[]> {
    const { names } = this.context;
    const answers = partitions.map((partition) =>
      node.call('hmget', [names.sealOf(partition), ...SEAL_FIELDS]).then(
        (values): Seal | 'absent' => sealFrom(values as (string | null)[]) ?? 'absent',
        (error: unknown) => {
          if (isReply(error)) this.refuse(partition, error);
          return undefined;
        },
      ),
    );
    const [time, seals] = await Promise.all([node.call('time', []), Promise.all(answers)]);
    return partitions.flatMap((partition, index) => {
      const seal = seals[index];
      const known = seal === 'absent' ? undefined : seal;
      return seal === undefined ? [] : [{ node, partition, seal: known, time: millisecondsFrom(time) }];
    });
  }

  // Returns whether the seal was changed, or may have been.
  private async checkSeal(reading: Reading, readings: readonly Reading[]): Promise<boolean> {
    const { node, partition, seal, time } = reading;
    const { map, clock, settings, names } = this.context;
    const record = this.records[partition];
    const claim = map.claimOf(partition);
    if (!record || !node.identity || claim?.owner !== node.id) return false;
    const reason = reasonForSeal(seal, node.identity, claim);
    if (reason === undefined && seal) {
      if (seal.maxTtl < settings.maxTtl) {
        return this.change(reading, [RAISE_SEAL, 1, names.sealOf(partition), seal.nonce, settings.maxTtl]);
      }
      if (seal.generation !== record.generation) record.changedAt = ++this.changes;
      record.accept(seal, time, clock.read());
      return false;
    }
    record.doubt(reason ?? '');
    if (!map.maySeal(partition)) {
      record.doubt('too few other primaries confirm which node serves it');
      return false;
    }
    return this.write(reading, { reason: reason ?? '', claim, identity: node.identity }, readings);
  }

  private async write(
    { node, partition, seal, time }: Reading,
    { reason, claim, identity }: { readonly reason: string; readonly claim: Claim; readonly identity: ServerIdentity },
    readings: readonly Reading[],
  ): Promise<boolean> {
    const { names, random, settings, nodeTimeout } = this.context;
    const { run, replid } = identity;
    const [owner, epoch] = nodeTimeout === undefined ? [claim.owner, claim.epoch] : ['', ''];
    // Partitions that never had a seal, as far as this process knows, have never had a state, either.
    const isUnknown = this.records.every(({ generation }) => generation === '');
    const isNew = isUnknown && readings.length === PARTITIONS && readings.every((other) => other.seal === undefined);
    const fields = [
      ...['nonce', random.token(), 'max', this.maxTtl, 'why', reason, 'by', settings.instance],
      ...['generation', generationFrom(random.token(), time), 'first', isNew ? '1' : ''],
    ];
    const basis = [run, replid, owner, epoch, seal?.nonce ?? '', this.longest];
    return this.change({ node, partition }, [SEAL, 1, names.sealOf(partition), ...basis, ...fields]);
  }

  // Returns whether the script may have changed the seal.
  private async change(
    { node, partition }: Pick<Reading, 'node' | 'partition'>,
    parameters: (string | number)[],
  ): Promise<boolean> {
    try {
      if ((await this.within(node.call('eval', parameters))) === 0) this.mistaken.add(node);
      return true;
    } catch (error) {
      if (isReply(error)) this.refuse(partition, error);
      return false;
    }
  }

  private refuse(partition: number, error: Error): void {
    this.records[partition]?.doubt(`its seal cannot be read or written: ${error.message}`);
    if (/^NOPERM|can't run|no permissions/.test(error.message)) this.isForbidden = true;
  }

  // Resolves with `undefined` if there is no answer in time.
  private within<T>(promise: Promise<T>): Promise<T | undefined> {
    const { clock, patience } = this.context;
    return new Promise((resolve, reject) => {
      const timer = clock.schedule(patience, () => resolve(undefined)).unref();
      promise
        .finally(() => timer.cancel())
        .then(resolve, (error: unknown) => (isReply(error) ? reject(error) : resolve(undefined)));
    });
  }
}
