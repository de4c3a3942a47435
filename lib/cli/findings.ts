import {
  certainDistance,
  type ClockOffset,
  type ClusterExamination,
  type Examination,
  medianOf,
  middleOf,
} from './examination.js';
import { type MasterStanding, mayVoteEarly, plain, quarantineFor, standingOf, waitForQuorum } from './terminal.js';
import { counted, duration, votesOf } from '../core/display.js';
import { enoughFor } from '../core/health/round-trips.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { resolveSettings } from '../core/settings/settings.js';
import { EARLY_AFTER } from '../redis/guard/new-masters.js';
import type { ContactFailure } from './contact.js';
import { isVital } from './permissions.js';
import { flawsIn } from '../redis/recognition.js';

export interface Finding {
  // A `problem` needs a change; a `note` may describe what is intended.
  readonly level: 'problem' | 'note';
  // `undefined` if it is about all of them.
  readonly master: string | undefined;
  readonly what: string;
  readonly advice: string;
}

type Unplaced = Omit<Finding, 'master'>;

function problem(what: string, advice: string): Unplaced {
  return { level: 'problem', what, advice };
}

function note(what: string, advice: string): Unplaced {
  return { level: 'note', what, advice };
}

// Fewer primaries elect no replica when one of them fails.
const ELECTING = 3;

export function onCluster({ unserved, unreachable, shards }: ClusterExamination): Unplaced[] {
  const findings: Unplaced[] = unreachable.map(({ address, failure }) =>
    problem(
      `its replica ${address} cannot be reached: ${failure.reason}`,
      'start it, let the network through, or correct what it announces (cluster-announce-ip): after a failover it is asked',
    ),
  );
  if (unserved > 0) {
    const what = `${unserved} of 16384 slots ${unserved === 1 ? 'has' : 'have'} no primary: locks in ${unserved === 1 ? 'it' : 'them'} fail`;
    findings.push(problem(what, 'assign them: redis-cli --cluster fix <host:port>'));
  }
  if (shards.length < ELECTING) {
    const what = `it has ${shards.length} ${shards.length === 1 ? 'primary' : 'primaries'}, too few to elect a replica when one fails`;
    findings.push(note(what, 'use three primaries or more'));
  }
  const timeouts = new Set(shards.flatMap(({ shard }) => shard?.nodeTimeout ?? []));
  if (timeouts.size > 1) {
    const values = [...timeouts].sort((one, other) => one - other).join(' and ');
    findings.push(
      problem(`its nodes have different values of cluster-node-timeout: ${values}`, 'set one value on all'),
    );
  }
  return findings;
}

export function onShard({ shard }: Examination, { nodeTimeout }: ClusterExamination): Unplaced[] {
  if (!shard) return [];
  const { partitions, replicas, state } = shard;
  const findings: Unplaced[] = [];
  if (state !== undefined && state !== 'ok') {
    const what = `it reports cluster_state:${state}, so it may refuse every lock`;
    findings.push(problem(what, 'CLUSTER NODES shows which primaries are missing: start them, or assign their slots'));
  }
  if (nodeTimeout !== undefined && shard.nodeTimeout !== undefined && nodeTimeout < shard.nodeTimeout) {
    const what = `its cluster-node-timeout is ${duration(shard.nodeTimeout)}, and clusterNodeTimeout only ${duration(nodeTimeout)}: too short a wait after a failover`;
    findings.push(problem(what, `set clusterNodeTimeout to ${shard.nodeTimeout} or more`));
  }
  if (replicas === 0) {
    const what = `it has no replica: when it fails, the locks of its ${counted(partitions, 'partition')} fail until it is back`;
    findings.push(note(what, 'add a replica, or use three independent masters'));
  }
  return findings;
}

export interface Verdict {
  readonly healthy: boolean;
  readonly masters: number;
  readonly quorum: number;
  readonly voters: readonly string[];
  // Milliseconds until a quorum votes, 0 if it votes now; `null` if that is not known.
  readonly locksIn: number | null;
  readonly findings: readonly Finding[];
}

