import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { INFO_FIELDS, type InfoField } from '../../lib/redis/replies.js';
import { LOCKS } from '../../lib/redis/scripts/lua.generated.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { EPOCH, MachineClock } from './engine/machine-clock.js';
import { Scheduler } from './engine/scheduler.js';
import { LIVES, type ModelFault } from './server/operations.js';
import { ReplyError } from './server/database.js';
import { SimServer } from './server/sim-server.js';

const HOUR = 3_600_000;
const LASTING: typeof LIVES = { reservation: HOUR, queue: HOUR, writer: HOUR };

type Words = readonly (string | number)[];

/** A value without its times in milliseconds, which are kept apart because they differ slightly. */
interface Comparable {
  readonly text: string;
  readonly times: readonly number[];
}

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

  static async started(faults: ReadonlySet<ModelFault> = new Set()): Promise<ModelPair> {
    const server = await RedisServer.start();
    const { port } = server;
    const settings = { maxRetriesPerRequest: 0, retryStrategy: () => null };
    const [client, subscriber] = [new Redis(port, '127.0.0.1', settings), new Redis(port, '127.0.0.1', settings)];
    const [, run = ''] = /run_id:(\w+)/.exec(await client.info('server')) ?? [];
    // The subscriber uses a pattern, like a monitor: the server does not count it as a waiter.
    await subscriber.psubscribe('*');
    return new ModelPair(server, client, subscriber, run, faults);
  }

  async listen(channel: string): Promise<void> {
    await this.subscriber.subscribe(channel);
    const push = (name: string, message: string): void => void this.heard.simulated.push(`${name} ${message}`);
    this.simulated.subscribe(channel, { push });
  }

  /** Lets both run the script that answers requests. */
  async run(args: Words): Promise<Comparison> {
    const outcome = await this.call('EVALSHA', [digestOf(LOCKS), ...args], [digestOf(LASTING_LOCKS), ...args]);
    if (!outcome.real.includes('NOSCRIPT')) return outcome;
    return this.call('EVAL', [LOCKS, ...args], [LASTING_LOCKS, ...args]);
  }

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

  /** Copies a timestamp that the real server has written to the simulated one, if they are close. */
  async adopt(hash: string, field: string): Promise<void> {
    const { data } = this.simulated;
    if (data.isReadOnly || data.isFull || data.hget(hash, field) === undefined) return;
    const real = await this.client.hget(hash, field);
    const [one, other] = [numbersIn(real ?? ''), numbersIn(data.hget(hash, field) ?? '')];
    const isNear = one.length === other.length && one.every((n, i) => Math.abs(n - (other[i] ?? 0)) <= this.slack);
    if (real !== null && isNear) data.hset(hash, field, real);
  }

  /** Copies a counter, in microseconds. */
  async adoptCounter(hash: string, field: string): Promise<void> {
    const { data } = this.simulated;
    const simulated = data.hget(hash, field);
    if (data.isReadOnly || simulated === undefined) return;
    const real = await this.client.hget(hash, field);
    if (real === null || Math.abs(Number(real) - Number(simulated)) > this.slack * 1_000) return;
    // A server without memory writes as well, behind the first write of a script.
    const { isFull } = data;
    data.isFull = false;
    data.hset(hash, field, real);
    data.isFull = isFull;
  }

  /** Applies an operator's command to the real server, and its effect to the simulated one. */
  async operate(real: readonly string[], simulate: (server: SimServer) => void): Promise<undefined> {
    await this.client.call(real[0] as string, ...real.slice(1));
    await this.setClock();
    simulate(this.simulated);
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
    const [, free = '', time] = (typeof reply === 'string' && /^(all free )?(\d{13})$/.exec(reply)) || [];
    if (time !== undefined) return { text: `${free}time`, times: [Number(time)] };
    const [, status, left, rest = ''] =
      (typeof reply === 'string' && /^(?:(held|quarantined) )?(\d+)(?: (.*))?$/s.exec(reply)) || [];
    if (left !== undefined) return { text: `${status ?? ''} milliseconds ${rest}`, times: [Number(left)] };
    const [, fence] = (typeof reply === 'string' && /^drawn (\d{16})$/.exec(reply)) || [];
    // In microseconds: the clock of the server, if the counters were smaller.
    if (fence !== undefined) return { text: 'a token', times: [Math.floor(Number(fence) / 1_000)] };
    if (!Array.isArray(reply)) return { text: String(reply), times: [] };
    if (isReport(reply)) return comparableReport(reply);
    // Among answers, a number is a word.
    const all = reply.map((one) => this.comparable(typeof one === 'number' ? `${one}, a word` : one));
    return { text: all.map((one) => one.text).join(', '), times: all.flatMap(({ times }) => times) };
  }

  private async valueOf(key: string): Promise<unknown> {
    const type = await this.client.type(key);
    if (type === 'string') return untimed((await this.client.get(key)) ?? '');
    if (type === 'hash') return this.client.hgetall(key);
    return (await this.client.zrange(key, '0', '-1')).sort();
  }
}

function numbersIn(text: string): readonly number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}

/**
 * The same script with longer ttls, so that nothing expires during the test: no two clocks agree on the moment of
 * expiry.
 */
const LASTING_LOCKS = lasting(LOCKS);

function lasting(script: string): string {
  const ends = [
    [`% 1 * ${LIVES.reservation})`, `% 1 * ${LASTING.reservation})`],
    // Also that of a writer key.
    [`, ${LIVES.queue})`, `, ${LASTING.queue})`],
  ] as const;
  return ends.reduce((before, [end, later]) => {
    if (!before.includes(end)) throw new Error(`the script has no ${end}`);
    return before.replaceAll(end, later);
  }, script);
}

function digestOf(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

function plain(value: string | ReadonlyMap<string | number, string | number> | undefined): unknown {
  if (typeof value === 'string') return untimed(value);
  if (value === undefined) return value;
  const entries = [...value];
  return typeof entries[0]?.[1] === 'number'
    ? entries.map(([name]) => String(name)).sort()
    : Object.fromEntries(entries);
}

/** A writer key begins with a time of the server. */
function untimed(value: string): string {
  return value.replace(/^\d{13} /, '');
}

/** With a marker, four values more. */
function isReport(reply: readonly unknown[]): boolean {
  return reply.length === 1 + INFO_FIELDS.length || reply.length === 5 + INFO_FIELDS.length;
}

function errorCode({ message }: Error): string {
  return `error ${/^(?:GATE )?[A-Z]+/.exec(message)?.[0]}`;
}

/** The fields of INFO that the library reads. */
function comparableReport(report: readonly unknown[]): Comparable {
  const [time, ...values] = report.map(String);
  const field = (name: InfoField): string => values[INFO_FIELDS.indexOf(name)] ?? '';
  const [run = '', from = '', wait = '', cause = ''] = values.slice(INFO_FIELDS.length);
  const facts = [
    field('run_id'),
    // Valkey uses another name for this field.
    field('redis_mode') || field('server_mode'),
    field('role'),
    field('maxmemory') === '0' ? 'no limit' : 'limited',
    field('maxmemory_policy'),
    ...[run, from === '' ? 'never' : 'from', Number(wait) > 0 ? 'waits' : wait, cause],
  ];
  return { text: facts.join(' '), times: [Number(time), Number(from), Number(wait)] };
}
