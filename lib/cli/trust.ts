import { Keyspace } from '../core/keyspace.js';
import { generationFrom } from '../core/state/state-entry.js';
import { SystemRandom } from '../runtime/system.js';
import type { Settings } from '../core/settings/settings.js';
import { redactUrl, showNames, duration } from '../core/display.js';
import { faultOf, parseServerIdentity, type ServerIdentity } from '../redis/replies.js';
import { MARK, REPORT } from '../redis/scripts/lua.generated.js';
import { announcementOf, markArguments, type MarkerChange } from '../redis/guard/marker.js';
import { isClusterSource } from '../redis/cluster/cluster-source.js';
import { redisClient } from '../redis/master-source.js';
import { Contact, type ContactFailure, isFailure, type ContactResult } from './contact.js';
import { askInfo } from './examination.js';
import { type CommandContext, operator, UsageError } from './session.js';
import { plain, table } from './terminal.js';
import { standingOf } from './votes.js';

interface TrustOptions {
  readonly yes?: boolean;
}

// A process may change the marker between the read and the write, by announcing a ttl or by a veto.
const MAX_RACES = 5;

interface Known {
  readonly report: ServerIdentity;
  readonly standing: ReturnType<typeof standingOf>;
}

export async function trust(context: CommandContext, name: string, { yes = false }: TrustOptions): Promise<number> {
  const { endpoints, timeout } = context;
  refuseCluster(name, context);
  const contacts = endpoints.flatMap((one) => ('seeds' in one ? [] : [new Contact(one, timeout)]));
  const contact = named(name, contacts);
  const others = contacts.filter((other) => other !== contact);
  try {
    return await trustOn(contact, others, { context, yes });
  } finally {
    for (const each of contacts) each.close();
  }
}

// Each partition of a cluster waits on its own.
function refuseCluster(name: string, { endpoints }: CommandContext): void {
  const clusters = endpoints.filter((one) => 'seeds' in one);
  const isNamed = isClusterSource(name) || clusters.some((cluster) => cluster.name === name);
  const isCluster = isNamed || clusters.length === endpoints.length;
  if (isCluster) throw new UsageError('a cluster cannot be trusted: each of its partitions votes when its wait ends');
}

function named(name: string, contacts: readonly Contact[]): Contact {
  const address = addressIn(name);
  const found = contacts.find((contact) => contact.name === name || contact.name === address);
  if (found) return found;
  const names = contacts.map((contact) => contact.name).join(', ');
  throw new UsageError(`${showNames([redactUrl(name)])} is none of the masters: give one of ${names}`);
}

// A URL is accepted as well as the name that `doctor` shows.
function addressIn(name: string): string | undefined {
  try {
    return redisClient('master', name.includes('://') ? name : `redis://${name}`).name;
  } catch {
    return undefined;
  }
}

interface Call {
  readonly context: CommandContext;
  readonly yes: boolean;
}

async function trustOn(contact: Contact, others: readonly Contact[], { context, yes }: Call): Promise<number> {
  const { terminal, json, settings } = context;
  const shown = (await contact.open()) ?? (await read(contact, settings));
  const refusal = refusalOf(shown);
  if (refusal !== undefined) return refuse(contact.name, refusal, context);
  const before = shown as Known;
  if (before.standing.wait === 0) return end(contact.name, 'its votes count already: nothing to do', context);
  if (!json) show(contact.name, before, context);
  if (!yes && !(await confirm(contact.name, before, context))) {
    terminal.complain(`${contact.name} was not trusted`);
    return 1;
  }
  const maxTtl = before.standing.data === 'unknown' ? await longestTtl(before, others, settings) : 0;
  for (let race = 0; race < MAX_RACES; race++) {
    const now = await read(contact, settings);
    const trouble = refusalOf(now) ?? changeSince(before, now as Known);
    if (trouble !== undefined) return refuse(contact.name, trouble, context);
    const known = now as Known;
    if (known.standing.wait === 0) return end(contact.name, 'its votes count already: nothing to do', context);
    const outcome = await write(contact, known, { settings, maxTtl });
    if (isFailure(outcome)) return refuse(contact.name, `it did not take the marker: ${outcome.reason}`, context);
    if (outcome.value === 1) return report(recordOf(contact.name, known), context);
  }
  return refuse(contact.name, 'its marker changes all the time: try again', context);
}

async function read(contact: Contact, settings: Settings): Promise<Known | ContactFailure> {
  const outcome = await contact.call('EVAL', REPORT, 1, new Keyspace(settings.keyPrefix).marker);
  if (!isFailure(outcome)) return knownFrom(parseServerIdentity(outcome.value));
  const report = await askInfo(contact);
  return report && faultOf(report) !== undefined ? knownFrom(report) : outcome;
}

function knownFrom(report: ServerIdentity): Known {
  return { report, standing: standingOf(report) };
}

function refusalOf(answer: Known | ContactFailure): string | undefined {
  return 'code' in answer ? `it cannot be asked: ${answer.reason}` : faultOf(answer.report);
}

// Why the state that the operator was shown is out of date.
function changeSince({ report: before }: Known, { report: now }: Known): string | undefined {
  const isSame = before.run === now.run && before.replid === now.replid && before.marker?.nonce === now.marker?.nonce;
  const isWorse = now.marker?.isVetoed === true && before.marker?.isVetoed !== true;
  if (isSame && !isWorse) return undefined;
  return isSame
    ? 'a process that holds a lock has objected meanwhile: look again'
    : 'its data or its marker has changed meanwhile: look again';
}

