import type { MasterReport } from '../redlock/errors.js';
import { inspectionOf, type LockInspection, type Target } from '../operate/inspector.js';
import { Keyspace, NUL } from '../settings/keyspace.js';
import { GRANTED, type HeldReply, type MasterReply } from '../masters/master.interface.js';
import type { Settings } from '../settings/settings.js';
import type { ServerMaster } from '../redis/master-source.js';
import { literally } from '../redis/permissions.js';
import type { Session } from './session.js';

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

// A lock or a permit that has keys on a master.
export type ListedLock = Omit<LockInspection, 'waiting'> &
  Target & {
    // Absent in all but the first permit of a name: its permits have one queue.
    readonly waiting?: number | undefined;
  };

interface Listing {
  readonly locks: readonly ListedLock[];
  readonly unasked: readonly MasterReport[];
}

// `pattern`: of their names, in the syntax of SCAN.
export async function listLocks(session: Session, { keyPrefix }: Settings, pattern: string): Promise<Listing> {
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

function countedOnce(listed: ListedLock, previous: ListedLock | undefined): ListedLock {
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
