import { type KeyNames, type Keyspace, NUL } from '../core/keyspace.js';
import { holderFrom } from '../core/holder.js';
import { GRANTED, type HeldReply } from '../core/master.interface.js';
import type { Settings } from '../core/settings/settings.js';
import { type Failure, isFailure, keyspaceOf, namesOf, targetNamed } from './contact.js';
import { heldBy, matcherOf, sharedByWords, table } from './terminal.js';
import { literally } from '../redis/permissions.js';
import { answerOf, type Context, inSession, lookAt, readEntry, type Session, type SessionMaster } from './session.js';
import type { MasterReport } from '../core/errors.js';
import { type LockInspection, summarize } from '../core/operator/inspector.js';
import { showNames, duration } from '../core/display.js';
import { type Target, titleOf } from '../core/operator/forced-release.js';

interface Found {
  readonly held: ReadonlyMap<string, HeldReply>;
  // Why there may be more.
  readonly failure: Failure | undefined;
}

// `pattern` is one of resource names, in the syntax of SCAN.
async function scan(member: SessionMaster, settings: Settings, pattern: string): Promise<Found> {
  const keyspace = keyspaceOf(settings);
  const { startOfKeys, startOfSlots } = keyspace;
  const matches = matcherOf(pattern);
  const held = new Map<string, HeldReply>();
  const passes = [
    { match: literally(startOfKeys) + pattern, isOurs: (key: string) => !key.includes(NUL, startOfKeys.length) },
    // The slot of the permit precedes the name, and both may match any part of the pattern.
    {
      match: `${literally(startOfSlots)}*:${pattern}`,
      isOurs: (key: string) => matches(keyspace.permitOf(key)?.resource ?? NUL),
    },
  ];
  let failure: Failure | undefined;
  for (const pass of passes) failure ??= await scanOnce({ ...pass, member, settings, held });
  return { held, failure };
}

interface Pass {
  readonly member: SessionMaster;
  readonly settings: Settings;
  readonly match: string;
  readonly isOurs: (key: string) => boolean;
  readonly held: Map<string, HeldReply>;
}

function scanOnce({ member, settings, match, isOurs, held }: Pass): Promise<Failure | undefined> {
  const keyspace = keyspaceOf(settings);
  return member.contact.scan(match, async (keys) => {
    const ours = keys.filter(isOurs);
    const replies = await Promise.all(
      ours.map((key) => readHeld(member, namesOf(targetNamed(key, keyspace), settings), settings)),
    );
    for (const [i, reply] of replies.entries()) {
      if (reply && 'code' in reply) return reply;
      if (reply) held.set(ours[i] ?? '', reply);
    }
    return undefined;
  });
}

async function readHeld(
  member: SessionMaster,
  names: KeyNames,
  { masterTimeout }: Settings,
): Promise<HeldReply | Failure | undefined> {
  const { contact } = member;
  const [key = '', queue = ''] = [names.keys[0], names.queues[0]];
  const place = contact.at(key);
  const [entry, waiting] = await Promise.all([readEntry(contact, key), place.call('ZCARD', place.stored(queue))]);
  if (!entry) return undefined;
  if ('code' in entry) {
    if (entry.code !== 'WRONGTYPE') return entry;
    // Shared holders, or the data of another program.
    const answer = await lookAt(member, names, masterTimeout);
    return answer?.kind === 'held' ? answer : undefined;
  }
  const { value, remaining } = entry;
  const holder = holderFrom(value);
  const length = isFailure(waiting) ? 0 : Number(waiting.value);
  return { kind: 'held', remaining, waiting: length, ...(holder && { holder }) };
}

export async function list(context: Context, pattern: string): Promise<number> {
  const { terminal, json, settings } = context;
  const { locks, unasked } = await inSession(context, (session) => listIn(session, settings, pattern));
  if (json) terminal.print(JSON.stringify({ locks: locks.map(brief), unasked }, null, 2));
  else {
    const head = ['resource', 'state', 'remaining', 'masters', 'holder', 'waiting'];
    if (locks.length > 0) terminal.print(table(head, locks.map(rowOf)));
    const where =
      locks.length > 0 ? '' : ` with the prefix ${showNames([settings.keyPrefix])} (--prefix names another)`;
    terminal.print(terminal.paint('bold', `${countOf(locks)}${where}`));
  }
  for (const { master, answer } of unasked) {
    const reason = answer && 'reason' in answer ? answer.reason : 'no answer';
    terminal.complain(`${master} was not asked: ${reason}`);
  }
  return unasked.length > 0 ? 1 : 0;
}

