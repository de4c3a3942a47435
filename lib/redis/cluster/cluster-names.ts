import { RedlockConfigError } from '../../settings/config.error.js';
import { showNames } from '../../redlock/names.js';
import { NUL } from '../../settings/keyspace.js';
import type { MasterRequest } from '../../masters/master.interface.js';

const SLOTS = 16_384;
// What precedes the name of the resource. In a pattern, any slot of a permit may.
const RESERVED = new RegExp(`^${NUL}(?:(?:key|queue|permits|state):|permit:(?:\\d+|\\*):)`);
// As the servers find it: from the first brace to the next closing one, and not empty.
const TAG = /^[^{]*\{([^}]+)\}/;
const WHOLE = /^\{[^{}]*\}$/;

// The part of a resource that chooses the slot; `undefined` if the names of a lock could not have one.
function tagOf(resource: string): string | undefined {
  if (!/[{}]/.test(resource)) return resource;
  // Else this resource and the one without braces would be one lock.
  return WHOLE.test(resource) ? undefined : TAG.exec(resource)?.[1];
}

// The names of a lock on a cluster. A script may use several only if they have one slot, so braces stand round a resource
// that has none: `lock:{invoice:42}`. Another one has its tag already: `lock:{customer-7}:invoice`.
export class ClusterNames {
  private readonly counters = new Map<number, string>();

  constructor(private readonly keyPrefix: string) {
    if (!/[{}]/.test(keyPrefix)) return;
    throw new RedlockConfigError('keyPrefix', keyPrefix, 'must have no brace with a cluster: braces choose the slot');
  }

  check(resources: readonly string[]): void {
    const tags = resources.map(tagOf);
    const odd = resources[tags.indexOf(undefined)];
    if (odd !== undefined) {
      const requirement =
        'must have no braces on a cluster but those of one tag beside other text, as in {order-7}:items';
      throw new RedlockConfigError('resource', odd, requirement);
    }
    if (new Set(tags).size < 2) return;
    const requirement = 'must have a common tag in braces on a cluster, as in {order-7}:items and {order-7}:invoice';
    const message = `several resources ${requirement}, so that one server has all of them: ${showNames(resources)}`;
    throw new RedlockConfigError('resources', resources, requirement, message);
  }

  stored(name: string): string {
    const [start, resource, rest] = this.split(name, this.keyPrefix.length);
    return resource === '' || resource.includes('{') ? name : `${start}{${resource}}${rest}`;
  }

  // `undefined` for a key that no lock of a cluster has.
  nameOf(stored: string): string | undefined {
    const [start, resource, rest] = this.split(stored, this.keyPrefix.length);
    const name = WHOLE.test(resource) ? start + resource.slice(1, -1) + rest : stored;
    return this.stored(name) === stored ? name : undefined;
  }

  // Of SCAN: of the resources with a tag, and of those without.
  patternsOf(match: string): readonly string[] {
    const [start, resource, rest] = this.split(match, this.keyPrefix.replace(/[*?[\]\\]/g, '\\$&').length);
    return [match, `${start}{${resource}}${rest}`];
  }

  request(request: MasterRequest): MasterRequest {
    const all = (names: readonly string[]): string[] => names.map((name) => this.stored(name));
    return {
      ...request,
      keys: all(request.keys),
      ...('queues' in request && { queues: all(request.queues) }),
      ...('writerKeys' in request && { writerKeys: all(request.writerKeys) }),
      ...('sharing' in request &&
        request.sharing && { sharing: { ...request.sharing, writerKeys: all(request.sharing.writerKeys) } }),
      ...('entry' in request && { entry: this.stored(request.entry) }),
      // One for each slot: as many as on one server would be too many for 16,384 slots.
      ...('counters' in request && { counters: [0] }),
    };
  }

  // The hash of the counters of all resources whose names have the slot of this one.
  countersBeside(stored: string): string {
    const slot = slotOf(TAG.exec(stored)?.[1] ?? stored);
    const known = this.counters.get(slot);
    if (known !== undefined) return known;
    let tag = 0;
    while (slotOf(tag.toString(36)) !== slot) tag++;
    const name = `${this.keyPrefix}${NUL}fences:{${tag.toString(36)}}`;
    this.counters.set(slot, name);
    return name;
  }

  private split(name: string, prefix: number): readonly [start: string, resource: string, rest: string] {
    const start = prefix + (RESERVED.exec(name.slice(prefix))?.[0].length ?? 0);
    const nul = name.indexOf(NUL, start);
    const end = nul < 0 ? name.length : nul;
    return [name.slice(0, start), name.slice(start, end), name.slice(end)];
  }
}

// CRC-16/XMODEM, eight bits at a time.
function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    const high = (crc >> 8) ^ byte;
    const folded = high ^ (high >> 4);
    crc = ((crc << 8) ^ (folded << 12) ^ (folded << 5) ^ folded) & 0xffff;
  }
  return crc % SLOTS;
}