// Clocks that are synchronized over a network differ by less than this many milliseconds.
const CLOCK_TOLERANCE = 1_000;
// With fewer masters, the restart guard is off by default.
const GUARDED_FROM = 3;
const DEFAULTS = resolveSettings({});
// The offset of the local clock, by which all others are measured.
const HERE: ClockOffset = Object.freeze({ min: 0, max: 0 });

interface Applications {
  readonly guarded?: boolean;
  readonly masterTimeout?: number | undefined;
}

export function judge(
  examined: readonly Examination[],
  { guarded = isGuarded(examined), masterTimeout }: Applications = {},
): Verdict {
  const masters = examined.length;
  const able = examined.filter((one) => canVote(one, examined));
  const waits = able.map((one) => (guarded ? waitOf(one) : 0));
  const voters = able.filter((_, i) => waits[i] === 0).map(({ master }) => master);
  const locksIn = waitForQuorum(waits, masters) ?? null;
  const findings = [
    ...examined.flatMap((one) => onOne(one, { examined, masterTimeout })),
    ...(guarded ? onGuard({ examined, able, voters, locksIn }) : []),
    ...onAll(examined),
  ];
  const healthy = findings.every(({ level }) => level !== 'problem');
  return { healthy, masters, quorum: quorumOf(masters), voters, locksIn, findings };
}

// Below that number, a marker shows that an application has switched the guard on.
export function isGuarded(examined: readonly Examination[]): boolean {
  return examined.length >= GUARDED_FROM || serversOf(examined).some(isMet);
}

// Each cluster counts as its primaries.
export function serversOf(examined: readonly Examination[]): readonly Examination[] {
  return examined.flatMap((one) => one.cluster?.shards ?? [one]);
}

function isMet({ report, shard }: Examination): boolean {
  return report?.marker !== undefined || shard?.standing?.isMet === true;
}

export function twinOf(one: Examination, examined: readonly Examination[]): Examination | undefined {
  const first = examined.find((other) => other === one || isSame(one, other));
  return first === one ? undefined : first;
}

function isSame(one: Examination, other: Examination): boolean {
  if (one.cluster && other.cluster) {
    const ids = new Set(one.cluster.ids);
    return other.cluster.ids.some((id) => ids.has(id));
  }
  const identity = identityOf(one);
  return identity !== undefined && identityOf(other) === identity;
}

// Without the permission for INFO, equal nonces at two addresses show that they are one server.
function identityOf({ report }: Examination): string | undefined {
  return report?.run || report?.marker?.run || report?.marker?.nonce || undefined;
}

export function standingIn({ report, isDurable }: Examination): MasterStanding | undefined {
  return report && standingOf(report, isDurable);
}

// Milliseconds until its votes count, 0 if they count now; `undefined` if a process has to connect to it first.
export function waitOf(one: Examination): number | undefined {
  if (one.shard) return one.shard.standing?.wait;
  if (one.cluster) {
    const waits = one.cluster.shards.map((shard) => waitOf(shard) ?? Infinity);
    const wait = Math.min(...waits, Infinity);
    return wait === Infinity ? undefined : wait;
  }
  return standingIn(one)?.wait;
}

// In milliseconds, from the median of all clocks.
export function clockErrorOf({ clock }: Examination, examined: readonly Examination[]): number | undefined {
  const reference = medianOf(serversOf(examined).flatMap((one) => one.clock ?? []));
  return clock && reference && certainDistance(clock, reference);
}

// Whether its votes would count if the restart guard let them. A cluster votes for what any of its primaries serves.
export function canVote(one: Examination, examined: readonly Examination[]): boolean {
  const { unreachable, fault, refusal, missing, cluster } = one;
  if (cluster && !cluster.shards.some((shard) => canVote(shard, [shard]))) return false;
  if (unreachable ?? fault ?? refusal ?? twinOf(one, examined)) return false;
  return !missing.some(isVital);
}

