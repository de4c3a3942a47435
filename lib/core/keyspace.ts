/** Marks the names that are reserved for this library: no prefix and no resource contains it. */
export const NUL = '\0';
/** No prefix of this form begins with another prefix of this form. */
const ONE_WORD = /^[^:]*:$/;

/** The names on the masters that belong to some resources. */
export interface KeyNames {
  /** Keys, sorted. */
  readonly keys: readonly string[];
  /** Queues of the keys, in the order of the keys. */
  readonly queues: readonly string[];
  /** The entry of the state; absent for several keys. */
  readonly state?: string | undefined;
}

/** All names that the library uses on the masters, under one prefix. */
export class Keyspace {
  /**
   * The part of a key that precedes the resource.
   *
   * With the prefixes `app:` and `app:jobs:`, the key `app:jobs:1` would be ambiguous. The resource therefore follows
   * the prefix directly only if the prefix is one word and a colon. Other prefixes get a terminator that no resource
   * contains.
   */
  readonly startOfKeys: string;
  /** The hash that says to which run of a server the data belongs, and how long its votes do not count. */
  readonly marker: string;
  /** The hash of the counters from which fencing tokens are drawn. */
  readonly counters: string;
  /** The key that a probe writes. */
  readonly probe: string;
  private readonly startOfQueues: string;
  private readonly startOfStates: string;

  constructor(private readonly keyPrefix: string) {
    this.startOfKeys = ONE_WORD.test(keyPrefix) ? keyPrefix : this.reserved('key:');
    this.startOfQueues = this.reserved('queue:');
    this.startOfStates = this.reserved('state:');
    this.marker = this.reserved('incarnation');
    this.counters = this.reserved('fences');
    this.probe = this.reserved('probe');
  }

  keyOf(resource: string): string {
    return this.startOfKeys + resource;
  }

  resourceOf(key: string): string {
    return key.slice(this.startOfKeys.length);
  }

  /** The queue of the processes that wait for a resource. */
  queueOf(resource: string): string {
    return this.startOfQueues + resource;
  }

  /** The entry of what a holder leaves for the next one. */
  stateOf(resource: string): string {
    return this.startOfStates + resource;
  }

  /** The resource of an entry that {@link stateOf} names. */
  resourceOfState(entry: string): string {
    return entry.slice(this.startOfStates.length);
  }

  /** The channel on which a process receives notifications. */
  channelOf(id: string): string {
    return this.reserved(`wake:${id}`);
  }

  /** A key on which the command line tries what a user may do. */
  trialOf(id: string): string {
    return this.reserved(`doctor:${id}`);
  }

  namesOf(resources: readonly string[]): KeyNames {
    const sorted = resources.length > 1 ? [...resources].sort() : resources;
    return new DerivedNames(
      sorted.map((resource) => this.keyOf(resource)),
      this,
    );
  }

  private reserved(name: string): string {
    return this.keyPrefix + NUL + name;
  }
}

/** A held lock stores only its keys; the names of its queues are derived on demand. */
class DerivedNames implements KeyNames {
  constructor(
    readonly keys: readonly string[],
    private readonly keyspace: Keyspace,
  ) {}

  get queues(): readonly string[] {
    return this.keys.map((key) => this.keyspace.queueOf(this.keyspace.resourceOf(key)));
  }

  get state(): string | undefined {
    const [key, other] = this.keys;
    return key === undefined || other !== undefined ? undefined : this.keyspace.stateOf(this.keyspace.resourceOf(key));
  }
}

/** The names of each single resource. */
export function eachOf({ keys, queues }: KeyNames): KeyNames[] {
  return keys.map((key, i) => ({ keys: [key], queues: queues.slice(i, i + 1) }));
}
