import { Keyspace } from '../core/keyspace.js';
import { ClusterNames } from '../redis/cluster/cluster-names.js';
import type { ClusterSettings } from '../redis/cluster/cluster-source.js';
import { findNodes, contactTo, reachable } from './cluster-contacts.js';
import { type Contact, type Failure, isFailure, type Outcome } from './contact.js';
import { literally } from './pattern.js';

/** Number of keys that a server scans before it serves other clients. */
const SCANNED_AT_ONCE = 500;

/** Takes a page of names. Returns a failure that ends the scan. */
export type TakePage = (names: readonly string[]) => Promise<Failure | undefined>;

/** The server that has a name, and the names there. */
export interface Place {
  readonly call: (command: string, ...args: (string | number)[]) => Promise<Outcome>;
  /** As the server stores it. */
  stored(name: string): string;
  /** The hash that says to which process the data belongs. */
  readonly marker: string;
}

/** Access to the names on one master, for commands that no application sends. */
export interface LockContact {
  readonly name: string;
  /** Resolves with the reason if nothing can be asked. */
  open(): Promise<Failure | undefined>;
  at(name: string): Place;
  /**
   * Finds names. SCAN may return one twice, and one that has expired meanwhile.
   *
   * @param match pattern that begins with the prefix
   * @returns why not all names were found
   */
  scan(match: string, take: TakePage, type?: string): Promise<Failure | undefined>;
  close(): void;
}

/** A master that is one server. */
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

/** A master that is a cluster: asks the primary of each name, and all of them for a scan. */
export class ClusterContact implements LockContact {
  private readonly names: ClusterNames;
  /** By the ids of the primaries. */
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

  /** `undefined` for a key of another program. */
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
