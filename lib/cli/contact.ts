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
import { type KeyNames, Keyspace } from '../core/keyspace.js';
import { ClusterNames } from '../redis/cluster/cluster-names.js';
import { literally } from '../redis/permissions.js';
import type { Target } from '../core/operator/forced-release.js';
import type { Settings } from '../core/settings/settings.js';

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

// Keys that a server scans before it serves other clients.
const SCANNED_AT_ONCE = 500;

// Returns a failure, which ends the scan.
type TakePage = (names: readonly string[]) => Promise<Failure | undefined>;

interface Place {
  readonly call: (command: string, ...args: (string | number)[]) => Promise<Outcome>;
  stored(name: string): string;
  // The hash that says to which process the data belongs.
  readonly marker: string;
}

// For commands that no application sends.
export interface LockContact {
  readonly name: string;
  open(): Promise<Failure | undefined>;
  at(name: string): Place;
  // `match` begins with the prefix. SCAN may return a name twice, and one that has expired meanwhile.
  scan(match: string, take: TakePage, type?: string): Promise<Failure | undefined>;
  close(): void;
}

export class ServerContact implements LockContact {
  private readonly place: Place;

  constructor(
    private readonly contact: Contact,
    keyPrefix: string,
  ) {
    const { marker } = new Keyspace(keyPrefix);
    this.place = { call: (...command) => contact.call(...command), stored: (name) => name, marker };
  }

  get name(): string {
    return this.contact.name;
  }

  open(): Promise<Failure | undefined> {
    return this.contact.open();
  }

  at(): Place {
    return this.place;
  }

  scan(match: string, take: TakePage, type?: string): Promise<Failure | undefined> {
    return scanServer(this.contact, match, take, type);
  }

  close(): void {
    this.contact.close();
  }
}

export class ClusterContact implements LockContact {
  private readonly names: ClusterNames;
  // By the ids of the primaries.
  private readonly contacts = new Map<string, Contact | Failure>();
  private owners: readonly (string | undefined)[] = [];

  constructor(
    private readonly cluster: ClusterSettings,
    private readonly keyPrefix: string,
    private readonly timeout: number,
  ) {
    this.names = new ClusterNames(keyPrefix);
  }

  get name(): string {
    return this.cluster.name;
  }

  async open(): Promise<Failure | undefined> {
    const nodes = await findNodes(this.cluster, this.timeout);
    if ('code' in nodes) return nodes;
    this.owners = nodes.view.claims.map((claim) => claim?.owner);
    await Promise.all(
      nodes.view.primaries.map(async (primary) => {
        const address = reachable(this.cluster, nodes, primary);
        const opened = 'code' in address ? address : await this.openAt(address);
        this.contacts.set(primary.owner, opened);
      }),
    );
    const opened = [...this.contacts.values()];
    return opened.every((one) => 'code' in one) ? opened.find((one) => 'code' in one) : undefined;
  }

  private async openAt(address: { readonly host: string; readonly port: number }): Promise<Contact | Failure> {
    const contact = contactTo(this.cluster, address, this.timeout);
    const failure = await contact.open();
    if (!failure) return contact;
    contact.close();
    return { ...failure, reason: `${contact.name}: ${failure.reason}` };
  }

  at(name: string): Place {
    const partition = this.names.partitionOf(name);
    const contact = this.contacts.get(this.owners[partition] ?? '') ?? NO_OWNER;
    return {
      call: (...command) => ('code' in contact ? Promise.resolve(contact) : contact.call(...command)),
      stored: (one) => this.names.inPartition(partition, one),
      marker: this.names.sealOf(partition),
    };
  }

  async scan(match: string, take: TakePage, type?: string): Promise<Failure | undefined> {
    const { length } = literally(this.keyPrefix);
    const stored = `${match.slice(0, length)}{*}${match.slice(length)}`;
    const takeNames: TakePage = (found) => take(found.flatMap((one) => this.nameOf(one) ?? []));
    const failures = await Promise.all(
      [...this.contacts.values()].map(async (contact) =>
        'code' in contact ? contact : await scanServer(contact, stored, takeNames, type),
      ),
    );
    return failures.find((failure) => failure !== undefined);
  }

  // `undefined` for a key of another program.
  private nameOf(stored: string): string | undefined {
    const name = this.names.withoutTag(stored);
    return this.names.inPartition(this.names.partitionOf(name), name) === stored ? name : undefined;
  }

  close(): void {
    for (const contact of this.contacts.values()) if (!('code' in contact)) contact.close();
  }
}

const NO_OWNER: Failure = Object.freeze({ code: 'CLUSTERDOWN', reason: 'no primary serves its slot' });

async function scanServer(
  contact: Contact,
  match: string,
  take: TakePage,
  type?: string,
): Promise<Failure | undefined> {
  const filter = ['MATCH', match, 'COUNT', SCANNED_AT_ONCE, ...(type === undefined ? [] : ['TYPE', type])];
  let cursor = '0';
  do {
    const page = await contact.call('SCAN', cursor, ...filter);
    if (isFailure(page)) return page;
    const [next, names] = page.value as [string, string[]];
    const failure = await take(names);
    if (failure) return failure;
    cursor = next;
  } while (cursor !== '0');
  return undefined;
}

export function keyspaceOf({ keyPrefix }: Settings): Keyspace {
  return new Keyspace(keyPrefix);
}

export function targetNamed(key: string, keyspace: Keyspace): Target {
  return keyspace.permitOf(key) ?? { resource: keyspace.resourceOf(key) };
}

export function namesOf({ resource, slot }: Target, settings: Settings): KeyNames {
  const keyspace = keyspaceOf(settings);
  return slot === undefined ? keyspace.namesOf([resource]) : keyspace.namesOfSlots(resource, [slot]);
}

export function keyOf(target: Target, settings: Settings): string {
  return namesOf(target, settings).keys[0] ?? '';
}