interface Surroundings {
  readonly examined: readonly Examination[];
  readonly masterTimeout: number | undefined;
}

function at(master: string | undefined, ...findings: readonly (Unplaced | undefined)[]): Finding[] {
  return findings.flatMap((finding) => (finding ? [{ ...finding, master }] : []));
}

function onOne(one: Examination, { examined, masterTimeout }: Surroundings): Finding[] {
  const { master, unreachable } = one;
  if (unreachable) return at(master, onContact(unreachable));
  const twin = twinOf(one, examined);
  if (twin) {
    const kind = one.cluster ? 'cluster' : 'server';
    const what = `it is the same ${kind} as ${twin.master}: one ${kind} has one vote`;
    return at(master, problem(what, `give the address of another, independent ${kind} in place of one of the two`));
  }
  const { cluster } = one;
  if (cluster) {
    const onShards = cluster.shards.flatMap((shard) => [
      ...onServer(shard, { examined, masterTimeout }),
      ...at(shard.master, ...onShard(shard, cluster)),
    ]);
    return [...at(master, ...onCluster(cluster)), ...onShards];
  }
  return onServer(one, { examined, masterTimeout });
}

function onServer(one: Examination, { examined, masterTimeout }: Surroundings): Finding[] {
  const { master, unreachable, fault } = one;
  if (unreachable) return at(master, onContact(unreachable));
  if (fault !== undefined) return at(master, problem(fault, adviceOnFault(one)));
  const onData = [onRefusal(one), onEviction(one), onPermissions(one), onDisk(one)];
  return at(master, ...onData, onClock(one, examined), onLatency(one, masterTimeout));
}

function onContact({ reason, advice, isPermanent }: ContactFailure): Unplaced {
  const what = isPermanent ? reason : `it cannot be reached: ${reason}`;
  return problem(what, advice ?? 'start it, or correct its address, or let the network through');
}

function adviceOnFault({ report }: Examination): string {
  if (report?.mode === 'cluster') return 'give the whole cluster as one master: redis+cluster://host:port,host:port';
  if (report?.role === 'slave') return 'give the address of a master; replicas add no vote, and none is needed';
  return 'give the address of an independent server of Redis 7.0 or newer, or Valkey, that is no node of a cluster';
}

function onRefusal({ refusal }: Examination): Unplaced | undefined {
  if (!refusal) return undefined;
  const advice =
    refusal.code === 'OOM' ? 'give it more memory, or move other data elsewhere' : 'look into the log of the server';
  return problem(`it does not take a lock: ${refusal.code} ${refusal.reason}`, advice);
}

function onEviction({ report }: Examination): Unplaced | undefined {
  if (report?.eviction === undefined) return undefined;
  const what = `its maxmemory-policy ${report.eviction} drops locks that are held when its memory is full`;
  return problem(what, 'CONFIG SET maxmemory-policy noeviction, and the same in its configuration file');
}

function onPermissions({ missing }: Examination): Unplaced | undefined {
  if (missing.length === 0) return undefined;
  const rules = (of: typeof missing): string => of.map(({ rule }) => rule).join(' ');
  const denied = missing.filter(({ disabled }) => !disabled);
  const effect = missing.some(isVital)
    ? 'locks fail on it'
    : 'locks work, but waiting is slower, restarts go unnoticed, or shared locks and permits fail';
  const advice = [
    ...(denied.length > 0 ? [`ACL SETUSER <its user> ${rules(denied)}`] : []),
    ...(denied.length < missing.length ? ['enable the commands that rename-command takes away'] : []),
  ];
  return problem(`its user lacks ${rules(missing)}: ${effect}`, advice.join('; '));
}

function onDisk({ persistence }: Examination): Unplaced | undefined {
  if (!persistence?.failing) return undefined;
  return problem('its last write to disk failed', 'free disk space or correct its rights: it may refuse writes');
}

