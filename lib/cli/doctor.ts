import * as admin from '../admin/admin.js';
import { display, schema } from '../internal.js';
import type { CommandContext } from './session.js';
import { type Paint, table, type Terminal } from './terminal.js';

// Characters of a run id: enough to distinguish servers.
const SHOWN_OF_RUN = 8;

// More columns would be too narrow to read.
const MASTERS_IN_TABLE = 4;

const MASTER_TIMEOUT = schema.optional(schema.duration(1));

interface DoctorOptions {
  readonly restartGuard?: boolean;
  readonly masterTimeout?: string;
}

export async function doctor(
  { endpoints, settings, timeout, json, terminal }: CommandContext,
  { restartGuard = true, masterTimeout: given }: DoctorOptions = {},
): Promise<number> {
  const masterTimeout = MASTER_TIMEOUT('--master-timeout', given);
  const examined = new admin.ExaminedMasters(
    await Promise.all(endpoints.map((one) => admin.examine(one, settings, timeout))),
  );
  const guarded = restartGuard && examined.areGuarded;
  const verdict = admin.judge(examined.all, { guarded, masterTimeout });
  if (json) terminal.print(JSON.stringify(asJson(examined, verdict), null, 2));
  else show(examined, { ...verdict, guarded }, terminal);
  return verdict.healthy ? 0 : 1;
}

function asJson(examined: admin.ExaminedMasters, verdict: admin.Verdict): object {
  return { ...verdict, examined: examined.all.map((one) => examinationAsJson(one, examined, verdict)) };
}

function examinationAsJson(one: admin.Examination, examined: admin.ExaminedMasters, verdict: admin.Verdict): object {
  const { master, unreachable, report, fault, persistence, missing, refusal, clock, latency } = one;
  const { version, run, role, mode, uptime, eviction } = report ?? {};
  const offset = clock && { ...clock, fromOthers: examined.clockErrorOf(one) };
  const server = { version, run, role, mode, uptime, eviction, persistence };
  return {
    master,
    votes: verdict.voters.includes(master),
    unreachable,
    fault,
    wait: admin.waitOf(one) ?? null,
    ...server,
    missing: missing.map(({ rule }) => rule),
    refusal,
    offset,
    latency,
  };
}

interface Shown extends admin.Verdict {
  readonly guarded: boolean;
}

function show(examined: admin.ExaminedMasters, verdict: Shown, terminal: Terminal): void {
  const { all: servers } = examined;
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

function columnOf(one: admin.Examination, examined: admin.ExaminedMasters, verdict: Shown): Record<string, string> {
  const { report, persistence, missing, latency, clock, unreachable } = one;
  return {
    votes: votes(one, verdict) ? 'yes' : `no: ${reasonOf(one, examined, verdict)}`,
    version: report?.version ?? '-',
    role: report?.role ?? '-',
    run: report?.run.slice(0, SHOWN_OF_RUN) || '-',
    uptime: display.duration(report?.uptime),
    persistence: persistence ? wordsOn(persistence) : '-',
    eviction: report ? (report.eviction ?? 'none') : '-',
    permissions: unreachable ? '-' : missing.length === 0 ? 'complete' : `${missing.length} missing`,
    clock: clock ? offsetFrom(one, examined) : '-',
    latency: latency ? display.duration(latency.median) : '-',
  };
}

function votes(one: admin.Examination, { voters }: Shown): boolean {
  return voters.includes(one.master);
}

function reasonOf(one: admin.Examination, examined: admin.ExaminedMasters, { guarded }: Shown): string {
  if (one.unreachable) return one.unreachable.code === 'UNREACHABLE' ? 'no connection' : one.unreachable.code;
  if (examined.twinOf(one)) return 'duplicate';
  if (one.report?.role === 'slave') return 'replica';
  if (one.fault !== undefined) return 'unsuitable';
  if (one.refusal) return one.refusal.code;
  if (one.missing.some((rule) => admin.isVital(rule, guarded))) return 'permissions';
  const wait = admin.waitOf(one);
  return wait === undefined ? 'not met yet' : `waits ${display.duration(wait)}`;
}

function wordsOn({ appendOnly, fsync, snapshots }: NonNullable<admin.Examination['persistence']>): string {
  if (appendOnly) return `log, fsync ${fsync ?? 'unknown'}`;
  if (snapshots === undefined) return 'no log';
  return snapshots ? 'snapshots' : 'none';
}

function offsetFrom(one: admin.Examination, examined: admin.ExaminedMasters): string {
  const distance = examined.clockErrorOf(one) ?? 0;
  const width = one.clock ? one.clock.max - admin.middleOf(one.clock) : 0;
  return `${distance > 0 ? '+' : ''}${display.duration(distance)} ± ${display.duration(width)}`;
}

function describeFinding(
  { level, master, what, advice }: admin.Verdict['findings'][number],
  terminal: Terminal,
): string {
  const subject = master === undefined ? '' : `${master}: `;
  return `${terminal.paint(level === 'problem' ? 'red' : 'yellow', `${level}:`)} ${subject}${what}\n  -> ${advice}`;
}

function summaryOf({ healthy, masters, quorum, voters, locksIn, findings }: admin.Verdict): string {
  const count = findings.filter(({ level }) => level === 'problem').length;
  const spare = voters.length - quorum;
  const until = locksIn === null ? '' : ` for ${display.duration(locksIn)}`;
  const outlook =
    spare < 0
      ? `no lock can be taken${until}`
      : spare === 0
        ? 'locks work, but no further master may fail'
        : `locks work, and ${spare}${voters.length < masters ? ' more' : ''} may fail`;
  const state = healthy ? 'healthy' : display.counted(count, 'problem');
  return `${state}: ${display.votesOf(voters.length, masters)}, ${quorum} must; ${outlook}`;
}
