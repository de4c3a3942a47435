import { INFO_FIELDS, type InfoField } from '../../../lib/redis/replies.js';
import { signatureOf } from '../../../lib/redlock/holder.js';
import type { GoneReply, GrantedReply, HeldReply, RefusedReply } from '../../../lib/masters/master.interface.js';
import type { OperationContext } from '../../../lib/memory/memory-database.js';
import { carryOut } from '../../../lib/memory/operations.js';
import { ENDLESS } from '../../../lib/redis/scripts/constants.js';
import {
  ALL_FREE,
  DRAWN,
  FREE,
  FREE_WITH_WAITERS,
  GONE,
  GONE_WITH_WAITERS,
  HELD,
  NOT_THE_HOLDER,
  PICKED,
} from '../../../lib/redis/scripts/replies.js';
import { protect, ReplyError } from './database.js';
import { Gate, type Surface } from './operations.js';
import { answerState } from './state.js';
import { scriptOf, scriptWithDigest, type SeenScript } from './seen-scripts.js';

// The only file that knows how a request becomes a command and an answer becomes a reply. Scripts are recognized by
// their source and run by their models: here in operations.ts, and in lib/memory/operations.ts.

/** The fields of INFO that a server has and the library reads. */
export type ServerInfo = Partial<Record<InfoField, string | number>>;

export interface Executor extends Surface {
  /** Digests of the scripts that it has seen. */
  readonly scripts: Set<string>;
  readonly info: () => ServerInfo;
}

