// FNV-1a over UTF-16 code units: 32 bits, the same in every process.
// Protocol 5.3
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

// The finalizer of MurmurHash3: each input bit changes half of the output bits.
export function mix(number: number): number {
  let value = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

// Marks the names that are reserved for this library: no prefix and no resource contains it.
export const NUL = '\0';
// The name of a queue and this is the name of the writer key of the same key.
export const WRITER = `${NUL}writer`;
// No prefix of this form begins with another prefix of this form.
const ONE_WORD = /^[^:]*:$/;

export interface KeyNames {
  // Sorted.
  readonly keys: readonly string[];
  // In the order of the keys.
  readonly queues: readonly string[];
  // Only for a single permit.
  readonly slot?: number | undefined;
  // In the order of the keys; permits have none.
  readonly writerKeys: readonly string[];
}

// All names that the library uses on the masters, under one prefix.
// Protocol 2.3
export class Keyspace {
  // With the prefixes `app:` and `app:jobs:`, the key `app:jobs:1` would be ambiguous. The resource therefore follows
  // the prefix directly only if the prefix is one word and a colon. Others get a terminator that no resource contains.
  // Protocol 2.1
  readonly startOfKeys: string;
  // The hash that says in which run of the server it was written, and from when the server votes.
  readonly marker: string;
  // The hash of the counters from which fencing tokens are drawn.
  readonly counters: string;
  readonly probe: string;
  private readonly startOfQueues: string;
  readonly startOfSlots: string;
  private readonly startOfSlotQueues: string;
  private readonly startOfStates: string;

  constructor(private readonly keyPrefix: string) {
    this.startOfKeys = ONE_WORD.test(keyPrefix) ? keyPrefix : this.reserved('key:');
    this.startOfQueues = this.reserved('queue:');
    this.startOfStates = this.reserved('state:');
    this.startOfSlots = this.reserved('permit:');
    this.startOfSlotQueues = this.reserved('permits:');
    this.marker = this.reserved('run');
    this.counters = this.reserved('fences');
    this.probe = this.reserved('probe');
  }

  keyOf(resource: string): string {
    return this.startOfKeys + resource;
  }

  resourceOf(key: string): string {
    return key.slice(this.startOfKeys.length);
  }

  queueOf(resource: string): string {
    return this.startOfQueues + resource;
  }

  stateOf(resource: string): string {
    return this.startOfStates + resource;
  }

  // Where processes that wait for an exclusive lock keep later requests for a shared one from passing them.
  writerKeyOf(resource: string): string {
    return this.queueOf(resource) + WRITER;
  }

  // Counted from 0.
  slotOf(resource: string, slot: number): string {
    return `${this.startOfSlots}${slot}:${resource}`;
  }

  // What `namesOfTarget` takes.
  targetOf(key: string): { readonly resource: string; readonly slot?: number } {
    return this.permitOf(key) ?? { resource: this.resourceOf(key) };
  }

  // `undefined` for a key that is not one of `slotOf`.
  permitOf(key: string): { readonly resource: string; readonly slot: number } | undefined {
    if (!key.startsWith(this.startOfSlots)) return undefined;
    const name = key.slice(this.startOfSlots.length);
    const colon = name.indexOf(':');
    return { resource: name.slice(colon + 1), slot: Number(name.slice(0, colon)) };
  }

  resourceOfState(entry: string): string {
    return entry.slice(this.startOfStates.length);
  }

  // The channel on which a process receives notifications.
  channelOf(id: string): string {
    return this.reserved(`wake:${id}`);
  }

  // A key on which the command line tries what a user may do.
  trialOf(id: string): string {
    return this.reserved(`doctor:${id}`);
  }

  // Protocol 2.1
  namesOf(resources: readonly string[]): KeyNames {
    return new DerivedNames(resources.length > 1 ? [...resources].sort() : resources, this);
  }

  // All permits of a resource have one queue.
  namesOfSlots(resource: string, slots: readonly number[]): KeyNames {
    return {
      keys: slots.map((slot) => this.slotOf(resource, slot)),
      queues: slots.map(() => this.startOfSlotQueues + resource),
      writerKeys: [],
      slot: slots.length === 1 ? slots[0] : undefined,
    };
  }

  // Of a lock or, with a slot, of a permit.
  namesOfTarget({ resource, slot }: { readonly resource: string; readonly slot?: number | undefined }): KeyNames {
    return slot === undefined ? this.namesOf([resource]) : this.namesOfSlots(resource, [slot]);
  }

  private reserved(name: string): string {
    return this.keyPrefix + NUL + name;
  }
}

// Made on demand. `resources` are sorted.
class DerivedNames implements KeyNames {
  private made: readonly string[] | undefined;

  constructor(
    private readonly resources: readonly string[],
    private readonly keyspace: Keyspace,
  ) {}

  get keys(): readonly string[] {
    return (this.made ??= this.resources.map((resource) => this.keyspace.keyOf(resource)));
  }

  get queues(): readonly string[] {
    return this.resources.map((resource) => this.keyspace.queueOf(resource));
  }

  get writerKeys(): readonly string[] {
    return this.resources.map((resource) => this.keyspace.writerKeyOf(resource));
  }
}
