import { parseDuration } from '../core/settings/duration.js';
import { Contact } from './contact.js';
import type { Context } from './context.js';
import { middleOf } from './clock-offset.js';
import { type Examination, examine, type Persistence } from './examination.js';
import { clockErrorOf, evidenceOf, type Finding, isGuarded, judge, twinOf, type Verdict } from './findings.js';
import { isVital } from './permissions.js';
import { standingOf } from './standing.js';
import { duration, type Paint, plain, table } from './table.js';
import type { Terminal } from './terminal.js';

/** Number of characters of a run id that are shown: enough to distinguish servers. */
const SHOWN_OF_RUN = 8;

/** More columns would be too narrow to read. */
const MASTERS_IN_TABLE = 4;

/** What the command line states about the applications. */
export interface DoctorOptions {
  /** `false` if their `restartGuard` is `false`. */
  readonly restartGuard?: boolean;
  /** Their `masterTimeout`. */
  readonly masterTimeout?: string;
}

/** Examines all masters and reports what is wrong with them. Resolves with the exit status. */
export async function doctor(
  { sources, settings, timeout, json, terminal }: Context,
  { restartGuard = true, masterTimeout: given }: DoctorOptions = {},
): Promise<number> {
  const masterTimeout = given === undefined ? undefined : parseDuration('--master-timeout', given, 1);
  const contacts = sources.map((source, index) => new Contact(`masters[${index}]`, source, timeout));
  const examined = await Promise.all(contacts.map((contact) => examine(contact, settings)));
  const guarded = restartGuard && isGuarded(examined);
  const verdict = judge(examined, { guarded, masterTimeout });
  if (json) terminal.print(JSON.stringify(asJson(examined, verdict), null, 2));
  else show(examined, { ...verdict, guarded }, terminal);
  return verdict.healthy ? 0 : 1;
}

function asJson(examined: readonly Examination[], verdict: Verdict): object {
  return {
    ...verdict,
    examined: examined.map((one) => {
      const { master, unreachable, report, fault, persistence, missing, refusal, clock, latency } = one;
      const { version, run, role, mode, uptime, eviction } = report ?? {};
      const offset = clock && { ...clock, fromOthers: clockErrorOf(one, examined) };
      const server = { version, run, role, mode, uptime, eviction, persistence };
      return {
        master,
        votes: verdict.voters.includes(master),
        unreachable,
        fault,
        data: dataAsJson(one),
        ...server,
        missing: missing.map(({ rule }) => rule),
        refusal,
        offset,
        latency,
      };
    }),
  };
}

function dataAsJson(one: Examination): object | undefined {
  const evidence = evidenceOf(one);
  if (!evidence) return undefined;
  const { data, wait, reason } = standingOf(evidence);
  const { marker } = evidence.report;
  const { writtenBy, writtenAt, reason: why, from, isVetoed, knownTtl: maxTtl, isDurable } = marker ?? {};
  return {
    state: data,
    wait: wait ?? null,
    reason: wait === 0 ? undefined : reason,
    marker: marker && { writtenBy, writtenAt, reason: why, from, isVetoed, maxTtl, isDurable },
  };
}

interface Shown extends Verdict {
  readonly guarded: boolean;
}

function show(examined: readonly Examination[], verdict: Shown, terminal: Terminal): void {
  for (let first = 0; first < examined.length; first += MASTERS_IN_TABLE) {
    const some = examined.slice(first, first + MASTERS_IN_TABLE);
    const columns = some.map((one) => columnOf(one, examined, verdict));
    const names = Object.keys(columns[0] ?? {});
    const rows = names.map((name) => [name, ...columns.map((column) => column[name] ?? '-')]);
    terminal.print(table(['master', ...some.map(({ master }) => master)], rows, paintVotes(terminal)));
  }
  for (const finding of verdict.findings) terminal.print(describeFinding(finding, terminal));
  terminal.print(terminal.paint(verdict.healthy ? 'green' : 'red', summaryOf(verdict)));
}

