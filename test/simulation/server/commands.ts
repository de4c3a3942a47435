import { FREE, FREE_AMONG_OTHERS, UNMARKED } from '../../../lib/redis/script-answers.js';
import { ReplyError } from './database.js';
import {
  acquire,
  type Acquire,
  confirm,
  extend,
  inspect,
  leave,
  mark,
  probe,
  release,
  type Surface,
} from './operations.js';
import { scriptOf, scriptWithDigest, type SeenScript } from './seen-scripts.js';

// The only file that knows how a request is put into a command and an answer into a reply. Scripts are recognized by
// their texts, and carried out by their models in operations.ts.

/** The server that carries out a command. */
export interface Executor extends Surface {
  readonly run: string;
  /** Digests of the scripts that it has seen. */
  readonly scripts: Set<string>;
  /** What INFO says: sections server, replication and memory. */
  readonly info: () => readonly [string, string, string];
}

/** Carries out one command. @throws {ReplyError} */
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
  const keys = Number(words[1]);
  const argv = words.slice(2 + keys);
  switch (name) {
    case 'requests':
      return answerAll(server, argv);
    case 'report':
      return report(server, keys === 0 ? undefined : words[2]);
    case 'mark': {
      const [oldNonce = '', oldMax = '', run = '', nonce = '', from = '', max = ''] = argv.map(String);
      return mark(server, words[2] as string, { nonce: oldNonce, max: oldMax }, { run, nonce, from, max }, server.run);
    }
  }
}

/** The parts of a request, as `request-encoding.ts` orders them. */
type Parts = readonly [op: string, keys: readonly string[], ...rest: unknown[]];

interface Batch {
  readonly server: Executor;
  readonly hash: string;
  readonly mark: Acquire['mark'];
  /** Whether an answer needed the clock. */
  toldTime: boolean;
}

function answerAll(server: Executor, [marker = '', nonce = '', hash = '', ...what]: readonly string[]): unknown[] {
  const batch: Batch = { server, hash, mark: marker === '' ? undefined : { marker, nonce }, toldTime: false };
  const answers: unknown[] = requestsIn(what).map((parts) => {
    try {
      return answer(batch, parts);
    } catch (error) {
      if (error instanceof ReplyError) return error;
      throw error;
    }
  });
  if (batch.toldTime) {
    const time = server.time();
    answers.push([String(Math.floor(time / 1e6)), String(Math.floor(time % 1e6))]);
  }
  return answers;
}

/** What one master is asked, the others are mostly asked, too. */
const last: { text: string; requests: readonly Parts[] } = { text: '[]', requests: [] };

function requestsIn([text = '', ...rest]: readonly string[]): readonly Parts[] {
  if (text === 'take' || text === 'give') return [whole([text, ...rest])];
  if (text !== last.text) {
    last.requests = (JSON.parse(text) as (Parts | readonly string[])[]).map(whole);
    last.text = text;
  }
  return last.requests;
}

/** A short request in full. */
function whole(parts: Parts | readonly string[]): Parts {
  const [op, key = '', token, third = '', floor, field, ...ticket] = parts as readonly string[];
  const fields = field === '' ? [] : [field];
  const [queue, waiter, waited] = ticket;
  const waiting = queue === undefined ? [] : [[queue], waiter, Number(waited)];
  if (op === 'take') return ['acquire', [key], token, third, fields, Number(floor), ...waiting];
  if (op === 'give') return ['release', [key], token, '0', [third]];
  return parts as Parts;
}

function answer(batch: Batch, [op, keys, ...rest]: Parts): unknown {
  const { server } = batch;
  switch (op) {
    case 'acquire':
      return answerAcquisition(batch, keys, rest);
    case 'extend':
      return extend(server, keys, rest[0] as string, Number(rest[1]), countersOf(batch, rest));
    case 'confirm': {
      const counters = countersOf(batch, rest);
      if (!counters) throw new Error('a token without counters');
      const raised = confirm(server, keys, rest[0] as string, counters);
      return raised === undefined ? 0 : `${FREE} ${raised}`;
    }
    case 'release':
      return release(server, keys, rest[2] as string[], rest[0] as string, Number(rest[1]));
    case 'leave':
      return leave(server, keys, rest[1] as string[], rest[0] as string);
    case 'inspect':
      return inspect(server, keys);
    case 'probe':
      return probe(server, keys, batch.mark);
    default:
      throw new Error(`the simulated server does not know the operation ${op}`);
  }
}

function answerAcquisition(batch: Batch, keys: readonly string[], rest: readonly unknown[]): unknown {
  const { server, mark: marking } = batch;
  const [token, ttl, , , queues, waiter, waited] = rest as Acquisition;
  const counters = countersOf(batch, rest);
  const grantsTellTime = marking !== undefined || counters !== undefined;
  try {
    const queue = queues && waiter !== undefined && waited !== undefined ? { queues, waiter, waited } : undefined;
    const { status, fence } = acquire(server, { keys, token, ttl: Number(ttl), queue, mark: marking, fence: counters });
    const isGranted = status === FREE || status === FREE_AMONG_OTHERS;
    if (isGranted ? grantsTellTime : status !== UNMARKED && waiter !== undefined) batch.toldTime = true;
    return fence === undefined ? status : `${status} ${fence}`;
  } catch (error) {
    // The clock is read before anything is written, which is what a server may refuse.
    if (grantsTellTime) batch.toldTime = true;
    throw error;
  }
}

type Acquisition = readonly [
  token: string,
  ttl: string,
  fields: readonly string[],
  floor: number,
  queues?: readonly string[],
  waiter?: string,
  waited?: number,
];

/** `undefined` where no fencing token is asked for. */
function countersOf({ hash }: Batch, rest: readonly unknown[]) {
  const [, , fields, token] = rest as [unknown, unknown, readonly string[], number];
  return fields.length === 0 ? undefined : { hash, fields, token };
}

function report({ data, info, time }: Executor, marker: string | undefined): string[] {
  const fields = ['run', 'nonce', 'from', 'max'];
  const marking = fields.map((field) => (marker === undefined ? '' : (data.hget(marker, field) ?? '')));
  return [...info(), String(Math.floor(time() / 1_000)), ...marking];
}
