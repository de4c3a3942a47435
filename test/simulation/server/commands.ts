import { createHash } from 'node:crypto';
import { MARK } from '../../../lib/redis/handshake.js';
import { REPORT } from '../../../lib/redis/identity.js';
import { boundScript, FREE, FREE_AMONG_OTHERS, UNMARKED } from '../../../lib/redis/scripts.js';
import { ReplyError } from './database.js';
import { acquire, type Acquire, confirm, extend, inspect, leave, mark, release, type Surface } from './operations.js';

// The only file that knows how a request is put into a command and an answer into a reply. Scripts are recognized by
// their texts, and carried out by their models in operations.ts.

type ScriptName = 'requests' | 'report' | 'mark';

/** The server that carries out a command. */
export interface Executor extends Surface {
  readonly run: string;
  /** Digests of the scripts that it has seen. */
  readonly scripts: Set<string>;
  /** What INFO says: sections server, replication and memory. */
  readonly info: () => readonly [string, string, string];
}

const known = new Map<string, ScriptName>();
const digests = new Map<string, string>();
const texts = new Map<string, string>();

known.set(withoutRun(boundScript('').text), 'requests');
known.set(REPORT, 'report');
known.set(MARK, 'mark');

/** Carries out one command. @throws {ReplyError} */
export function execute(server: Executor, command: string, args: readonly (string | number)[]): unknown {
  server.data.begin();
  const words = args as readonly string[];
  switch (command) {
    case 'SET':
      return setUnlessHeld(server, words);
    case 'SCRIPT':
      server.scripts.add(digestOf(words[1] as string));
      return digestOf(words[1] as string);
    case 'EVAL':
      server.scripts.add(digestOf(words[0] as string));
      return evaluate(server, words[0] as string, words);
    case 'EVALSHA': {
      const text = texts.get(words[0] as string);
      if (text === undefined || !server.scripts.has(words[0] as string)) {
        throw new ReplyError('NOSCRIPT No matching script. Please use EVAL.');
      }
      return evaluate(server, text, words);
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

function evaluate(server: Executor, text: string, words: readonly string[]): unknown {
  const script = scriptOf(text);
  const count = Number(words[1]);
  return call(server, script, words.slice(2, 2 + count), words.slice(2 + count).map(String));
}

function call(server: Executor, name: ScriptName, keys: readonly string[], argv: readonly string[]): unknown {
  const [first = '', second = '', third = ''] = argv;
  switch (name) {
    case 'requests':
      return answerAll(server, argv);
    case 'report':
      return report(server, keys[0]);
    case 'mark': {
      const [, , , nonce = '', from = '', max = ''] = argv;
      const marking = { run: third, nonce, from, max };
      return mark(server, keys[0] as string, { nonce: first, max: second }, marking, server.run);
    }
  }
}

/** The parts of a request, as `request-encoding.ts` orders them. */
type Parts = readonly [op: string, keys: readonly string[], ...rest: unknown[]];

interface Batch {
  readonly server: Executor;
  readonly hash: string;
  readonly mark: Required<Acquire>['mark'] | undefined;
  /** Whether an answer needed the clock. */
  toldTime: boolean;
}

function answerAll(server: Executor, [marker = '', nonce = '', hash = '', text = '']: readonly string[]): unknown[] {
  const batch: Batch = { server, hash, mark: marker === '' ? undefined : { marker, nonce }, toldTime: false };
  const answers = (JSON.parse(text) as Parts[]).map((parts): unknown => {
    try {
      return answer(batch, parts);
    } catch (error) {
      if (error instanceof ReplyError) return error;
      throw error;
    }
  });
  return [...answers, batch.toldTime ? String(Math.floor(server.time() / 1_000)) : '0'];
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
    const { status, fence } = acquire(server, {
      ...{ keys, token, ttl: Number(ttl) },
      ...(queues && waiter !== undefined && waited !== undefined && { queue: { queues, waiter, waited } }),
      ...(marking && { mark: marking }),
      ...(counters && { fence: { ...counters, floor: counters.token } }),
    });
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

function scriptOf(text: string): ScriptName {
  const script = known.get(text) ?? known.get(withoutRun(text));
  if (!script) throw new Error(`the simulated server has no model of this script: ${text}`);
  known.set(text, script);
  return script;
}

/** The last line holds the id of the run. */
function withoutRun(text: string): string {
  return text.slice(0, text.lastIndexOf('\n'));
}

function digestOf(text: string): string {
  let digest = digests.get(text);
  if (digest === undefined) {
    digest = createHash('sha1').update(text).digest('hex');
    digests.set(text, digest);
    texts.set(digest, text);
  }
  return digest;
}