type Listed = Omit<LockInspection, 'waiting'> &
  Target & {
    // Absent in all but the first permit of a name: its permits have one queue.
    readonly waiting?: number | undefined;
  };

interface Listing {
  readonly locks: readonly Listed[];
  readonly unasked: readonly MasterReport[];
}

async function listIn({ members, absent }: Session, settings: Settings, pattern: string): Promise<Listing> {
  const keyspace = keyspaceOf(settings);
  const scans = await Promise.all(
    members.map(async (member) => ({ master: member.contact.name, found: await scan(member, settings, pattern) })),
  );
  const asked = scans.map(({ master, found: { held, failure } }) => {
    return { master, held, missing: failure && answerOf(failure) };
  });
  const failed = asked.flatMap(({ master, missing }) => (missing ? [{ master, answer: missing }] : []));
  const keys = [...new Set(asked.flatMap(({ held }) => [...held.keys()]))];
  const locks = targetsOf(keys, keyspace).map(({ key, target }) => ({
    ...summarize(target.resource, [
      ...asked.map(({ master, held, missing }) => ({ master, answer: held.get(key) ?? missing ?? GRANTED })),
      ...absent,
    ]),
    ...target,
  }));
  return { locks: locks.map((lock, index) => countedOnce(lock, locks[index - 1])), unasked: [...absent, ...failed] };
}

function countedOnce(listed: Listed, previous: Listed | undefined): Listed {
  const isLater = previous?.slot !== undefined && previous.resource === listed.resource;
  return isLater ? { ...listed, waiting: undefined } : listed;
}

function targetsOf(keys: readonly string[], keyspace: Keyspace) {
  return keys
    .map((key) => ({ key, target: targetNamed(key, keyspace) }))
    .sort(({ target: a }, { target: b }) => {
      if (a.resource !== b.resource) return a.resource < b.resource ? -1 : 1;
      return (a.slot ?? -1) - (b.slot ?? -1);
    });
}

function countOf(all: readonly Listed[]): string {
  const permits = all.filter(({ slot }) => slot !== undefined).length;
  const locks = all.length - permits;
  const parts = [
    ...(locks > 0 || permits === 0 ? [`${locks} ${locks === 1 ? 'lock' : 'locks'}${holdersOf(all)}`] : []),
    ...(permits > 0 ? [`${permits} ${permits === 1 ? 'permit' : 'permits'}`] : []),
  ];
  return parts.join(', ');
}

function holdersOf(all: readonly Listed[]): string {
  const locks = all.filter(({ slot }) => slot === undefined);
  if (locks.every(({ sharedBy }) => sharedBy === undefined)) return '';
  const count = locks.reduce((sum, { state, sharedBy }) => sum + (sharedBy ?? (state === 'held' ? 1 : 0)), 0);
  return ` with ${count} ${count === 1 ? 'holder' : 'holders'}`;
}

function rowOf(listed: Listed): string[] {
  const { state, remaining, masters, holder, sharedBy, waiting } = listed;
  const held = masters.filter(({ answer }) => answer?.kind === 'held').length;
  // An acquisition was given up, or a master was unreachable during the release.
  const words = state === 'free' ? 'leftover' : state;
  const by = holder ? heldBy(holder) : sharedBy === undefined ? '-' : sharedByWords(sharedBy);
  return [
    ...[titleOf(listed), words, state === 'held' ? duration(remaining) : '-', `${held} of ${masters.length}`],
    ...[by, waiting === undefined ? '' : String(waiting)],
  ];
}

function brief({ resource, slot, state, remaining, masters, holder, sharedBy, waiting }: Listed): object {
  const heldOn = masters.filter(({ answer }) => answer?.kind === 'held').map(({ master }) => master);
  return { resource, slot, state, remaining, holder, sharedBy, waiting, heldOn };
}
