import { Contact } from './contact.js';
import type { Context } from './context.js';
import { middleOf } from './clock-offset.js';
import { type Examination, examine, type Persistence } from './examination.js';
import { clockErrorOf, type Finding, judge, twinOf, type Verdict } from './findings.js';
import { duration, table } from './table.js';
import type { Terminal } from './terminal.js';

/** The beginning of a run id tells servers apart. */
const SHOWN_OF_RUN = 8;

/** Examines all masters, and says what is wrong with them. Resolves with the exit status. */
export async function doctor({ sources, settings, timeout, json, terminal }: Context): Promise<number> {
  const contacts = sources.map((source, index) => new Contact(`masters[${index}]`, source, timeout));
  const examined = await Promise.all(contacts.map((contact) => examine(contact, settings)));
  const verdict = judge(examined);
  if (json) terminal.print(JSON.stringify(asJson(examined, verdict), null, 2));
  else show(examined, verdict, terminal);
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
        unreachable,
        fault,
        ...server,
        missing: missing.map(({ rule }) => rule),
        refusal,
        offset,
        latency,
      };
    }),
  };
}

function show(examined: readonly Examination[], verdict: Verdict, terminal: Terminal): void {
  const columns = examined.map((one) => columnOf(one, examined, verdict));
  const names = Object.keys(columns[0] ?? {});
  const rows = names.map((name) => [name, ...columns.map((column) => column[name] ?? '-')]);
  terminal.print(table(['master', ...examined.map(({ master }) => master)], rows));
  for (const finding of verdict.findings) terminal.print(tell(finding, terminal));
  terminal.print(terminal.paint(verdict.healthy ? 'green' : 'red', summaryOf(verdict)));
}

function columnOf(one: Examination, examined: readonly Examination[], verdict: Verdict): Record<string, string> {
  const { report, persistence, missing, latency, clock, unreachable } = one;
  return {
    votes: verdict.voters.includes(one.master) ? 'yes' : `no: ${reasonOf(one, examined)}`,
    version: report?.version ?? '-',
    role: report?.role ?? '-',
    run: report?.run?.slice(0, SHOWN_OF_RUN) ?? '-',
    uptime: duration(report?.uptime),
    persistence: persistence ? wordsOn(persistence) : '-',
    eviction: report ? (report.eviction ?? 'none') : '-',
    permissions: unreachable ? '-' : missing.length === 0 ? 'complete' : `${missing.length} missing`,
    clock: clock ? offsetFrom(one, examined) : '-',
    latency: latency ? duration(latency.median) : '-',
  };
}

function reasonOf(one: Examination, examined: readonly Examination[]): string {
  if (one.unreachable) return 'unreachable';
  if (twinOf(one, examined)) return 'duplicate';
  if (one.report?.role === 'slave') return 'replica';
  if (one.fault !== undefined) return 'unsuitable';
  return one.refusal ? one.refusal.code : 'permissions';
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

function tell({ level, master, what, advice }: Finding, terminal: Terminal): string {
  const subject = master === undefined ? '' : `${master}: `;
  return `${terminal.paint(level === 'problem' ? 'red' : 'yellow', `${level}:`)} ${subject}${what}\n  -> ${advice}`;
}

function summaryOf({ healthy, masters, quorum, voters, findings }: Verdict): string {
  const count = findings.filter(({ level }) => level === 'problem').length;
  const spare = voters.length - quorum;
  const outlook =
    spare < 0
      ? 'no lock can be taken'
      : spare === 0
        ? 'locks work, but no further master may fail'
        : `locks work, and ${spare}${voters.length < masters ? ' more' : ''} may fail`;
  const state = healthy ? 'healthy' : `${count} ${count === 1 ? 'problem' : 'problems'}`;
  return `${state}: ${voters.length} of ${masters} masters can vote, ${quorum} must; ${outlook}`;
}
