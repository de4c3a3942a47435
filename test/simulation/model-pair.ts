import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { MARKER_FIELDS } from '../../lib/redis/guard/marker.js';
import { INFO_FIELDS, type InfoField, millisecondsFrom } from '../../lib/redis/replies.js';
import type { Script } from '../../lib/redis/scripts/bound-script.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { EPOCH, MachineClock } from './engine/machine-clock.js';
import { Scheduler } from './engine/scheduler.js';
import { LIVES, type ModelFault } from './server/operations.js';
import { ReplyError } from './server/database.js';
import { SimServer } from './server/sim-server.js';

const HOUR = 3_600_000;
const LASTING: typeof LIVES = { reservation: HOUR, queue: HOUR, barrier: HOUR };

type Words = readonly (string | number)[];

/** A value without its times in milliseconds, which are kept apart because they differ slightly. */
interface Comparable {
  readonly text: string;
  readonly times: readonly number[];
}

/** The answers of both servers to one command. */
export interface Comparison {
  readonly command: string;
  readonly real: string;
  readonly simulated: string;
}

/**
 * A real server and a simulated one that get the same commands.
 *
 * The simulated clock is set to the real one before each command. The progress of the real server's clock until the
 * answer arrives bounds the difference of all reported times, so no machine is too slow for the comparison.
 */
export class ModelPair implements AsyncDisposable {
  private readonly scheduler = new Scheduler();
  readonly simulated: SimServer;
  /** Milliseconds by which times may differ. */
  private slack = 2;
  readonly heard = { real: [] as string[], simulated: [] as string[] };

  private constructor(
    private readonly server: RedisServer,
    private readonly client: Redis,
    private readonly subscriber: Redis,
    run: string,
    faults: ReadonlySet<ModelFault>,
  ) {
    this.simulated = new SimServer(run, { clock: new MachineClock(this.scheduler, 1, 0), faults });
    this.simulated.lives = LASTING;
    subscriber.on('message', (channel, message) => void this.heard.real.push(`${channel} ${message}`));
  }

  /** Starts a real server for this pair. */
  static async started(faults: ReadonlySet<ModelFault> = new Set()): Promise<ModelPair> {
    const server = await RedisServer.start();
    const { port } = server;
    const settings = { maxRetriesPerRequest: 0, retryStrategy: () => null };
    const [client, subscriber] = [new Redis(port, '127.0.0.1', settings), new Redis(port, '127.0.0.1', settings)];
    const [, run = ''] = /run_id:(\w+)/.exec(await client.info('server')) ?? [];
    // The subscriber uses a pattern, like a monitor: the server does not count it as a waiter.
    await subscriber.psubscribe('*');
    const pair = new ModelPair(server, client, subscriber, run, faults);
    await pair.adoptHistory();
    return pair;
  }

  async listen(channel: string): Promise<void> {
    await this.subscriber.subscribe(channel);
    const push = (name: string, message: string): void => void this.heard.simulated.push(`${name} ${message}`);
    this.simulated.subscribe(channel, { push });
  }

  /** Lets both run a script that answers requests. */
  async run(script: Script, args: Words): Promise<Comparison> {
    const real = lasting(script);
    const outcome = await this.call('EVALSHA', [script.sha1, ...args], [real.sha1, ...args]);
    if (!outcome.real.includes('NOSCRIPT')) return outcome;
    return this.call('EVAL', [script.text, ...args], [real.text, ...args]);
  }

  /** Lets both run one command, and compares the answers. */
  async call(command: string, args: Words, realArgs = args): Promise<Comparison> {
    const before = await this.setClock();
    const real: unknown = await this.client.call(command, ...realArgs).catch((error: unknown) => error);
    const simulated = this.simulated.answer(command, args);
    this.slack += (await this.milliseconds()) - before + 1;
    const [one, other] = [this.comparable(real), this.comparable(simulated)];
    const isNear = one.times.every((time, i) => Math.abs(time - (other.times[i] ?? 0)) <= this.slack);
    const show = ({ text, times }: Comparable): string => `${text}${isNear ? '' : ` ${times.join(' ')}`}`;
    return { command, real: show(one), simulated: show(other) };
  }

  /** Copies the timestamps that the real server has written to the simulated one, if they are close. */
  async adopt(hash: string, field: string): Promise<void> {
    const { data } = this.simulated;
    if (data.isReadOnly || data.isFull || data.hget(hash, field) === undefined) return;
    const real = await this.client.hget(hash, field);
    const [one, other] = [numbersIn(real ?? ''), numbersIn(data.hget(hash, field) ?? '')];
    const isNear = one.length === other.length && one.every((n, i) => Math.abs(n - (other[i] ?? 0)) <= this.slack);
    if (real !== null && isNear) data.hset(hash, field, real);
  }

  /** Like {@link adopt}, for a string. */
  async adoptText(key: string): Promise<void> {
    const { data } = this.simulated;
    const text = data.get(key);
    if (data.isReadOnly || data.isFull || text === undefined) return;
    const real = await this.client.get(key);
    const [one, other] = [numbersIn(real ?? ''), numbersIn(text)];
    const isNear = one.length === other.length && one.every((n, i) => Math.abs(n - (other[i] ?? 0)) <= this.slack);
    if (real !== null && isNear) data.set(key, real, data.pttl(key));
  }

  /** Applies an operator's command to the real server, and its effect to the simulated one. */
  async operate(real: readonly string[], simulate: (server: SimServer) => void): Promise<void> {
    await this.client.call(real[0] as string, ...real.slice(1));
    await this.setClock();
    simulate(this.simulated);
    await this.adoptHistory();
  }

