import type { Examination } from './examination.js';
import { plain } from './terminal.js';
import { ExaminedMasters, middleOf, standingIn, standingOf, waitOf } from './votes.js';
import { counted, duration, votesOf } from '../core/display.js';
import { enoughFor } from '../core/health/connect.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { driftOf, resolveSettings } from '../core/settings/settings.js';
import { EARLY_AFTER, EARLY_FROM } from '../redis/guard/new-masters.js';
import type { ContactFailure } from './contact.js';
import { isVital } from './permissions.js';
import { flawsIn } from '../redis/recognition.js';
import type { ServerIdentity } from '../redis/replies.js';

interface Finding {
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

type ClusterExamination = NonNullable<Examination['cluster']>;

// Fewer primaries elect no replica when one of them fails.
const ELECTING = 3;

function onCluster({ unserved, unreachable, shards }: ClusterExamination): Unplaced[] {
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

function onShard({ shard }: Examination, { nodeTimeout }: ClusterExamination): Unplaced[] {
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
const DEFAULTS = resolveSettings({});
// Of a master that lost its data, in milliseconds.
const LONGEST_WAIT = Math.ceil(DEFAULTS.maxTtl + driftOf(DEFAULTS, DEFAULTS.maxTtl));

interface Applications {
  readonly guarded?: boolean;
  readonly masterTimeout?: number | undefined;
}

export function judge(
  all: readonly Examination[],
  { guarded = new ExaminedMasters(all).areGuarded, masterTimeout }: Applications = {},
): Verdict {
  const examined = new ExaminedMasters(all);
  const masters = all.length;
  const able = all.filter((one) => examined.canVote(one));
  const waits = able.map((one) => (guarded ? waitOf(one) : 0));
  const voters = able.filter((_, i) => waits[i] === 0).map(({ master }) => master);
  const locksIn = waitForQuorum(waits, masters) ?? null;
  const findings = [
    ...all.flatMap((one) => onOne(one, { examined, masterTimeout })),
    ...(guarded ? onGuard({ examined, able, voters, locksIn }) : []),
    ...onAll(examined),
  ];
  const healthy = findings.every(({ level }) => level !== 'problem');
  return { healthy, masters, quorum: quorumOf(masters), voters, locksIn, findings };
}

interface Surroundings {
  readonly examined: ExaminedMasters;
  readonly masterTimeout: number | undefined;
}

function at(master: string | undefined, ...findings: readonly (Unplaced | undefined)[]): Finding[] {
  return findings.flatMap((finding) => (finding ? [{ ...finding, master }] : []));
}

function onOne(one: Examination, { examined, masterTimeout }: Surroundings): Finding[] {
  const { master, unreachable } = one;
  if (unreachable) return at(master, onContact(unreachable));
  const twin = examined.twinOf(one);
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
    isDurable ? at(master, ...flaws.map((flaw) => problem(`it is declared durable, but ${flaw}`, advice))) : [],
  );
  const names = servers
    .filter(({ isDurable, fsync, flaws }) => !isDurable && fsync === 'always' && flaws.length === 0)
    .map(({ master }) => master);
  if (names.length === 0) return untrue;
  const what = `appendfsync is always on ${names.join(', ')}, and a restart is followed by a wait all the same`;
  const hint = 'if no restart loses a write there, declare `durable: true`, and give doctor the option --durable';
  return [...untrue, ...at(undefined, note(what, hint))];
}

function onClock(one: Examination, examined: ExaminedMasters): Unplaced | undefined {
  const distance = examined.clockErrorOf(one) ?? 0;
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
  readonly examined: ExaminedMasters;
  // They would vote if the restart guard let them.
  readonly able: readonly Examination[];
  readonly voters: readonly string[];
  readonly locksIn: number | null;
}

function onGuard(votes: Votes): Finding[] {
  const { able, voters, examined } = votes;
  // One line about all masters is enough if no application has ever connected to them.
  const notes = examined.areMet ? new ExaminedMasters(able).servers.flatMap(onStanding) : [];
  notes.push(...onDurability(able));
  // Every other cause that keeps a master from voting has its own finding.
  const isShort = able.length >= quorumOf(examined.all.length) && voters.length < quorumOf(examined.all.length);
  return isShort ? [...notes, ...at(undefined, onShortage(votes))] : notes;
}

function onStanding(one: Examination): Finding[] {
  const { master, shard } = one;
  const standing = shard ? shard.standing : standingIn(one);
  if (!standing || standing.wait === 0) return [];
  const { wait, reason } = standing;
  const votes = shard ? 'the votes of some of its partitions do' : 'its votes do';
  const what = `${votes} not count${wait === undefined ? '' : ` for ${duration(wait)}`}: ${plain(reason)}`;
  return at(master, note(what, adviceOnStanding(one, wait)));
}

function adviceOnStanding(one: Examination, wait: number | undefined): string {
  const { master, shard, report } = one;
  if (shard) {
    return wait === undefined
      ? 'the next process that meets them lets them wait until every older lock has ended'
      : 'wait: every lock from before ends in this time';
  }
  if (wait !== undefined) {
    return report?.marker?.isVetoed
      ? 'wait: a process that held a lock has met it, and that lock may be older'
      : `wait; or, if certainly no lock from before is held (two holders are possible otherwise): npx nestjs-redlock trust ${master}`;
  }
  return standingIn(one)?.data === 'renamed'
    ? 'the next process that meets it lets it vote at once'
    : `the next process that meets it lets it wait, for up to maxTtl (${duration(LONGEST_WAIT)} by default)`;
}

function onShortage({ examined: { all }, voters, locksIn }: Votes): Unplaced {
  const until = locksIn === null ? 'until a process has met the masters' : `for ${duration(locksIn)}`;
  const count = `${votesOf(voters.length, all.length)} now, ${quorumOf(all.length)} must`;
  return problem(`no lock can be taken ${until}: ${count}`, adviceOnShortage(all, locksIn));
}

function adviceOnShortage(all: readonly Examination[], locksIn: number | null): string {
  const early = `about ${duration(EARLY_AFTER)} after the first application connects, unless a lock is held`;
  if (mayVoteEarly(all.map(({ report }) => report))) {
    if (locksIn !== null) return `wait; they may vote ${early}`;
    return (
      `start the application: they vote ${early} (if it runs already: give its keyPrefix as --prefix, ` +
      'or --no-restart-guard if it has restartGuard: false)'
    );
  }
  if (locksIn !== null) return 'wait; the restart guard ends this by itself, and maxTtl bounds it';
  return 'start the application: masters that it does not know wait until every older lock has ended, for up to maxTtl';
}

function onAll(examined: ExaminedMasters): Finding[] {
  const { length } = examined.all;
  const findings = onOwnClock(examined);
  if (length === 1) {
    findings.push(note('one master is a single point of failure', 'use three or five that do not fail together'));
  } else if (length % 2 === 0) {
    const what = `${length} masters survive no more failures than ${length - 1}`;
    findings.push(note(what, `use ${length + 1}, or ${length - 1}`));
  }
  if (
    !examined.areGuardedByDefault &&
    examined.servers.some(({ persistence }) => persistence && !keepsEveryWrite(persistence))
  ) {
    const what =
      'a master that restarts forgets its locks, and with fewer than three the restart guard is off by default';
    const advice = examined.all.some(({ cluster }) => cluster)
      ? 'restartGuard: true, or fencing tokens: a failover of a cluster may lose locks, whatever is kept on disk'
      : 'choose one: restartGuard: true, and no lock for maxTtl after a restart; with appendfsync always and durable: ' +
        'true beside it, no such pause; a start no earlier than maxTtl after the stop; fencing tokens or a unique index';
    findings.push(note(what, advice));
  }
  return at(undefined, ...findings);
}

// A fencing token starts at the clock of the process that draws it.
function onOwnClock({ clock }: ExaminedMasters): Unplaced[] {
  const { min, max } = clock ?? { min: 0, max: 0 };
  const distance = min > 0 ? min : Math.min(max, 0);
  if (!clock || Math.abs(distance) <= CLOCK_TOLERANCE) return [];
  const side = distance > 0 ? 'behind' : 'ahead of';
  const what = `the clock of this machine is ${duration(Math.abs(middleOf(clock)))} ${side} the masters`;
  return [note(what, 'where an application runs, set it over the network: fencing tokens begin with its time')];
}

// In milliseconds; `undefined` if a process has to connect to the masters first.
function waitForQuorum(waits: readonly (number | undefined)[], masters: number): number | undefined {
  const sorted = waits.map((wait) => wait ?? Infinity).sort((a, b) => a - b);
  const wait = sorted[quorumOf(masters) - 1] ?? Infinity;
  return wait === Infinity ? undefined : wait;
}

// A process without locks lets all masters vote early: none votes yet, and no holder has vetoed.
function mayVoteEarly(reports: readonly (ServerIdentity | undefined)[]): boolean {
  return (
    reports.length >= EARLY_FROM &&
    reports.every((report) => {
      if (!report) return false;
      const { data, wait } = standingOf(report);
      return data === 'unknown' || (data === 'known' && wait !== 0 && report.marker?.isVetoed === false);
    })
  );
}

function keepsEveryWrite({ appendOnly, fsync }: NonNullable<Examination['persistence']>): boolean {
  return appendOnly && fsync === 'always';
}
