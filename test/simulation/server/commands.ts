import { MARKER_FIELDS } from '../../../lib/redis/guard/marker.js';
import { INFO_FIELDS, type InfoField } from '../../../lib/redis/replies.js';
import { signatureOf } from '../../../lib/core/holder.js';
import type { GrantedReply, HeldReply } from '../../../lib/core/master.interface.js';
import { type OperationContext, reservedFor } from '../../../lib/memory/memory-database.js';
import { carryOut } from '../../../lib/memory/operations.js';
import {
  ENDLESS,
  FREE,
  FREE_WITH_WAITERS,
  EXTENDED_AFTER_HEAL,
  PICKED,
  UNMARKED,
} from '../../../lib/redis/scripts/constants.js';
import { protect, ReplyError } from './database.js';
import { announce, isMarked, type Mark, mark, type Surface } from './operations.js';
import { answerState } from './state.js';
import { scriptOf, scriptWithDigest, type SeenScript } from './seen-scripts.js';

// The only file that knows how a request becomes a command and an answer becomes a reply. Scripts are recognized by
// their source and run by their models: here in operations.ts, and in lib/memory/operations.ts.

/** The fields of INFO that a server has and the library reads. */
export type ServerInfo = Partial<Record<InfoField, string | number>>;

/** The server that runs a command. */
export interface Executor extends Surface {
  /** Digests of the scripts that it has seen. */
  readonly scripts: Set<string>;
  readonly info: () => ServerInfo;
  /** Whether `appendfsync` is `always`. */
  readonly syncsAlways: boolean;
}

/** Runs one command. @throws {ReplyError} */
export function execute(server: Executor, command: string, args: readonly (string | number)[]): unknown {
  server.data.begin();
  const words = args as readonly string[];
  switch (command.toUpperCase()) {
    case 'SET':
      return setUnlessHeld(server, words);
    case 'CONFIG':
      return ['appendfsync', server.syncsAlways ? 'always' : 'everysec'];
    case 'SCRIPT':
      return load(server, words[1] as string).digest;
    case 'EVAL':
      return evaluate(server, load(server, words[0] as string), words);
    case 'EVALSHA': {
      const script = scriptWithDigest(words[0] as string);
      if (!script || !server.scripts.has(script.digest)) {
        throw new ReplyError('NOSCRIPT No matching script. Please use EVAL.');
      }
      return evaluate(server, script, words);
    }
    default:
      throw new Error(`the simulated server does not know ${command}`);
  }
}

function setUnlessHeld({ data }: Executor, [key = '', token = '', , ttl]: readonly string[]): unknown {
  if (data.isReadOnly || data.isFull) data.set(key, token, Number(ttl));
  if (data.exists(key)) return null;
  data.set(key, token, Number(ttl));
  return 'OK';
}

function load(server: Executor, text: string): SeenScript {
  const script = scriptOf(text);
  server.scripts.add(script.digest);
  return script;
}

function evaluate(server: Executor, { name }: SeenScript, words: readonly string[]): unknown {
  const keys = Number(words[1]);
  const argv = words.slice(2 + keys);
  switch (name) {
    case 'requests':
      return answerAll(server, argv);
    case 'report':
      return report(server, keys === 0 ? argv[0] : words[2]);
    case 'mark':
      return mark(server, words[2] as string, argv.map(String));
    case 'state':
      return answerState(server, argv.map(String));
    // Its user may do everything.
    case 'permissions':
      return [];
  }
}

/** The parts of a request, in the order of `request-encoding.ts`. */
type Parts = readonly [op: string, keys: readonly string[], ...rest: unknown[]];

interface Batch {
  readonly server: Executor;
  /** The same server, for the operations that masters in memory share. */
  readonly context: OperationContext;
  readonly mark: Mark | undefined;
  /** Whether the data is what the client expects; `undefined` before the first check. */
  marked: boolean | undefined;
  /** Whether an answer needed the clock. */
  toldTime: boolean;
}

