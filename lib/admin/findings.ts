import type { Examination } from './examination.js';
import { ExaminedMasters, middleOf, waitOf } from './votes.js';
import { duration, votesOf } from '../settings/display.js';
import { enoughFor } from '../masters/connect.js';
import { quorumOf } from '../redlock/quorum.js';
import { resolveSettings } from '../settings/settings.js';
import type { ContactFailure } from './contact.js';
import { isVital } from './permissions.js';

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
  const able = all.filter((one) => examined.canVote(one, guarded));
  const waits = able.map((one) => (guarded ? waitOf(one) : 0));
  const voters = able.filter((_, i) => waits[i] === 0).map(({ master }) => master);
  const locksIn = waitForQuorum(waits, masters) ?? null;
  const findings = [
    ...all.flatMap((one) => onOne(one, { examined, guarded, masterTimeout })),
    ...(guarded ? onGuard({ examined, able, voters, locksIn }) : []),
    ...onAll(examined),
  ];
  const healthy = findings.every(({ level }) => level !== 'problem');
  return { healthy, masters, quorum: quorumOf(masters), voters, locksIn, findings };
}

interface Surroundings {
  readonly examined: ExaminedMasters;
  readonly guarded: boolean;
  readonly masterTimeout: number | undefined;
}

function at(master: string | undefined, ...findings: readonly (Unplaced | undefined)[]): Finding[] {
  return findings.flatMap((finding) => (finding ? [{ ...finding, master }] : []));
}

function onOne(one: Examination, surroundings: Surroundings): Finding[] {
  const { examined, guarded, masterTimeout } = surroundings;
  const { master, unreachable, fault } = one;
  if (unreachable) return at(master, onContact(unreachable));
  const twin = examined.twinOf(one);
  if (twin) {
    const what = `it is the same server as ${twin.master}: one server has one vote`;
    return at(master, problem(what, `give the address of another, independent server instead of one of the two`));
  }
  if (fault !== undefined) return at(master, problem(fault, adviceOnFault(one)));
  const onData = [onRefusal(one), onEviction(one), onPermissions(one, guarded), onDisk(one)];
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

const ADVICE_ON_REFUSAL: Readonly<Record<string, string>> = {
  OOM: 'give it more memory, or move other data elsewhere',
  WRONGTYPE: 'once it is deleted, the master waits for the `maxTtl` of its applications before it votes',
};

function onRefusal({ refusal }: Examination): Unplaced | undefined {
  if (!refusal) return undefined;
  const advice = ADVICE_ON_REFUSAL[refusal.code] ?? 'look into the log of the server';
  return problem(`it does not take a lock: ${refusal.code} ${refusal.reason}`, advice);
}

function onEviction({ report }: Examination): Unplaced | undefined {
  if (report?.eviction === undefined) return undefined;
  const what = `its maxmemory-policy ${report.eviction} drops locks that are held when its memory is full`;
  return problem(what, 'CONFIG SET maxmemory-policy noeviction, and the same in its configuration file');
}

function onPermissions({ missing }: Examination, guarded: boolean): Unplaced | undefined {
  if (missing.length === 0) return undefined;
  const rules = (of: typeof missing): string => of.map(({ rule }) => rule).join(' ');
  const denied = missing.filter(({ disabled }) => !disabled);
  const effect = missing.some((rule) => isVital(rule, guarded))
    ? 'locks fail on it'
    : 'locks work, but waiting is slower, shared locks and permits fail, or unsuitable servers go unnoticed';
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
  const notes = examined.areMet ? able.flatMap(onWait) : [];
  // Every other cause that keeps a master from voting has its own finding.
  const isShort = able.length >= quorumOf(examined.all.length) && voters.length < quorumOf(examined.all.length);
  return isShort ? [...notes, ...at(undefined, onShortage(votes))] : notes;
}

function onWait(one: Examination): Finding[] {
  const wait = waitOf(one);
  if (wait === 0) return [];
  const isRestarted = one.report?.gate.from !== '';
  if (wait !== undefined) {
    return at(
      one.master,
      note(`it waits ${duration(wait)} before it votes`, 'wait: every lock from before ends in this time'),
    );
  }
  const what = isRestarted
    ? 'it was restarted, and no process has connected to it since'
    : 'no process has connected to it yet';
  return at(one.master, note(what, 'the first process that does begins its wait, which lasts for maxTtl'));
}

function onShortage({ examined: { all }, voters, locksIn }: Votes): Unplaced {
  const until = locksIn === null ? 'until a process has met the masters' : `for ${duration(locksIn)}`;
  const count = `${votesOf(voters.length, all.length)} now, ${quorumOf(all.length)} must`;
  return problem(`no lock can be taken ${until}: ${count}`, adviceOnShortage(locksIn));
}

function adviceOnShortage(locksIn: number | null): string {
  if (locksIn !== null) return 'wait: the restart guard ends this by itself';
  return 'start the application: masters wait for maxTtl after the first connection of a process';
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
  if (examined.all.some(({ isGroup }) => isGroup)) {
    const what = 'a failover of a cluster or a Sentinel group may lose locks, and the restart guard is off beside one';
    findings.push(note(what, 'use fencing tokens or a unique index where two holders would do damage'));
  } else if (
    !examined.areGuardedByDefault &&
    examined.all.some(({ persistence }) => persistence && !keepsEveryWrite(persistence))
  ) {
    const what =
      'a master that restarts forgets its locks, and with fewer than three the restart guard is off by default';
    const advice =
      'choose one: restartGuard: true, and no lock for maxTtl after a restart; a start no earlier than the longest ttl ' +
      'after the stop; fencing tokens or a unique index';
    findings.push(note(what, advice));
  }
  return at(undefined, ...findings);
}

function onOwnClock({ clock }: ExaminedMasters): Unplaced[] {
  const { min, max } = clock ?? { min: 0, max: 0 };
  const distance = min > 0 ? min : Math.min(max, 0);
  if (!clock || Math.abs(distance) <= CLOCK_TOLERANCE) return [];
  const side = distance > 0 ? 'behind' : 'ahead of';
  const what = `the clock of this machine is ${duration(Math.abs(middleOf(clock)))} ${side} the masters`;
  return [note(what, 'where an application runs, set it over the network: the times of locks and jobs are its own')];
}

// In milliseconds; `undefined` if a process has to connect to the masters first.
function waitForQuorum(waits: readonly (number | undefined)[], masters: number): number | undefined {
  const sorted = waits.map((wait) => wait ?? Infinity).sort((a, b) => a - b);
  const wait = sorted[quorumOf(masters) - 1] ?? Infinity;
  return wait === Infinity ? undefined : wait;
}

function keepsEveryWrite({ appendOnly, fsync }: NonNullable<Examination['persistence']>): boolean {
  return appendOnly && fsync === 'always';
}