export function execute(server: Executor, command: string, args: readonly (string | number)[]): unknown {
  server.data.begin();
  const words = args as readonly string[];
  switch (command.toUpperCase()) {
    case 'SET':
      return setUnlessHeld(server, words);
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
  const argv = words.slice(2 + Number(words[1])).map(String);
  switch (name) {
    case 'requests':
      return answerAll(server, argv);
    case 'report':
      return report(server, argv);
    case 'state':
      return answerState(server, argv);
    // Its user may do everything.
    case 'permissions':
      return [];
  }
}

/** The parts of a request, in the order of `request-encoding.ts`. */
type Parts = readonly [op: string, keys: readonly string[], ...rest: unknown[]];

function answerAll(server: Executor, [marker = '', maxTtl, counters = '', ...what]: readonly string[]): unknown {
  const gate = new Gate(server, { marker, maxTtl: Number(maxTtl), isFirst: false });
  const context = contextOf(server, counters);
  const [op = ''] = what;
  if (op === 'take' || op === 'join') {
    const { refusal } = gate;
    if (refusal !== undefined) return [refusal];
  }
  const answers: unknown[] = requestsIn(what).map((parts) => {
    try {
      return (UNGATED.has(parts[0]) ? undefined : gate.refusal) ?? statusOf(answer(context, parts));
    } catch (error) {
      // A short release is not protected: its error fails the whole script.
      if (error instanceof ReplyError && op !== 'give') return error;
      throw error;
    }
  });
  const from = gate.hasPassed ? gate.from : undefined;
  if (answers.every((each) => each === FREE)) return ALL_FREE + (from ?? '');
  return from === undefined ? answers : [...answers, from];
}

const UNGATED: ReadonlySet<string> = new Set(['release', 'leave', 'inspect', 'defer_readers']);

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

function whole(parts: Parts | readonly string[]): Parts {
  const [op, key = '', token, third = '', ...ticket] = parts as readonly string[];
  const [fourth = '', waiter, waited, reserveFor] = ticket;
  const waiting = ticket.length === 0 ? [] : [Number(waited), [fourth], waiter, Number(reserveFor)];
  if (op === 'take') return ['acquire', [key], token, third, false, ...waiting];
  if (op === 'give') return ['release', [key], token, '0', [third], 0];
  if (op === 'join') return ['acquire', [key], token, third, [fourth], Number(waiter)];
  if (op === 'part') return ['release', [key], token, '0', [third], 1];
  return parts as Parts;
}

function answer(context: OperationContext, [op, keys, ...rest]: Parts): Reply | typeof NOT_THE_HOLDER {
  switch (op) {
    case 'acquire': {
      const [token, ttl, writerKeys, waited = 0, queues = [], waiter, reserveFor = 0] = rest as unknown as Acquisition;
      const queue = waiter === undefined ? undefined : { queues, waiter, waited, reserveFor };
      const sharing = writerKeys === false ? undefined : { writerKeys, waited };
      return carryOut(context, { op, keys, token, ttl: Number(ttl), queue, sharing, withdrawn: false, since: 0 });
    }
    case 'draw': {
      const [token, counters, atLeast, step] = rest as [string, readonly number[], number, number];
      const drawn = carryOut(context, { op, keys, token, counters, atLeast, isFirst: step === 1, since: 0 });
      return drawn.kind === 'held' || drawn.kind === 'gone' ? NOT_THE_HOLDER : drawn;
    }
    case 'release': {
      const [token, keepFor, queues, isShared] = rest as [string, string, readonly string[], number];
      const request = { op, keys, queues, token, keepFor: Number(keepFor), ttl: 0 } as const;
      return carryOut(context, { ...request, isShared: isShared === 1 });
    }
    case 'leave': {
      const [waiter, queues, isShared] = rest as [string, readonly string[], number];
      return carryOut(context, { op, keys, queues, waiter, isShared: isShared === 1 });
    }
    case 'extend': {
      const [token, ttl, heals, isShared] = rest as [string, string, number, number];
      const request = { op, keys, token, ttl: Number(ttl), withdrawn: false, since: 0 } as const;
      return carryOut(context, { ...request, heals: heals === 1, isShared: isShared === 1 });
    }
    case 'pick': {
      const [token, ttl, queues = [], waiter, waited = 0, reserveFor = 0] = rest as unknown as Pick;
      const queue = waiter === undefined ? undefined : { queues, waiter, waited, reserveFor };
      return carryOut(context, { op, keys, token, ttl: Number(ttl), queue, withdrawn: false, since: 0 });
    }
    case 'defer_readers': {
      const [waiter, waited] = rest as [string, number];
      return carryOut(context, { op: 'defer-readers', keys: [], writerKeys: keys, waiter, waited });
    }
    case 'inspect':
      return carryOut(context, { op, keys, queues: rest[0] as readonly string[] });
    case 'probe':
      return carryOut(context, { op, keys });
    default:
      throw new Error(`the simulated server does not know the operation ${op}`);
  }
}

type Reply = GrantedReply | HeldReply | GoneReply | RefusedReply;
type Acquisition = readonly [
  token: string,
  ttl: string,
  writerKeys: readonly string[] | false,
  waited?: number,
  queues?: readonly string[],
  waiter?: string,
  reserveFor?: number,
];
type Pick = readonly [
  token: string,
  ttl: string,
  queues?: readonly string[],
  waiter?: string,
  waited?: number,
  reserveFor?: number,
];

function contextOf({ data, faults, lives, publish, time }: Executor, counters: string): OperationContext {
  const microseconds = (): number => (faults.has('floor-ignored') ? 0 : time());
  return { data, lives, publish, counters, now: () => time() / 1_000, microseconds, attempt: protect };
}

function statusOf(reply: Reply | typeof NOT_THE_HOLDER): string | number {
  if (reply === NOT_THE_HOLDER) return reply;
  if (reply.kind === 'refused') throw new ReplyError(`${reply.code} ${reply.reason}`);
  if (reply.kind === 'gone') return reply.hasWaiters ? GONE_WITH_WAITERS : GONE;
  if (reply.kind === 'held') {
    const { remaining = ENDLESS, waiting = '' } = reply;
    return `${HELD} ${remaining.toFixed(0)} ${waiting}${signatureIn(reply)}`;
  }
  if (reply.fence !== undefined) return `${DRAWN} ${reply.fence}`;
  if (reply.picked !== undefined) return `${PICKED} ${reply.picked}${reply.hasWaiters ? '!' : ''}`;
  return reply.hasWaiters ? FREE_WITH_WAITERS : FREE;
}

function signatureIn({ holder, revoked, sharedBy }: HeldReply): string {
  if (sharedBy !== undefined) return `+${sharedBy}`;
  if (holder) return signatureOf(holder.instance, holder.since.getTime());
  return revoked ? '!' : '';
}

/** The first call over each connection. Without a `maxTtl`, it reads the marker and never writes it. */
function report(server: Executor, [marker = '', maxTtl = '']: readonly string[]): unknown[] {
  const fields = server.info();
  const answer: unknown[] = [String(Math.floor(server.time() / 1_000))];
  for (const field of INFO_FIELDS) answer.push(String(fields[field] ?? ''));
  if (marker === '') return answer;
  const isSuitable = fields.role === 'master';
  const gate = new Gate(server, { marker, maxTtl: Number(maxTtl), isFirst: true });
  const wait = isSuitable && maxTtl !== '' ? gate.wait : 0;
  const written = (field: string): string => (isSuitable ? server.data.hget(marker, field) : undefined) ?? '';
  return [...answer, written('run'), written('from'), wait.toFixed(0), gate.cause ?? ''];
}