  /** All keys with their values on both servers. */
  async contents(): Promise<{ readonly real: object; readonly simulated: object }> {
    const real: [string, unknown][] = [];
    for (const key of (await this.client.keys('*')).sort()) real.push([key, await this.valueOf(key)]);
    await this.setClock();
    const copy = this.simulated.data.copy();
    const simulated = this.simulated.data
      .keys()
      .sort()
      .map((key): [string, unknown] => [key, plain(copy.get(key)?.value)]);
    return { real: Object.fromEntries(real), simulated: Object.fromEntries(simulated) };
  }

  /** Resolves when every published message has arrived. */
  async settle(): Promise<void> {
    const arrived = new Promise((resolve) => this.subscriber.once('message', resolve));
    await this.subscriber.subscribe('the end');
    await this.client.publish('the end', 'now');
    await arrived;
    while (!this.heard.real.includes('the end now')) await new Promise((resolve) => setImmediate(resolve));
    this.heard.real.splice(this.heard.real.indexOf('the end now'), 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    this.subscriber.disconnect();
    await this.server.stop();
  }

  /** A real server chooses its replication id itself, so the simulated one adopts it. */
  private async adoptHistory(): Promise<void> {
    const [, replid = ''] = /master_replid:(\w+)/.exec(await this.client.info('replication')) ?? [];
    this.simulated.replid = replid;
  }

  private async setClock(): Promise<number> {
    const now = await this.milliseconds();
    this.scheduler.now = now - EPOCH;
    return now;
  }

  private async milliseconds(): Promise<number> {
    const [seconds, microseconds] = await this.client.time();
    return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  }

  private comparable(reply: unknown): Comparable {
    if (reply instanceof ReplyError || reply instanceof Error) return { text: errorCode(reply), times: [] };
    if (typeof reply === 'number' && reply >= 0) return { text: 'milliseconds', times: [reply] };
    if (typeof reply === 'string' && /^\d{13}$/.test(reply)) return { text: 'time', times: [Number(reply)] };
    const [, left, rest = ''] = (typeof reply === 'string' && /^(\d+) (.*)$/s.exec(reply)) || [];
    if (left !== undefined) return { text: `milliseconds ${rest}`, times: [Number(left)] };
    if (Array.isArray(reply)) return isReport(reply) ? comparableReport(reply) : this.comparableAnswers(reply);
    return { text: String(reply), times: [] };
  }

  /** Answers to requests, followed by the clock if an answer needed it. */
  private comparableAnswers(replies: readonly unknown[]): Comparable {
    const time: unknown = replies.at(-1);
    const answers = Array.isArray(time) ? replies.slice(0, -1) : replies;
    const all = answers.map((reply) => this.comparable(reply));
    const text = [...all.map((one) => one.text), Array.isArray(time) ? 'time' : 'no time'].join(', ');
    const clock = Array.isArray(time) ? [millisecondsFrom(time)] : [];
    return { text, times: [...all.flatMap(({ times }) => times), ...clock] };
  }

  private async valueOf(key: string): Promise<unknown> {
    const type = await this.client.type(key);
    if (type === 'string') return this.client.get(key);
    if (type === 'hash') return this.client.hgetall(key);
    return (await this.client.zrange(key, '0', '-1')).map(untimed).sort();
  }
}

function numbersIn(text: string): readonly number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}

/**
 * The same script with longer ttls, so that nothing expires during the test: no two clocks agree on the moment of
 * expiry.
 */
function lasting(script: Script): Script {
  const ends = [
    [`'PX', ${LIVES.reservation})`, `'PX', ${LASTING.reservation})`],
    [`, ${LIVES.queue})`, `, ${LASTING.queue})`],
    [`milliseconds() + ${LIVES.reservation})`, `milliseconds() + ${LASTING.reservation})`],
    [`now + ${LIVES.barrier})`, `now + ${LASTING.barrier})`],
  ] as const;
  const text = ends.reduce((before, [end, later]) => {
    if (!before.includes(end)) throw new Error(`the script has no ${end}`);
    return before.replaceAll(end, later);
  }, script.text);
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}

function plain(value: string | ReadonlyMap<string | number, string | number> | undefined): unknown {
  if (typeof value === 'string' || value === undefined) return value;
  const entries = [...value];
  return typeof entries[0]?.[1] === 'number'
    ? entries.map(([name]) => untimed(String(name))).sort()
    : Object.fromEntries(entries);
}

/** The entry of a barrier begins with a time of the server. */
function untimed(member: string): string {
  return member.replace(/^\d+ /, '');
}

/** A report holds only strings; answers hold numbers, or end with a time. */
function isReport(reply: readonly unknown[]): reply is readonly string[] {
  return reply.length === 1 + INFO_FIELDS.length + MARKER_FIELDS.length;
}

function errorCode({ message }: Error): string {
  return `error ${/^[A-Z]+/.exec(message)?.[0]}`;
}

/** The fields of INFO that the library reads. */
function comparableReport(report: readonly unknown[]): Comparable {
  const [time, ...values] = report.map(String);
  const field = (name: InfoField): string => values[INFO_FIELDS.indexOf(name)] ?? '';
  const facts = [
    field('run_id'),
    // Valkey uses another name for this field.
    field('redis_mode') || field('server_mode'),
    field('role'),
    field('master_replid'),
    /^0*$/.test(field('master_replid2')) ? 'never promoted' : 'promoted',
    field('maxmemory') === '0' ? 'no limit' : 'limited',
    field('maxmemory_policy'),
    field('aof_enabled'),
    ...values.slice(INFO_FIELDS.length),
  ];
  return { text: facts.join(' '), times: [Number(time)] };
}
