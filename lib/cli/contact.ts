import {
  type ConnectionProblem,
  type Language,
  languageOf,
  type ProblemContext,
  problemFrom,
  problemWith,
} from '../redis/connection-problem.js';
import type { NamedClient } from '../redis/master-source.js';
import type { RedisClient } from '../redis/redis-client.interface.js';
import { isReply, redactedMessageOf, refusalFrom } from '../redis/replies.js';
import { type SentinelGroup, sentinelGroup } from '../redis/sentinel/sentinel-group.js';
import { SystemClock } from '../runtime/system-clock.js';
import type { ClusterSettings } from '../redis/cluster/cluster-source.js';
import type { NodeAddress } from '../redis/urls.js';
import { type NodeView, parseNodes, viewFromSlots } from '../redis/cluster/cluster-map.js';
import { nameOf } from '../redis/cluster/topology.js';

export type Outcome = { readonly value: unknown } | Failure;

// The code is that of the server, or `UNREACHABLE`. The reason contains no secret.
export interface Failure {
  readonly code: string;
  readonly reason: string;
  readonly advice?: string | undefined;
  // Waiting cannot help.
  readonly isPermanent?: boolean | undefined;
}

export function isFailure(outcome: Outcome): outcome is Failure {
  return 'code' in outcome;
}

// A connection for a few commands: it is opened once and not reopened when it breaks.
export class Contact {
  readonly name: string;
  private readonly client: RedisClient;
  private readonly group: SentinelGroup | undefined;
  private readonly secrets: readonly string[];
  private trouble: unknown;

  constructor(
    { name, client }: NamedClient,
    private readonly timeout: number,
  ) {
    this.name = name;
    const { options } = client;
    this.group = options.sentinels
      ? sentinelGroup(name, options, { clock: new SystemClock(), isStrict: false })
      : undefined;
    this.client = client.duplicate({
      // No ready check: a server that is loading its data reports that in its answers.
      ...{ enableReadyCheck: false, retryStrategy: null },
      ...(this.group && { Connector: this.group.connections.connector }),
    });
    const { password, sentinelPassword } = options;
    this.secrets = [password, sentinelPassword].flatMap((secret) => (secret ? [secret] : []));
  }

  async open(): Promise<Failure | undefined> {
    const ready = new Promise<void>((resolve, reject) => {
      this.client.on('error', (error) => {
        this.trouble ??= error;
        reject(error instanceof Error ? error : new Error(String(error)));
      });
      this.client.on('close', () => reject(new Error('the connection was closed')));
      this.client.on('ready', () => resolve());
      // Events report the result.
      this.client.connect().catch(() => undefined);
    });
    const failure = await this.failureOf(ready);
    return failure && this.explained(failure);
  }

  private async failureOf(ready: Promise<void>): Promise<Failure | undefined> {
    const opened = await this.settle(ready);
    // The client reports a refused login only after it has reported the connection as ready.
    const outcome = isFailure(opened) ? opened : await this.call('TIME');
    if (!isFailure(outcome)) return undefined;
    if (this.trouble !== undefined) return outcome;
    // A user without the permission for TIME still has a connection.
    return outcome.code === 'UNREACHABLE' || outcome.code === 'NOAUTH' ? outcome : undefined;
  }

  private async explained({ code, reason }: Failure): Promise<Failure> {
    const context = { usesTls: Boolean(this.client.options.tls), hasAnswered: false, secrets: this.secrets };
    const problem: ConnectionProblem =
      this.trouble === undefined ? { what: reason, isVague: true } : problemFrom(this.trouble, context);
    const found = problem.isVague ? await this.examine(context) : undefined;
    const { what, advice, isPermanent } = found ?? problem;
    return { code: /^[A-Z]{2,}(?= )/.exec(what)?.[0] ?? code, reason: what, advice, isPermanent };
  }

