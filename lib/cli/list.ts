import { Keyspace, NUL } from '../core/keyspace.js';
import { GRANTED, type HeldReply, type MasterReply } from '../core/master.interface.js';
import type { ServerMaster } from '../redis/master-source.js';
import { heldBy, isReleasedByForce, sharedByWords, table } from './terminal.js';
import type { Settings } from '../core/settings/settings.js';
import { literally } from '../redis/permissions.js';
import { type CommandContext, inSession, type Session } from './session.js';
import type { MasterReport } from '../core/errors.js';
import { type LockInspection, inspectionOf, type Target, titleOf } from '../core/inspector.js';
import { counted, duration, showNames } from '../core/display.js';

interface Search {
  readonly session: Session;
  readonly keyspace: Keyspace;
  // Of resource names, in the syntax of SCAN.
  readonly pattern: string;
}

interface Found {
  readonly master: string;
  readonly held: ReadonlyMap<string, HeldReply>;
  // Why there may be more.
  readonly missing: MasterReply | undefined;
}

async function find(master: ServerMaster, { session, keyspace, pattern }: Search): Promise<Found> {
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
  let missing: MasterReply | undefined;
  for (const { match, isOurs } of passes) {
    const take = async (names: readonly string[]): Promise<MasterReply | undefined> => {
      const keys = names.filter(isOurs);
      const answers = await session.limit(Promise.all(keys.map((key) => inspect(master, key, keyspace))));
      if ('kind' in answers) return answers;
      for (const [i, answer] of answers.entries()) if (answer.kind === 'held') held.set(keys[i] ?? '', answer);
      return answers.find((answer) => answer.kind !== 'held' && answer.kind !== 'granted' && !isForeign(answer));
    };
    missing ??= await master.operator.scan({ match, limit: session.limit, take });
  }
  return { master: master.name, held, missing };
}

function inspect(master: ServerMaster, key: string, keyspace: Keyspace): Promise<MasterReply> {
  const { keys, queues } = keyspace.namesOfTarget(keyspace.targetOf(key));
  return new Promise((resolve) => master.ask({ op: 'inspect', keys, queues }, resolve));
}

// The data of another program.
function isForeign(answer: MasterReply): boolean {
  return answer.kind === 'refused' && answer.code === 'WRONGTYPE';
}

export async function list(context: CommandContext, pattern: string): Promise<number> {
  const { terminal, json, settings } = context;
  const { locks, unasked } = await inSession(context, (session) => listIn(session, settings, pattern));
  if (json) terminal.print(JSON.stringify({ locks: locks.map(brief), unasked }, null, 2));
  else {
    const head = ['resource', 'state', 'remaining', 'masters', 'holder', 'waiting'];
    if (locks.length > 0) terminal.print(table(head, locks.map(rowOf)));
    const where =
      locks.length > 0 ? '' : ` with the prefix ${showNames([settings.keyPrefix])} (--prefix names another)`;
    const found = locks.length === 0 && unasked.length > 0 ? 'no lock was found' : countOf(locks);
    terminal.print(terminal.paint('bold', `${found}${where}`));
  }
  for (const { master, answer } of unasked) {
    const reason = answer && 'reason' in answer ? answer.reason : `no answer within ${context.timeout} ms`;
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

async function listIn(session: Session, { keyPrefix }: Settings, pattern: string): Promise<Listing> {
  const keyspace = new Keyspace(keyPrefix);
  const { masters, absent } = session;
  const found = await Promise.all(masters.map((master) => find(master, { session, keyspace, pattern })));
  const failed = found.flatMap(({ master, missing }) => (missing ? [{ master, answer: missing }] : []));
  const keys = [...new Set(found.flatMap(({ held }) => [...held.keys()]))];
  const locks = targetsOf(keys, keyspace).map(({ key, target }) => ({
    ...inspectionOf(target.resource, [
      ...found.map(({ master, held, missing }) => ({ master, answer: held.get(key) ?? missing ?? GRANTED })),
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
    .map((key) => ({ key, target: keyspace.targetOf(key) }))
    .sort(({ target: a }, { target: b }) => {
      if (a.resource !== b.resource) return a.resource < b.resource ? -1 : 1;
      return (a.slot ?? -1) - (b.slot ?? -1);
    });
}

function countOf(all: readonly Listed[]): string {
  const permits = all.filter(({ slot }) => slot !== undefined).length;
  const locks = all.length - permits;
  const parts = [
    ...(locks > 0 || permits === 0 ? [`${counted(locks, 'lock')}${holdersOf(all)}`] : []),
    ...(permits > 0 ? [counted(permits, 'permit')] : []),
  ];
  return parts.join(', ');
}

function holdersOf(all: readonly Listed[]): string {
  const locks = all.filter(({ slot }) => slot === undefined);
  if (locks.every(({ sharedBy }) => sharedBy === undefined)) return '';
  const count = locks.reduce((sum, { state, sharedBy }) => sum + (sharedBy ?? (state === 'held' ? 1 : 0)), 0);
  return ` with ${counted(count, 'holder')}`;
}

function rowOf(listed: Listed): string[] {
  const { state, remaining, masters, holder, sharedBy, waiting } = listed;
  const held = masters.filter(({ answer }) => answer?.kind === 'held').length;
  // An acquisition was given up, or a master was unreachable during the release.
  const words = state === 'free' ? 'leftover' : isReleasedByForce(masters) ? 'released' : state;
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

// SCAN compares bytes.
export function matcherOf(pattern: string): (text: string) => boolean {
  const source = bytes(pattern).replace(/\\(.)|\[(\^?)((?:\\.|[^\]\\])*)\]|(.)/gs, (...groups: string[]) => {
    const [, escaped, negation, members, single] = groups;
    if (members !== undefined) return members === '' ? NOTHING : `[${negation}${classOf(members)}]`;
    if (single === '*') return '.*';
    if (single === '?') return '.';
    return escapeFully(escaped ?? single ?? '');
  });
  const expression = new RegExp(`^(?:${source})$`, 's');
  return (text) => expression.test(bytes(text));
}

// An empty class of a pattern matches no character.
const NOTHING = '(?!)';

function classOf(members: string): string {
  return members.replace(/\\(.)|([^-])/gs, (_, escaped?: string, other?: string) =>
    escapeFully(escaped ?? other ?? ''),
  );
}

function escapeFully(character: string): string {
  return character.replace(/[^A-Za-z0-9]/gs, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function bytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}