/** The row of votes is green or red. */
function paintVotes(terminal: Terminal): Paint {
  return (line, { row, column }) => {
    if (row[0] !== 'votes' || column === 0) return line;
    return terminal.paint(row[column] === 'yes' ? 'green' : 'red', line);
  };
}

function columnOf(one: Examination, examined: readonly Examination[], verdict: Shown): Record<string, string> {
  const { report, persistence, missing, latency, clock, unreachable } = one;
  return {
    votes: verdict.voters.includes(one.master) ? 'yes' : `no: ${reasonOf(one, examined)}`,
    ...(verdict.guarded && markerOf(one, examined)),
    version: report?.version ?? '-',
    role: report?.role ?? '-',
    run: report?.run.slice(0, SHOWN_OF_RUN) || '-',
    uptime: duration(report?.uptime),
    persistence: persistence ? wordsOn(persistence) : '-',
    eviction: report ? (report.eviction ?? 'none') : '-',
    permissions: unreachable ? '-' : missing.length === 0 ? 'complete' : `${missing.length} missing`,
    clock: clock ? offsetFrom(one, examined) : '-',
    latency: latency ? duration(latency.median) : '-',
  };
}

/** The fields of the marker, by which processes agree on whether a master votes. */
function markerOf(one: Examination, examined: readonly Examination[]): Record<string, string> {
  const evidence = evidenceOf(one);
  const marker = evidence?.report.marker;
  const written = evidence && marker && `${duration(evidence.report.time - marker.writtenAt)} ago`;
  const data = evidence ? standingOf(evidence).data : '-';
  if (!examined.some(({ report }) => report?.marker)) return { data };
  return {
    data,
    'met by': marker ? plain(marker.writtenBy) || '-' : '-',
    met: written ?? '-',
    'last wait': marker ? plain(marker.reason) || '-' : '-',
    'longest ttl': duration(marker?.knownTtl),
  };
}

function reasonOf(one: Examination, examined: readonly Examination[]): string {
  if (one.unreachable) return one.unreachable.code === 'UNREACHABLE' ? 'no connection' : one.unreachable.code;
  if (twinOf(one, examined)) return 'duplicate';
  if (one.report?.role === 'slave') return 'replica';
  if (one.fault !== undefined) return 'unsuitable';
  if (one.refusal) return one.refusal.code;
  if (one.missing.some(isVital)) return 'permissions';
  const evidence = evidenceOf(one);
  const wait = evidence && standingOf(evidence).wait;
  return wait === undefined ? 'not met yet' : `waits for ${duration(wait)}`;
}

function wordsOn({ appendOnly, fsync, snapshots }: Persistence): string {
  if (appendOnly) return `log, fsync ${fsync ?? 'unknown'}`;
  if (snapshots === undefined) return 'no log';
  return snapshots ? 'snapshots' : 'none';
}

function offsetFrom(one: Examination, examined: readonly Examination[]): string {
  const distance = clockErrorOf(one, examined) ?? 0;
  const width = one.clock ? one.clock.most - middleOf(one.clock) : 0;
  return `${distance > 0 ? '+' : ''}${duration(distance)} ± ${duration(width)}`;
}

function describeFinding({ level, master, what, advice }: Finding, terminal: Terminal): string {
  const subject = master === undefined ? '' : `${master}: `;
  return `${terminal.paint(level === 'problem' ? 'red' : 'yellow', `${level}:`)} ${subject}${what}\n  -> ${advice}`;
}

function summaryOf({ healthy, masters, quorum, voters, locksIn, findings }: Verdict): string {
  const count = findings.filter(({ level }) => level === 'problem').length;
  const spare = voters.length - quorum;
  const until = locksIn === null ? '' : ` for ${duration(locksIn)}`;
  const outlook =
    spare < 0
      ? `no lock can be taken${until}`
      : spare === 0
        ? 'locks work, but no further master may fail'
        : `locks work, and ${spare}${voters.length < masters ? ' more' : ''} may fail`;
  const state = healthy ? 'healthy' : `${count} ${count === 1 ? 'problem' : 'problems'}`;
  return `${state}: ${voters.length} of ${masters} masters vote, ${quorum} must; ${outlook}`;
}