function onDurability(able: readonly Examination[]): Finding[] {
  const servers = able.flatMap(({ cluster, master, report, persistence, isDurable = false }) =>
    cluster || !report || !persistence
      ? []
      : [{ master, isDurable, fsync: persistence.fsync, flaws: flawsIn({ ...report, ...persistence }) }],
  );
  const advice = 'two holders are possible after its restart: correct it, or do not declare it `durable`';
  const untrue = servers.flatMap(({ master, isDurable, flaws }) =>
    isDurable ? flaws.map((flaw) => ({ ...problem(`it is declared durable, but ${flaw}`, advice), master })) : [],
  );
  const names = servers
    .filter(({ isDurable, fsync, flaws }) => !isDurable && fsync === 'always' && flaws.length === 0)
    .map(({ master }) => master);
  if (names.length === 0) return untrue;
  const what = `appendfsync is always on ${names.join(', ')}, and a restart is followed by a wait all the same`;
  const hint = 'if no restart loses a write there, declare `durable: true`, and give doctor the option --durable';
  return [...untrue, { ...note(what, hint), master: undefined }];
}

function onClock(one: Examination, examined: readonly Examination[]): Unplaced | undefined {
  const distance = clockErrorOf(one, examined) ?? 0;
  if (Math.abs(distance) <= CLOCK_TOLERANCE) return undefined;
  const what = `its clock is ${duration(Math.abs(distance))} ${distance > 0 ? 'ahead of' : 'behind'} the others`;
  return problem(what, 'set it over the network (chrony, ntpd) by slewing: when it steps, keys expire early or late');
}

function onLatency({ latency }: Examination, given: number | undefined): Unplaced | undefined {
  const masterTimeout = given ?? DEFAULTS.masterTimeout;
  // The fastest answer, because the measuring process may be slow itself.
  if (!latency || latency.fastest < masterTimeout) return undefined;
  const limit = `masterTimeout (${masterTimeout} ms${given === undefined ? ' by default' : ''})`;
  const what = `its fastest answer took ${duration(latency.fastest)}, longer than ${limit}: from here, requests to it fail`;
  const value = `masterTimeout: '${enoughFor(latency.fastest)}ms' or more`;
  return given === undefined
    ? note(what, `where the application is as far away, set ${value}; --master-timeout names its value here`)
    : problem(what, `where the application is as far away, set ${value}`);
}

interface Votes {
  readonly examined: readonly Examination[];
  // They would vote if the restart guard let them.
  readonly able: readonly Examination[];
  readonly voters: readonly string[];
  readonly locksIn: number | null;
}

function onGuard(votes: Votes): Finding[] {
  const { able, voters, examined } = votes;
  // One line about all masters is enough if no application has ever connected to them.
  const notes = serversOf(examined).some(isMet) ? serversOf(able).flatMap(onStanding) : [];
  notes.push(...onDurability(able));
  // Every other cause that keeps a master from voting has its own finding.
  const isShort = able.length >= quorumOf(examined.length) && voters.length < quorumOf(examined.length);
  return isShort ? [...notes, { ...onShortage(votes), master: undefined }] : notes;
}

function onStanding(one: Examination): Finding[] {
  if (one.shard) return onSeals(one);
  const standing = standingIn(one);
  if (!standing || standing.wait === 0) return [];
  const { data, wait, reason } = standing;
  const { master, report } = one;
  if (wait !== undefined) {
    const what = `its votes do not count for ${duration(wait)}: ${plain(reason)}`;
    const advice = report?.marker?.isVetoed
      ? 'wait: a process that held a lock has met it, and that lock may be older'
      : `wait; or, if certainly no lock from before is held (two holders are possible otherwise): npx nestjs-redlock trust ${master}`;
    return [{ ...note(what, advice), master }];
  }
  const effect =
    data === 'renamed'
      ? 'the next process that meets it lets it vote at once'
      : `the next process that meets it lets it wait, for up to maxTtl (${duration(quarantineFor(DEFAULTS.maxTtl))} by default)`;
  return [{ ...note(`its votes do not count: ${plain(reason)}`, effect), master }];
}

