import { quorumOf } from '../core/quorum.js';
import { resolveSettings } from '../core/settings.js';
import { certainDistance, medianOf } from './clock-offset.js';
import type { Failure } from './contact.js';
import type { Examination } from './examination.js';
import { isVital } from './permissions.js';
import { duration } from './table.js';

/** Something that is wrong, or that is good to know. */
export interface Finding {
  /** A `problem` needs a change; a `note` may be as it is wanted. */
  readonly level: 'problem' | 'note';
  /** Address of the master that it is about; `undefined` when it is about all of them. */
  readonly master: string | undefined;
  readonly what: string;
  /** What to change. */
  readonly advice: string;
}

/** What the findings amount to. */
export interface Verdict {
  readonly healthy: boolean;
  readonly masters: number;
  readonly quorum: number;
  /** Masters that can vote. */
  readonly voters: readonly string[];
  readonly findings: readonly Finding[];
}

type Unplaced = Omit<Finding, 'master'>;

/** Clocks that are set over a network are closer together than this many milliseconds. */
const CLOCK_TOLERANCE = 1_000;
/** Fewer masters have no restart guard by default. */
const GUARDED_FROM = 3;
const DEFAULTS = resolveSettings({});

const ADVICE_ON_CONTACT: Readonly<Record<string, string>> = {
  NOAUTH: 'put user and password into its URL: redis://user:password@host',
  WRONGPASS: 'correct user and password in its URL (ACL LIST on the server shows the users)',
  NOPERM: 'grant its user what the server misses',
};

/** What a doctor says about masters that were examined together. */
export function judge(examined: readonly Examination[]): Verdict {
  const findings = [...examined.flatMap((one) => onOne(one, examined)), ...onAll(examined)];
  const voters = examined.filter((one) => canVote(one, examined)).map(({ master }) => master);
  const healthy = findings.every(({ level }) => level !== 'problem');
  return { healthy, masters: examined.length, quorum: quorumOf(examined.length), voters, findings };
}

/** The other master that is the same server, if there is one before this one. */
export function twinOf({ report }: Examination, examined: readonly Examination[]): Examination | undefined {
  const first = examined.find((other) => report?.run !== undefined && other.report?.run === report.run);
  return first?.report === report ? undefined : first;
}

/** How far the clock of a master is certainly away from what most clocks say, in milliseconds. */
export function clockErrorOf({ clock }: Examination, examined: readonly Examination[]): number | undefined {
  const reference = medianOf(examined.flatMap((one) => one.clock ?? []));
  return clock && reference && certainDistance(clock, reference);
}

function canVote(one: Examination, examined: readonly Examination[]): boolean {
  const { unreachable, fault, refusal, missing } = one;
  if (unreachable ?? fault ?? refusal ?? twinOf(one, examined)) return false;
  return !missing.some(isVital);
}

function onOne(one: Examination, examined: readonly Examination[]): Finding[] {
  const at = (findings: (Unplaced | undefined)[]): Finding[] =>
    findings.flatMap((finding) => (finding ? [{ ...finding, master: one.master }] : []));
  if (one.unreachable) return at([onContact(one.unreachable)]);
  const twin = twinOf(one, examined);
  if (twin) {
    const what = `it is the same server as ${twin.master}: one server has one vote`;
    return at([problem(what, 'give the address of another, independent server in place of one of the two')]);
  }
  if (one.fault !== undefined) return at([problem(one.fault, adviceOnFault(one))]);
  return at([onRefusal(one), onEviction(one), onPermissions(one), onDisk(one)]).concat(
    at([onClock(one, examined), onLatency(one), onQuarantine(one)]),
  );
}

function onContact({ code, reason }: Failure): Unplaced {
  const advice = ADVICE_ON_CONTACT[code] ?? 'start it, or correct its address, or let the network through';
  return problem(`it cannot be reached: ${reason}`, advice);
}

function adviceOnFault({ report }: Examination): string {
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
    : 'locks work, but waiting is slower or restarts go unnoticed';
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

function onClock(one: Examination, examined: readonly Examination[]): Unplaced | undefined {
  const distance = clockErrorOf(one, examined) ?? 0;
  if (Math.abs(distance) <= CLOCK_TOLERANCE) return undefined;
  const what = `its clock is ${duration(Math.abs(distance))} ${distance > 0 ? 'ahead of' : 'behind'} the others`;
  return problem(what, 'set it over the network (chrony, ntpd) by slewing: when it steps, keys expire early or late');
}

function onLatency({ latency }: Examination): Unplaced | undefined {
  const { masterTimeout } = DEFAULTS;
  // The fastest, since what measures may be slow itself.
  if (!latency || latency.fastest < masterTimeout) return undefined;
  const what = `even its fastest answer took ${duration(latency.fastest)}, when seen from here`;
  return note(
    what,
    `where the application runs, masterTimeout (${masterTimeout} ms by default) must be longer than that`,
  );
}

function onQuarantine({ report }: Examination): Unplaced | undefined {
  if (!report) return undefined;
  const { marker, run, time, uptime } = report;
  const advice = 'wait; the restart guard ends this by itself, and maxTtl bounds it';
  const left = marker && marker.run === run ? marker.from - time : 0;
  if (left > 0) return note(`its votes do not count for ${duration(left)} more`, advice);
  const young = DEFAULTS.maxTtl - uptime;
  if (young <= 0 || (marker && marker.run === run)) return undefined;
  return note(`it was started ${duration(uptime)} ago: its votes may not count for up to ${duration(young)}`, advice);
}

function onAll(examined: readonly Examination[]): Finding[] {
  const { length } = examined;
  const about = (finding: Unplaced): Finding => ({ ...finding, master: undefined });
  const findings: Finding[] = [];
  if (length === 1) {
    findings.push(
      about(note('one master is a single point of failure', 'use three or five that do not fail together')),
    );
  } else if (length % 2 === 0) {
    const what = `${length} masters survive no more failures than ${length - 1}`;
    findings.push(about(note(what, `use ${length + 1}, or ${length - 1}`)));
  }
  if (length < GUARDED_FROM && examined.some(({ persistence }) => persistence && !keepsEveryWrite(persistence))) {
    const what = 'a master that restarts forgets its locks, and with fewer than three there is no restart guard';
    findings.push(about(note(what, 'appendonly yes with appendfsync always, or delay restarts by maxTtl')));
  }
  return findings;
}

function keepsEveryWrite({ appendOnly, fsync }: NonNullable<Examination['persistence']>): boolean {
  return appendOnly && fsync === 'always';
}

function problem(what: string, advice: string): Unplaced {
  return { level: 'problem', what, advice };
}

function note(what: string, advice: string): Unplaced {
  return { level: 'note', what, advice };
}