function answerAll(server: Executor, argv: readonly string[]): unknown[] {
  const [marker = '', nonce = '', history = '', hash = '', ...what] = argv;
  const expected = marker === '' ? undefined : { marker, nonce, history };
  const context = contextOf(server, hash, () => (batch.toldTime = true));
  const batch: Batch = { server, context, mark: expected, marked: undefined, toldTime: false };
  const answers: unknown[] = requestsIn(what).map((parts) => {
    try {
      return answer(batch, parts);
    } catch (error) {
      // A short release is not protected: its error fails the whole script.
      if (error instanceof ReplyError && what[0] !== 'give') return error;
      throw error;
    }
  });
  if (batch.toldTime) {
    const time = server.time();
    answers.push([String(Math.floor(time / 1e6)), String(Math.floor(time % 1e6))]);
  }
  return answers;
}

/** Caches the last requests, because a process usually sends the same ones to all masters. */
const last: { text: string; requests: readonly Parts[] } = { text: '[]', requests: [] };

function requestsIn([text = '', ...rest]: readonly string[]): readonly Parts[] {
  if (['take', 'give', 'join', 'part'].includes(text)) return [whole([text, ...rest])];
  if (text !== last.text) {
    last.requests = (JSON.parse(text) as (Parts | readonly string[])[]).map(whole);
    last.text = text;
  }
  return last.requests;
}

/** Expands a short request. */
function whole(parts: Parts | readonly string[]): Parts {
  const [op, key = '', token, third = '', ...ticket] = parts as readonly string[];
  const [queue, waiter, waited] = ticket;
  const waiting = queue === undefined ? [] : [[queue], waiter, Number(waited)];
  if (op === 'take') return ['acquire', [key], token, third, ...waiting];
  if (op === 'give') return ['release', [key], token, '0', [third]];
  if (op === 'join') return ['acquire_shared', [key], token, third, [queue], Number(waiter)];
  if (op === 'part') return ['release_shared', [key], token, [third]];
  return parts as Parts;
}

function answer(batch: Batch, [op, keys, ...rest]: Parts): unknown {
  const { server, context } = batch;
  switch (op) {
    case 'acquire':
      return isKnown(batch) ? answerAcquisition(batch, keys, rest) : UNMARKED;
    case 'extend':
      if (!isKnown(batch)) return UNMARKED;
      if (batch.mark) batch.toldTime = true;
      return statusOf(carryOut(context, requestFor(op, keys, rest)));
    case 'draw': {
      if (!isKnown(batch)) return UNMARKED;
      const [token, counters, atLeast, step] = rest as [string, readonly number[], number, number];
      const drawn = carryOut(context, { op, keys, token, counters, atLeast, isFirst: step === 1 });
      return drawn.kind === 'held' ? 0 : `${FREE} ${drawn.fence}`;
    }
    case 'beat': {
      if (!isKnown(batch)) return UNMARKED;
      batch.toldTime = true;
      const [ttl, lengthens, factor, known] = rest as [number, number, number, number];
      return `${FREE} ${announce(server, batch.mark?.marker ?? '', { ttl, lengthens: lengthens === 1, factor, known })}`;
    }
    case 'release': {
      const [token, keepFor, queues] = rest as [string, string, readonly string[]];
      return statusOf(carryOut(context, { ...RELEASE, keys, queues, token, keepFor: Number(keepFor) }));
    }
    case 'leave': {
      const [waiter, queues, isShared, nextWaited] = rest as [string, readonly string[], number, number?];
      return statusOf(carryOut(context, { op, keys, queues, waiter, isShared: isShared === 1, nextWaited }));
    }
    case 'acquire_shared':
    case 'extend_shared':
    case 'pick':
      if (!isKnown(batch)) return UNMARKED;
      batch.toldTime = true;
      return statusOf(carryOut(context, requestFor(op, keys, rest)));
    case 'release_shared': {
      const [token, queues] = rest as [string, readonly string[]];
      return statusOf(carryOut(context, { ...RELEASE, keys, queues, token, isShared: true }));
    }
    case 'raise_barrier': {
      const [waiter, waited] = rest as [string, number?];
      return statusOf(carryOut(context, { op: 'raise-barrier', keys: [], barriers: keys, waiter, waited }));
    }
    case 'inspect':
      return statusOf(carryOut(context, { op, keys, queues: rest[0] as readonly string[] }));
    case 'probe':
      return isKnown(batch) ? statusOf(carryOut(context, { op, keys })) : UNMARKED;
    default:
      throw new Error(`the simulated server does not know the operation ${op}`);
  }
}