// To be recorded for the next time that a master loses its data.
async function longestTtl({ report }: Known, others: readonly Contact[], settings: Settings): Promise<number> {
  const answers = await Promise.all(others.map(async (other) => (await other.open()) ?? (await read(other, settings))));
  const known = answers.flatMap((answer) => {
    if ('code' in answer || answer.standing.data !== 'known') return [];
    return [answer.report.marker?.knownTtl ?? 0];
  });
  const remembered = report.marker?.knownTtl ?? 0;
  return Math.max(remembered, ...(known.length > 0 ? known : [settings.maxTtl]));
}

interface Writing {
  readonly settings: Settings;
  // The largest ttl to record with data that was unknown.
  readonly maxTtl: number;
}

function write(contact: Contact, known: Known, { settings, maxTtl }: Writing): Promise<ContactResult> {
  const { report, standing } = known;
  const { run, replid, time, marker } = report;
  const by = operator();
  const change: MarkerChange = {
    ...{ run, replid, from: time, by, at: time, why: `trusted by ${by}` },
    // A new nonce, so that processes that remember the old one treat the data as new.
    ...(standing.data === 'unknown' && {
      ...{ nonce: new SystemRandom().token(), vetoed: 0 },
      ...{ ttls: announcementOf(maxTtl, time + maxTtl), known: maxTtl },
      // No lock is held, says the operator. What the data lacks of the states of locks is still unknown.
      ...{ generation: generationFrom(new SystemRandom().token(), time), first: '' },
    }),
  };
  // The operator may have taken a while.
  const args = markArguments({ run, replid, marker, time: undefined }, change);
  return contact.call('EVAL', MARK, 1, new Keyspace(settings.keyPrefix).marker, ...args);
}

interface TrustRecord {
  readonly at: string;
  readonly by: string;
  readonly master: string;
  readonly trusted: boolean;
  readonly reason: string;
  // In milliseconds; `null` if its wait had not begun.
  readonly left: number | null;
  // A process that held a lock had objected to an early end.
  readonly vetoed: boolean;
  readonly run: string;
}

function trustLine({ at, by, master, trusted, reason, left, vetoed, run }: TrustRecord): string {
  const verb = trusted ? 'trusted' : 'failed to trust';
  const wait = left === null ? 'its wait had not begun' : `${duration(left)} of its wait left`;
  const objection = vetoed ? ', against the veto of a holder' : '';
  return `audit: ${at} ${showNames([by])} ${verb} ${showNames([master])} (run ${run || 'unknown'}, ${plain(reason)}, ${wait}${objection})`;
}

function recordOf(master: string, known: Known): TrustRecord {
  const { report, standing } = known;
  return {
    ...{ at: new Date().toISOString(), by: operator(), master, trusted: true },
    ...{ reason: standing.reason, left: standing.wait ?? null },
    ...{ vetoed: isVetoed(known), run: report.run },
  };
}

// In unknown data, a veto refers to an earlier wait.
function isVetoed({ report, standing }: Known): boolean {
  return report.marker?.isVetoed === true && standing.data !== 'unknown';
}

function report(record: TrustRecord, { terminal, json }: CommandContext): number {
  if (json) terminal.print(JSON.stringify(record, null, 2));
  else {
    terminal.print(terminal.paint('bold', `the votes of ${record.master} count from now on`));
    terminal.print(trustLine(record));
  }
  return 0;
}

function refuse(master: string, reason: string, context: CommandContext): number {
  return end(master, reason, context, 1);
}

function end(master: string, reason: string, { terminal, json }: CommandContext, status = 0): number {
  if (json) terminal.print(JSON.stringify({ master, trusted: false, reason }, null, 2));
  else if (status === 0) terminal.print(`${master}: ${reason}`);
  else terminal.complain(`${master} was not trusted: ${reason}`);
  return status;
}

function show(master: string, known: Known, { terminal }: CommandContext): void {
  const { report, standing } = known;
  const { marker, time } = report;
  const left = standing.wait === undefined ? 'until a process has met it' : duration(standing.wait);
  const rows = [
    ['does not vote because', plain(standing.reason)],
    ['waits', left],
    ...(marker
      ? [
          ['marker by', `${plain(marker.writtenBy)}, ${duration(time - marker.writtenAt)} ago`],
          ['ttls up to', `${duration(marker.knownTtl)}, a wait of ${duration(marker.wait)}`],
          ['vetoed', isVetoed(known) ? 'yes, by a process that holds a lock' : 'no'],
        ]
      : []),
  ];
  terminal.print(table(['master', master], rows));
}

async function confirm(master: string, known: Known, { terminal }: CommandContext): Promise<boolean> {
  terminal.complain(
    [
      `${master} waits because it may have forgotten locks that are still held.`,
      'If one of them is, another process can take it as soon as this master votes: two holders at the same time.',
      ...(isVetoed(known) ? ['A process that held a lock has objected to an early end of the wait.'] : []),
      'Go on only if no lock from before the loss can be held, such as when all applications were stopped.',
      'Otherwise wait. Only a fencing token that is checked where a holder writes keeps two of them apart.',
    ].join('\n'),
  );
  const answer = await terminal.ask('Trust it? Type yes: ');
  return answer?.trim().toLowerCase() === 'yes';
}
