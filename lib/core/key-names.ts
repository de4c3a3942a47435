import { startOfKeys } from './resources.js';
import { ownName, type Settings } from './settings.js';

/** The names on the masters that belong to some resources. */
export interface KeyNames {
  /** Keys, sorted. */
  readonly keys: readonly string[];
  /** Queues of the keys, in the order of the keys. */
  readonly queues: readonly string[];
}

/** Derives the names that resources have on the masters. */
export class Naming {
  private readonly startOfKeys: string;
  private readonly startOfQueues: string;

  constructor(settings: Settings) {
    this.startOfKeys = startOfKeys(settings.keyPrefix);
    this.startOfQueues = ownName(settings, 'queue:');
  }

  keyOf(resource: string): string {
    return this.startOfKeys + resource;
  }

  resourceOf(key: string): string {
    return key.slice(this.startOfKeys.length);
  }

  queueOf(key: string): string {
    return this.startOfQueues + this.resourceOf(key);
  }

  namesOf(resources: readonly string[]): KeyNames {
    const sorted = resources.length > 1 ? [...resources].sort() : resources;
    return new DerivedNames(
      sorted.map((resource) => this.keyOf(resource)),
      this,
    );
  }
}

/** A held lock stores only its keys; the names of its queues are derived on demand. */
class DerivedNames implements KeyNames {
  constructor(
    readonly keys: readonly string[],
    private readonly naming: Naming,
  ) {}

  get queues(): readonly string[] {
    return this.keys.map((key) => this.naming.queueOf(key));
  }
}

/** The names of each single resource. */
export function eachOf({ keys, queues }: KeyNames): KeyNames[] {
  return keys.map((key, i) => ({
    keys: [key],
    queues: queues.slice(i, i + 1),
  }));
}