const RELEASE = { op: 'release', keepFor: 0, ttl: 0 } as const;

/** Barriers, time and queues of a shared request; queues, waiter and time of a request for a permit. */
type ListedParts = [first?: readonly string[], second?: string | number, third?: unknown, waiter?: string];

/** A request for an extension, shared keys or a permit. */
function requestFor(
  op: 'extend' | 'acquire_shared' | 'extend_shared' | 'pick',
  keys: readonly string[],
  [token, life, ...rest]: readonly unknown[],
): Parameters<typeof carryOut>[1] {
  const request = { keys, token: token as string, ttl: Number(life), withdrawn: false };
  if (op === 'extend') return { op, ...request };
  if (op === 'extend_shared') return { op: 'extend', ...request, isShared: true };
  const [first, second, third, fourth] = rest as ListedParts;
  if (op === 'pick') {
    const ticket = { queues: first ?? [], waiter: String(second), waited: Number(third) };
    return { op, ...request, queue: first && ticket };
  }
  const waited = Number(second);
  const queues = third as readonly string[] | undefined;
  const queue = queues && fourth !== undefined ? { queues, waiter: fourth, waited } : undefined;
  return { op: 'acquire', ...request, queue, sharing: { barriers: first ?? [], waited } };
}

function contextOf(server: Executor, counters: string, onTime: () => void): OperationContext {
  const { data, lives, publish } = server;
  const now = (): number => {
    onTime();
    return server.time() / 1_000;
  };
  return { data, lives, publish, counters, now, attempt: protect };
}

/** What a script returns for a reply. */
function statusOf(reply: GrantedReply | HeldReply): number | string {
  if (reply.kind === 'held') {
    const { remaining = ENDLESS, waiting = '' } = reply;
    return `${remaining.toFixed(0)} ${waiting}${signatureIn(reply)}`;
  }
  if (reply.picked !== undefined) return `${PICKED} ${reply.picked}${reply.hasWaiters ? '!' : ''}`;
  if (reply.hasWaiters) return FREE_WITH_WAITERS;
  return reply.healed ? EXTENDED_AFTER_HEAL : FREE;
}

function signatureIn({ holder, revoked, sharedBy }: HeldReply): string {
  if (sharedBy !== undefined) return `+${sharedBy}`;
  if (holder) return signatureOf(holder.instance, holder.since.getTime());
  return revoked ? '!' : '';
}

/** Checks the marker once per script. */
function isKnown(batch: Batch): boolean {
  batch.marked ??= isMarked(batch.server, batch.mark);
  return batch.marked;
}

function answerAcquisition(batch: Batch, keys: readonly string[], rest: readonly unknown[]): unknown {
  const { server, context, mark: expected } = batch;
  const [token, ttl, queues, waiter, waited] = rest as Acquisition;
  const owners = keys.map((key) => server.data.get(key));
  const isHeld = owners.some((owner) => ![undefined, token, reservedFor(waiter ?? '')].includes(owner));
  try {
    const queue = queues && waiter !== undefined && waited !== undefined ? { queues, waiter, waited } : undefined;
    const reply = carryOut(context, { op: 'acquire', keys, token, ttl: Number(ttl), queue, withdrawn: false });
    const isGranted = reply.kind === 'granted';
    if (isGranted ? expected !== undefined : waiter !== undefined) batch.toldTime = true;
    return statusOf(reply);
  } catch (error) {
    // The clock is read before any write, because a server may refuse the write.
    if (expected || (isHeld && waiter !== undefined)) batch.toldTime = true;
    throw error;
  }
}

type Acquisition = readonly [token: string, ttl: string, queues?: readonly string[], waiter?: string, waited?: number];

function report({ data, info, time }: Executor, marker: string | undefined): unknown[] {
  const answer: unknown[] = [Math.floor(time() / 1_000)];
  const fields = info();
  for (const field of INFO_FIELDS) answer.push(fields[field] ?? '');
  for (const field of MARKER_FIELDS) answer.push(marker === undefined ? '' : (data.hget(marker, field) ?? ''));
  return answer;
}
