import { parseDuration } from '../core/settings/duration.js';
import { type Examination, examine } from './examination.js';
import type { CommandContext } from './session.js';
import { judge, type Verdict } from './findings.js';
import { ExaminedMasters, middleOf, standingIn, waitOf } from './votes.js';
import { isVital } from './permissions.js';
import { type Paint, plain, table, type Terminal } from './terminal.js';
import { counted, duration, votesOf } from '../core/display.js';

// Characters of a run id: enough to distinguish servers.
const SHOWN_OF_RUN = 8;

// More columns would be too narrow to read.
const MASTERS_IN_TABLE = 4;

interface DoctorOptions {
  readonly restartGuard?: boolean;
  readonly durable?: boolean;
  readonly masterTimeout?: string;
}

export async function doctor(
  { endpoints, settings, timeout, json, terminal }: CommandContext,
  { restartGuard = true, durable = false, masterTimeout: given }: DoctorOptions = {},
): Promise<number> {
  const masterTimeout = given === undefined ? undefined : parseDuration('--master-timeout', given, 1);
  const found = await Promise.all(endpoints.map((one) => examine(one, settings, timeout)));
  const examined = new ExaminedMasters(found.map((one) => ({ ...one, isDurable: durable })));
  const guarded = restartGuard && examined.areGuarded;
  const verdict = judge(examined.all, { guarded, masterTimeout });
  if (json) terminal.print(JSON.stringify(asJson(examined, verdict), null, 2));
  else show(examined, { ...verdict, guarded }, terminal);
  return verdict.healthy ? 0 : 1;
}

function asJson(examined: ExaminedMasters, verdict: Verdict): object {
  return { ...verdict, examined: examined.all.map((one) => examinationAsJson(one, examined, verdict)) };
}

function examinationAsJson(one: Examination, examined: ExaminedMasters, verdict: Verdict): object {
  const { cluster, shard, master, unreachable, report, fault, persistence, missing, refusal, clock, latency } = one;
  const { version, run, role, mode, uptime, eviction } = report ?? {};
  const offset = clock && { ...clock, fromOthers: examined.clockErrorOf(one) };
  const server = { version, run, role, mode, uptime, eviction, persistence };
  return {
    master,
    ...(!shard && { votes: verdict.voters.includes(master) }),
    unreachable,
    fault,
    data: dataAsJson(one),
    ...server,
    missing: missing.map(({ rule }) => rule),
    refusal,
    offset,
    latency,
    ...shard,
    ...(cluster && {
      cluster: { ...cluster, shards: cluster.shards.map((each) => examinationAsJson(each, examined, verdict)) },
    }),
  };
}

function dataAsJson(one: Examination): object | undefined {
  const standing = standingIn(one);
  if (!standing || one.shard) return undefined;
  const { data, wait, reason } = standing;
  const marker = one.report?.marker;
  const { writtenBy, writtenAt, reason: why, from, isVetoed, knownTtl: maxTtl } = marker ?? {};
  return {
    state: data,
    wait: wait ?? null,
    reason: wait === 0 ? undefined : reason,
    marker: marker && { writtenBy, writtenAt, reason: why, from, isVetoed, maxTtl },
  };
}

interface Shown extends Verdict {
  readonly guarded: boolean;
}

function show(examined: ExaminedMasters, verdict: Shown, terminal: Terminal): void {
  const { servers } = examined;
  for (let first = 0; first < servers.length; first += MASTERS_IN_TABLE) {
    const some = servers.slice(first, first + MASTERS_IN_TABLE);
    const columns = some.map((one) => columnOf(one, examined, verdict));
    const names = Object.keys(columns[0] ?? {});
    const rows = names.map((name) => [name, ...columns.map((column) => column[name] ?? '-')]);
    terminal.print(table(['master', ...some.map(({ master }) => master)], rows, paintVotes(terminal)));
  }
  for (const finding of verdict.findings) terminal.print(describeFinding(finding, terminal));
  terminal.print(terminal.paint(verdict.healthy ? 'green' : 'red', summaryOf(verdict)));
}

function paintVotes(terminal: Terminal): Paint {
  return (line, { row, column }) => {
    if (row[0] !== 'votes' || column === 0) return line;
    return terminal.paint(row[column] === 'yes' ? 'green' : 'red', line);
  };
}

function columnOf(one: Examination, examined: ExaminedMasters, verdict: Shown): Record<string, string> {
  const { report, persistence, missing, latency, clock, unreachable } = one;
  return {
    votes: votes(one, verdict) ? 'yes' : `no: ${reasonOf(one, examined)}`,
    ...(verdict.guarded && markerOf(one, examined)),
    ...(examined.all.some(({ cluster }) => cluster) && shardOf(one)),
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

function votes(one: Examination, { voters, guarded }: Shown): boolean {
  if (!one.shard) return voters.includes(one.master);
  return new ExaminedMasters([one]).canVote(one) && (!guarded || waitOf(one) === 0);
}

function shardOf({ shard }: Examination): Record<string, string> {
  return {
    partitions: shard ? `${shard.partitions} of 256` : '-',
    replicas: shard ? String(shard.replicas) : '-',
    'node timeout': duration(shard?.nodeTimeout),
  };
}

function dataOf({ standing }: NonNullable<Examination['shard']>): string {
  if (!standing) return '-';
  return standing.wait === undefined ? 'unknown' : 'known';
}

function markerOf(one: Examination, examined: ExaminedMasters): Record<string, string> {
  const marker = one.report?.marker;
  const written = one.report && marker && `${duration(one.report.time - marker.writtenAt)} ago`;
  const data = one.shard ? dataOf(one.shard) : (standingIn(one)?.data ?? '-');
  if (!examined.all.some(({ report }) => report?.marker)) return { data };
  return {
    data,
    'met by': marker ? plain(marker.writtenBy) || '-' : '-',
    met: written ?? '-',
    'last wait': marker ? plain(marker.reason) || '-' : '-',
    'longest ttl': duration(marker?.knownTtl),
  };
}

function reasonOf(one: Examination, examined: ExaminedMasters): string {
  if (one.unreachable) return one.unreachable.code === 'UNREACHABLE' ? 'no connection' : one.unreachable.code;
  if (examined.twinOf(one)) return 'duplicate';
  if (one.report?.role === 'slave') return 'replica';
  if (one.fault !== undefined) return 'unsuitable';
  if (one.refusal) return one.refusal.code;
  if (one.missing.some(isVital)) return 'permissions';
  const wait = waitOf(one);
  return wait === undefined ? 'not met yet' : `waits for ${duration(wait)}`;
}

function wordsOn({ appendOnly, fsync, snapshots }: NonNullable<Examination['persistence']>): string {
  if (appendOnly) return `log, fsync ${fsync ?? 'unknown'}`;
  if (snapshots === undefined) return 'no log';
  return snapshots ? 'snapshots' : 'none';
}

function offsetFrom(one: Examination, examined: ExaminedMasters): string {
  const distance = examined.clockErrorOf(one) ?? 0;
  const width = one.clock ? one.clock.max - middleOf(one.clock) : 0;
  return `${distance > 0 ? '+' : ''}${duration(distance)} ± ${duration(width)}`;
}

function describeFinding({ level, master, what, advice }: Verdict['findings'][number], terminal: Terminal): string {
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
  const state = healthy ? 'healthy' : counted(count, 'problem');
  return `${state}: ${votesOf(voters.length, masters)}, ${quorum} must; ${outlook}`;
}
