import type { KeyNames, Keyspace } from '../settings/keyspace.js';
import { NamedKeys } from './kind.js';

export class ExclusiveKeys extends NamedKeys {
  constructor(
    private readonly keyspace: Keyspace,
    private readonly resources: readonly string[],
  ) {
    super();
  }

  get names(): KeyNames {
    return this.keyspace.namesOf(this.resources);
  }

  get isShared(): boolean {
    return false;
  }

  get slot(): undefined {
    return undefined;
  }
}
