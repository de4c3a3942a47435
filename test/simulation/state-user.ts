import { LockLostError, QuorumUnavailableError } from '../../lib/redlock/errors.js';
import type { Lock } from '../../lib/locks/lock.js';
import type { SimNode } from './node.js';
import type { HolderOfState } from './properties/states.js';
import type { StatePlan } from './schedule.js';
import type { World } from './world.js';

/** What the user of a state needs from the operation that holds the lock. */
interface UserOptions {
  readonly name: string;
  readonly node: SimNode;
  readonly world: World;
  readonly lock: Lock;
  readonly resource: string;
  readonly plan: StatePlan;
  readonly track: <T>(promise: Promise<T>) => Promise<T>;
  readonly guard: (action: () => void) => void;
  readonly expect: (error: unknown, kinds: readonly (new (...args: never[]) => Error)[]) => void;
}

const EXPECTED = [LockLostError, QuorumUnavailableError];

/** Reads and sets the state of a resource while its lock is held, one step after the other. */
export class StateUser {
  private readonly holder: HolderOfState;

  constructor(private readonly options: UserOptions) {
    const { name, node, world, resource, lock } = options;
    this.holder = world.states.holder(name, resource);
    this.holder.holdsStill = () => lock.remaining() > node.settings.masterTimeout;
  }

  begin(): void {
    this.step(0);
  }

  private step(index: number): void {
    const { plan, lock, track, guard } = this.options;
    const step = plan.steps[index];
    if (step === undefined || this.options.node.process.isDead) return;
    const [promise, done] = step === 'get' ? this.get(lock) : this.set(lock);
    track(promise).then(
      (value) =>
        guard(() => {
          done(value);
          this.next(index);
        }),
      (error: unknown) => guard(() => this.failed(error, index)),
    );
  }

  private get(lock: Lock): [Promise<unknown>, (value: unknown) => void] {
    const { world, name } = this.options;
    const ended = world.states.get(this.holder);
    const done = (value: unknown): void => {
      world.trace(name, () => `has read the state ${String(value)}`);
      ended(value as number | undefined);
    };
    return [lock.state.get(), done];
  }

  private set(lock: Lock): [Promise<unknown>, () => void] {
    const { world, name } = this.options;
    const { value, acknowledged } = world.states.set(this.holder);
    world.trace(name, () => `sets the state to ${value}`);
    const done = (): void => {
      world.trace(name, () => `has set the state to ${value}`);
      acknowledged();
    };
    return [lock.state.set(value), done];
  }

  private failed(error: unknown, index: number): void {
    const { world, name, node, expect } = this.options;
    world.trace(name, () => `cannot use the state: ${String(error)}`);
    expect(error, EXPECTED);
    if (error instanceof LockLostError) return;
    world.states.failed(this.holder, node, error);
    this.next(index);
  }

  private next(index: number): void {
    const { world, node, plan } = this.options;
    world.later(node, plan.pause, () => this.step(index + 1));
  }
}
