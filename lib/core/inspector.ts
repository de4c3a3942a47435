import type { Clock } from './clock.js';
import type { MasterReport } from './errors.js';
import { findOwners, type ForcedRelease, type OperatorContext, type Owners, revokeOwners } from './forced-release.js';
import type { CircuitBreakerMaster } from './health/circuit-breaker-master.js';
import {
  type LockInspection,
  type PermitInspection,
  summarize,
  summarizePermits,
  type TakenPermits,
} from './inspection.js';
import type { Keyspace } from './keyspace.js';
import { askAll } from './acquire/quorum-call.js';
import { readState, type StateSnapshot } from './state/read-state.js';
import { findSlots } from './taken-slots.js';
import type { Target } from './target.js';

/** The dependencies of an inspector. */
export interface InspectorContext {
  readonly masters: readonly CircuitBreakerMaster[];
  readonly keyspace: Keyspace;
  readonly clock: Clock;
  /** How long a master may take to answer, in milliseconds. */
  readonly timeout: number;
}

/** Reads what the masters hold, and takes it away on the word of an operator. Needs no lock. */
export class Inspector {
  constructor(private readonly context: InspectorContext) {}

  /** Asks all masters for the state of a resource, or of one of its permits. */
  async inspect(resource: string, slot?: number): Promise<LockInspection> {
    return summarize(resource, await this.look({ resource, slot }));
  }

  /** Asks all masters for the state of the permits of a resource. */
  inspectPermits(resource: string, permits: number): Promise<PermitInspection> {
    const slots = Array.from({ length: permits }, (_, slot) => slot);
    return this.inspectSlots(resource, slots);
  }

  /** Finds the permits of a resource that are held; `undefined` if too few masters answer. */
  async takenPermits(resource: string): Promise<TakenPermits | undefined> {
    const found = await findSlots({ ...this.context, resource });
    if (!found) return undefined;
    const { waiting, slots } = await this.inspectSlots(resource, found);
    return { waiting, slots: slots.filter(({ state }) => state !== 'free') };
  }

  /** Reads the state of a resource without its lock. */
  readState(resource: string): Promise<StateSnapshot> {
    const { keyspace } = this.context;
    const [key, entry] = [keyspace.keyOf(resource), keyspace.stateOf(resource)];
    return readState({ ...this.context, resource, key, entry });
  }

  /** Finds the holders of a lock or a permit. */
  owners(target: Target): Promise<Owners> {
    return findOwners(this.operatorContext(target));
  }

  /** Takes a lock or a permit away from the holders that were found. */
  revoke(target: Target, owners: Owners): Promise<ForcedRelease> {
    return revokeOwners(owners, this.operatorContext(target));
  }

  private operatorContext({ resource, slot }: Target): OperatorContext {
    const { keyspace, masters, clock, timeout } = this.context;
    const key = slot === undefined ? keyspace.keyOf(resource) : keyspace.slotOf(resource, slot);
    return { masters, key, clock, timeout };
  }

  private async inspectSlots(resource: string, slots: readonly number[]): Promise<PermitInspection> {
    const reports = slots.map(async (slot) => ({ slot, masters: await this.look({ resource, slot }) }));
    return summarizePermits(resource, await Promise.all(reports));
  }

  private look({ resource, slot }: Target): Promise<readonly MasterReport[]> {
    const { masters, keyspace, clock, timeout } = this.context;
    const { keys, queues } =
      slot === undefined ? keyspace.namesOf([resource]) : keyspace.namesOfSlots(resource, [slot]);
    return askAll({ masters, request: { op: 'inspect', keys, queues }, clock, timeout });
  }
}
