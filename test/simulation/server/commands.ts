import { createHash } from 'node:crypto';
import { MARK } from '../../../lib/redis/handshake.js';
import { REPORT } from '../../../lib/redis/identity.js';
import { boundScripts, FREE, FREE_AMONG_OTHERS, type Scripts } from '../../../lib/redis/scripts.js';
import { ReplyError } from './database.js';
import { acquire, type Acquire, confirm, extend, inspect, leave, mark, release, type Surface } from './operations.js';

// The only file that knows how a request is put into a command and an answer into a reply. Scripts are recognized by
// their texts, and carried out by their models in operations.ts.

type ScriptName = keyof Scripts | 'report' | 'mark';

interface KnownScript {
  readonly name: ScriptName;
  readonly marked: boolean;
}

/** The server that carries out a command. */
export interface Executor extends Surface {
  readonly run: string;
  /** Digests of the scripts that it has seen. */
  readonly scripts: Set<string>;
  /** What INFO says: sections server, replication and memory. */
  readonly info: () => readonly [string, string, string];
}

const known = new Map<string, KnownScript>();
const digests = new Map<string, string>();
const texts = new Map<string, string>();

for (const marked of [false, true]) {
  for (const [name, { text }] of Object.entries(boundScripts('', marked))) {
    known.set(withoutRun(text), { name: name as keyof Scripts, marked });
  }
}
known.set(REPORT, { name: 'report', marked: false });
known.set(MARK, { name: 'mark', marked: false });

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

function call(server: Executor, { name, marked }: KnownScript, keys: readonly string[], argv: readonly string[]) {
  const [first = '', second = '', third = ''] = argv;
  switch (name) {
    case 'acquire':
    case 'acquireFenced':
    case 'acquireOrQueue':
    case 'acquireOrQueueFenced': {
      const request = acquisitionOf(keys, argv, {
        waits: name.startsWith('acquireOrQueue'),
        fences: name.endsWith('Fenced'),
        marked,
      });
      const { status, fence } = acquire(server, request);
      const isGrant = status === FREE || status === FREE_AMONG_OTHERS;
      if (!isGrant || (fence === undefined && !marked)) return status;
      return `${status} ${fence ?? '0'} ${marked ? Math.floor(server.time() / 1_000) : 0}`;
    }
    case 'extend':
      return extend(server, keys, first, Number(second), undefined);
    case 'extendFenced':
      return extend(server, keys.slice(0, -1), first, Number(second), countersOf(keys, argv));
    case 'confirm': {
      const raised = confirm(server, keys.slice(0, -1), first, countersOf(keys, argv));
      return raised === undefined ? 0 : `${FREE} ${raised} 0`;
    }
    case 'release':
      return release(server, firstHalf(keys), secondHalf(keys), first, Number(second));
    case 'leave':
      return leave(server, firstHalf(keys), secondHalf(keys), first);
    case 'inspect':
      return inspect(server, keys);
    case 'report':
      return report(server, keys[0]);
    case 'mark': {
      const [, , , nonce = '', from = '', max = ''] = argv;
      const marking = { run: third, nonce, from, max };
      return mark(server, keys[0] as string, { nonce: first, max: second }, marking, server.run);
    }
  }
}

interface Shape {
  readonly waits: boolean;
  readonly fences: boolean;
  readonly marked: boolean;
}

function acquisitionOf(keys: readonly string[], argv: readonly string[], { waits, fences, marked }: Shape): Acquire {
  const [token = '', ttl, number] = argv;
  const count = Number(number);
  const names = keys.slice(count);
  const rest = argv.slice(3);
  const queue = waits && {
    queues: names.splice(0, count),
    waiter: rest.shift() as string,
    waited: Number(rest.shift()),
  };
  const marker = marked && { marker: names.shift() as string, nonce: rest.shift() as string };
  const fence = fences && { hash: names.shift() as string, floor: Number(rest.shift()), fields: rest };
  return {
    ...{ keys: keys.slice(0, count), token, ttl: Number(ttl) },
    ...(queue && { queue }),
    ...(marker && { mark: marker }),
    ...(fence && { fence }),
  };
}

function countersOf(keys: readonly string[], argv: readonly string[]) {
  return { hash: keys.at(-1) as string, token: Number(argv[3]), fields: argv.slice(4) };
}

function report({ data, info, time }: Executor, marker: string | undefined): string[] {
  const fields = ['run', 'nonce', 'from', 'max'];
  const marking = fields.map((field) => (marker === undefined ? '' : (data.hget(marker, field) ?? '')));
  return [...info(), String(Math.floor(time() / 1_000)), ...marking];
}

function scriptOf(text: string): KnownScript {
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

function firstHalf(keys: readonly string[]): readonly string[] {
  return keys.slice(0, keys.length / 2);
}

function secondHalf(keys: readonly string[]): readonly string[] {
  return keys.slice(keys.length / 2);
}
