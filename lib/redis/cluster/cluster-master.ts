import type {
  Master,
  MasterIdentity,
  MasterReply,
  MasterRequest,
  ReplyCallback,
} from '../../masters/master.interface.js';
import type { UnreachableReply } from '../../redlock/server.js';
import { Connection } from '../connection.js';
import { reasonOf } from '../connection-problem.js';
import { placeholderClusterUrlOf } from '../doctor-command.js';
import type { RedisMasterContext } from '../redis-client.interface.js';
import { isStateRequest, RedisOperator, runStateRequest, type Scan, type ServerOperator } from '../redis-state.js';
import { isReply, redactedMessageOf, replyFrom, valuesFrom } from '../replies.js';
import { RequestEncoder } from '../request-encoding.js';
import { type PendingRequest, RequestQueue, tokensOf } from '../request-queue.js';
import { SCRIPT } from '../server-call.js';
import type { ClusterClient } from './cluster-client.js';
import { ClusterNames } from './cluster-names.js';

// In milliseconds: a node that hangs does not delay the use of the others for longer.
const CONNECT_WITHIN = 1_000;
const UNGUARDED = Object.freeze({ marker: '', maxTtl: 0 });

// A Redis Cluster by its ioredis client, which finds the node of a key. It promises what one Redis promises. A server knows
// the subscribers of its own channels only, so no waiter is woken here: waiters poll.
export class ClusterMaster implements Master {
  readonly name: string;
  readonly isQuarantined = false;
  private readonly names: ClusterNames;
  private readonly queue: RequestQueue;
  private readonly encoder = new RequestEncoder();
  private readonly connection: Connection;
  private listener: (() => void) | undefined;
  private closing: Promise<void> | undefined;

  constructor(
    readonly client: ClusterClient,
    { clock, observer, isAlone = false, settings }: RedisMasterContext,
  ) {
    const { name } = client;
    this.name = name;
    this.names = new ClusterNames(settings.keyPrefix);
    this.connection = new Connection(client, clock, {
      greet: () =>
        Promise.race([
          client.connectNodes(),
          new Promise<void>((resolve) => void clock.schedule(CONNECT_WITHIN, resolve).unref()),
        ]).then(() => true),
      serve: (isLate) => {
        if (isLate) observer.masterFound?.(name);
        this.listener?.();
      },
      onDiagnosis: (problem) => observer.masterRefused?.(name, reasonOf(problem)),
      lose: () => undefined,
      report: (problem) => observer.masterLost?.(name, reasonOf(problem)),
      isIdle: () => !this.queue.isWaiting,
    });
    const { connection } = this;
    this.queue = new RequestQueue({ clock, isAlone, settings, connection, send: (asked) => this.send(asked) });
  }

  get placeholderUrl(): string {
    return placeholderClusterUrlOf(this.client);
  }

  check(resources: readonly string[]): void {
    this.names.check(resources);
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    const problem = this.problem();
    if (problem) {
      reply(problem);
      return;
    }
    this.queue.add({
      request,
      reply: (answer) => {
        reply(answer);
        this.queue.noteAnswer();
      },
    });
  }

  identity(): MasterIdentity {
    return {};
  }

  // No waiter is woken.
  listen(): void {}

  connect(): Promise<void> {
    return this.connection.open();
  }

  problem(): UnreachableReply | undefined {
    return this.connection.unreachable();
  }

  reopened(): Promise<void> | undefined {
    return this.closing ? undefined : this.connection.reopened();
  }

  onReady(listener: () => void): void {
    this.listener = listener;
  }

  close(): Promise<void> {
    this.closing ??= this.queue.drain().then(() => this.connection.close());
    return this.closing;
  }

  get operator(): ServerOperator {
    const { client, names } = this;
    const over = (target: Pick<ClusterClient, 'call'>): RedisOperator =>
      new RedisOperator(
        {
          problem: () => this.problem(),
          call: (command, args) => target.call(command, args),
          failure: (error, tokens) => this.failure(error, tokens),
        },
        (name) => names.stored(name),
      );
    const whole = over(client);
    return {
      read: (key) => whole.read(key),
      revoke: (key, value) => whole.revoke(key, value),
      values: async (keys) => {
        const found = await Promise.all(keys.map((key) => whole.values([key])));
        const failed = found.find((one) => 'kind' in one);
        return failed ?? (found as (readonly (string | null)[])[]).flat();
      },
      scan: async (scan) => {
        for (const node of client.cluster.nodes('master')) {
          const one = over({ call: (command, args) => node.call(command, args) });
          for (const [index, match] of names.patternsOf(scan.match).entries()) {
            const missing = await one.scan({ ...scan, match, take: this.taking(scan, index > 0) });
            if (missing) return missing;
          }
        }
        return undefined;
      },
    };
  }