  private async examine({ usesTls }: ProblemContext): Promise<ConnectionProblem | undefined> {
    const { host, port, path, sentinels } = this.client.options;
    const isPort = host && port !== undefined && !path && !sentinels;
    const language: Language | undefined = isPort ? await languageOf({ host, port }) : undefined;
    return problemWith(language, usesTls);
  }

  call(command: string, ...args: (string | number)[]): Promise<Outcome> {
    return this.settle(this.client.call(command, args));
  }

  // A subscribed connection can only listen: no other command may follow.
  subscribe(channel: string): Promise<Outcome> {
    return this.settle(this.client.subscribe(channel));
  }

  close(): void {
    this.group?.views.close();
    this.client.disconnect();
  }

  private async settle(answer: Promise<unknown>): Promise<Outcome> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${this.timeout} ms`)), this.timeout);
    });
    try {
      return { value: await Promise.race([answer, late]) };
    } catch (error) {
      if (isReply(error)) return refusalFrom(error, this.secrets);
      return { code: 'UNREACHABLE', reason: redactedMessageOf(this.trouble ?? error, this.secrets) };
    } finally {
      clearTimeout(timer);
    }
  }
}

export interface ClusterNodes {
  readonly view: NodeView;
  // The text of CLUSTER NODES, or the list of CLUSTER SLOTS: it has the replicas, too.
  readonly answer: unknown;
  // A node that announces no host is reached by that of the node that was asked.
  readonly asked: NodeAddress;
}

export function contactTo(cluster: ClusterSettings, address: NodeAddress, timeout: number): Contact {
  return new Contact({ name: nameOf(address), client: cluster.clientFor(address) }, timeout);
}

export function reachable(
  cluster: ClusterSettings,
  { asked }: ClusterNodes,
  { host, port }: NodeAddress,
): NodeAddress | Failure {
  try {
    return cluster.translate({ host: host === '' ? asked.host : host, port });
  } catch (error) {
    return { code: 'UNREACHABLE', reason: error instanceof Error ? error.message : String(error), isPermanent: true };
  }
}

export async function findNodes(cluster: ClusterSettings, timeout: number): Promise<ClusterNodes | Failure> {
  const answers = await Promise.all(cluster.seeds.map((seed) => askNode(cluster, seed, timeout)));
  const known = answers.filter((answer): answer is ClusterNodes => !('code' in answer));
  const [newest] = known.sort((one, other) => newestEpoch(other.view) - newestEpoch(one.view));
  if (newest) return newest;
  const failures = answers.filter((answer): answer is Failure => 'code' in answer);
  // Waiting can help as long as it can help one of the nodes.
  return failures.find(({ isPermanent }) => !isPermanent) ?? failures[0] ?? NO_NODE;
}

const NO_NODE: Failure = Object.freeze({ code: 'UNREACHABLE', reason: 'it has no nodes' });

async function askNode(cluster: ClusterSettings, seed: NodeAddress, timeout: number): Promise<ClusterNodes | Failure> {
  const contact = contactTo(cluster, seed, timeout);
  try {
    const failure = await contact.open();
    if (failure) return named(contact, failure);
    const asksSlots = cluster.nodeTimeout !== undefined;
    const outcome: Outcome = await contact.call('CLUSTER', asksSlots ? 'SLOTS' : 'NODES');
    if (isFailure(outcome)) return named(contact, outcome);
    const { value: answer } = outcome;
    const view = asksSlots ? viewFromSlots(answer) : parseNodes(String(answer));
    if (view.primaries.length === 0) return named(contact, { code: 'UNREACHABLE', reason: 'it knows no primary' });
    return { view, answer, asked: seed };
  } finally {
    contact.close();
  }
}

function named({ name }: Contact, failure: Failure): Failure {
  return { ...failure, reason: `${name}: ${failure.reason}` };
}

function newestEpoch({ primaries }: NodeView): number {
  return Math.max(0, ...primaries.map(({ epoch }) => epoch));
}