function onSeals({ master, shard }: Examination): Finding[] {
  const { standing } = shard ?? {};
  if (!standing || standing.wait === 0) return [];
  const { wait, reason } = standing;
  if (wait !== undefined) {
    const what = `the votes of some of its partitions do not count for ${duration(wait)}: ${plain(reason)}`;
    return [{ ...note(what, 'wait: every lock from before ends in this time'), master }];
  }
  const what = `the votes of some of its partitions do not count: ${plain(reason)}`;
  return [
    { ...note(what, 'the next process that meets them lets them wait until every older lock has ended'), master },
  ];
}

function onShortage({ examined, voters, locksIn }: Votes): Unplaced {
  const until = locksIn === null ? 'until a process has met the masters' : `for ${duration(locksIn)}`;
  const count = `${votesOf(voters.length, examined.length)} now, ${quorumOf(examined.length)} must`;
  return problem(`no lock can be taken ${until}: ${count}`, adviceOnShortage(examined, locksIn));
}

function adviceOnShortage(examined: readonly Examination[], locksIn: number | null): string {
  const early = `about ${duration(EARLY_AFTER)} after the first application connects, unless a lock is held`;
  if (mayVoteEarly(examined.map(({ report }) => report))) {
    if (locksIn !== null) return `wait; they may vote ${early}`;
    return (
      `start the application: they vote ${early} (if it runs already: give its keyPrefix as --prefix, ` +
      'or --no-restart-guard if it has restartGuard: false)'
    );
  }
  if (locksIn !== null) return 'wait; the restart guard ends this by itself, and maxTtl bounds it';
  return 'start the application: masters that it does not know wait until every older lock has ended, for up to maxTtl';
}

function onAll(examined: readonly Examination[]): Finding[] {
  const { length } = examined;
  const findings = onOwnClock(examined);
  if (length === 1) {
    findings.push(note('one master is a single point of failure', 'use three or five that do not fail together'));
  } else if (length % 2 === 0) {
    const what = `${length} masters survive no more failures than ${length - 1}`;
    findings.push(note(what, `use ${length + 1}, or ${length - 1}`));
  }
  if (
    length < GUARDED_FROM &&
    serversOf(examined).some(({ persistence }) => persistence && !keepsEveryWrite(persistence))
  ) {
    const what =
      'a master that restarts forgets its locks, and with fewer than three the restart guard is off by default';
    const advice = examined.some(({ cluster }) => cluster)
      ? 'restartGuard: true, or fencing tokens: a failover of a cluster may lose locks, whatever is kept on disk'
      : 'choose one: restartGuard: true, and no lock for maxTtl after a restart; with appendfsync always and durable: ' +
        'true beside it, no such pause; a start no earlier than maxTtl after the stop; fencing tokens or a unique index';
    findings.push(note(what, advice));
  }
  return at(undefined, ...findings);
}

// A fencing token starts at the clock of the process that draws it.
function onOwnClock(examined: readonly Examination[]): Unplaced[] {
  const reference = medianOf(serversOf(examined).flatMap(({ clock }) => clock ?? []));
  const distance = reference ? certainDistance(reference, HERE) : 0;
  if (!reference || Math.abs(distance) <= CLOCK_TOLERANCE) return [];
  const side = distance > 0 ? 'behind' : 'ahead of';
  const what = `the clock of this machine is ${duration(Math.abs(middleOf(reference)))} ${side} the masters`;
  return [note(what, 'where an application runs, set it over the network: fencing tokens begin with its time')];
}

function keepsEveryWrite({ appendOnly, fsync }: NonNullable<Examination['persistence']>): boolean {
  return appendOnly && fsync === 'always';
}