  // Each of the two patterns finds the names of its own kind.
  private taking({ take }: Scan, hadBraces: boolean): Scan['take'] {
    return (stored) =>
      take(
        stored.flatMap((each) => {
          const name = this.names.nameOf(each);
          return name !== undefined && (name !== each) === hadBraces ? [name] : [];
        }),
      );
  }

  // One command for each slot that is named.
  private send(asked: readonly PendingRequest[]): void {
    const bySlot = new Map<string, PendingRequest[]>();
    for (const one of asked) {
      const counters = this.names.countersBeside(this.firstNameOf(one));
      const others = bySlot.get(counters);
      if (others) others.push(one);
      else bySlot.set(counters, [one]);
    }
    for (const [counters, some] of bySlot) this.run(some, counters);
  }

  private firstNameOf({ request }: PendingRequest): string {
    const { keys, queues, writerKeys } = request as {
      keys: readonly string[];
      queues?: string[];
      writerKeys?: string[];
    };
    return this.names.stored(keys[0] ?? queues?.[0] ?? writerKeys?.[0] ?? ('entry' in request ? request.entry : ''));
  }

  private run(asked: readonly PendingRequest[], counters: string, command: 'evalsha' | 'eval' = 'evalsha'): void {
    const [alone] = asked;
    const requests = asked.map(({ request }) => this.names.request(request));
    const [first] = requests;
    if (alone && first && isStateRequest(first)) {
      const keys = [first.entry, ...first.keys];
      const evaluate = (script: string, args: readonly (string | number)[]): Promise<unknown> =>
        this.client.call('eval', [script, keys.length, ...keys, ...args]);
      runStateRequest(first, UNGUARDED, evaluate).then(
        (answer) => alone.reply(answer),
        (error: unknown) => alone.reply(this.failure(error, tokensOf(asked))),
      );
      return;
    }
    const script = command === 'eval' ? SCRIPT.text : SCRIPT.sha1;
    const keys = keysOf(requests, counters);
    const args = ['', 0, counters, ...this.encoder.encode(requests, false)];
    this.client.call(command, [script, keys.length, ...keys, ...args]).then(
      (reply) => {
        const values = valuesFrom(reply, asked.length);
        asked.forEach((one, index) => one.reply(this.answerTo(values?.[index], one)));
      },
      (error: unknown) => {
        // What has been withdrawn was followed by its release already: sent again, it would come after it.
        const isUnknown = command === 'evalsha' && isReply(error) && error.message.startsWith('NOSCRIPT');
        const again = asked.filter(({ request }) => isUnknown && !('withdrawn' in request && request.withdrawn));
        for (const one of asked) if (!again.includes(one)) one.reply(this.failure(error, tokensOf([one])));
        if (again.length > 0) this.run(again, counters, 'eval');
      },
    );
  }

  private answerTo(value: unknown, one: PendingRequest): MasterReply {
    return isReply(value) ? this.failure(value, tokensOf([one])) : replyFrom(value);
  }

  private failure(error: unknown, tokens: readonly string[]): MasterReply {
    // The client gives up on a slot that moves, or has lost the node of a slot: the others can be reached.
    if (isReply(error) || this.connection.problem) return this.connection.failure(error, tokens);
    return {
      kind: 'unreachable',
      reason: redactedMessageOf(error, [...this.connection.secrets, ...tokens]),
      sent: true,
    };
  }
}

// All keys, so that a server which has some of them, because their slot moves, does not take the others to be free.
function keysOf(requests: readonly MasterRequest[], counters: string): readonly string[] {
  const keys = requests.flatMap((request) => [
    ...request.keys,
    ...(request.op === 'defer-readers' ? request.writerKeys : []),
    ...(request.op === 'draw' ? [counters] : []),
  ]);
  return [...new Set(keys)];
}
