import type { LeasedKeys } from './acquire/leased-keys.interface.js';
import type { Clock } from './clock.js';
import type { Random } from './random.js';

interface FencingTokenOptions {
  readonly leasedKeys: Pick<LeasedKeys, 'drawToken'>;
  readonly clock: Clock;
  readonly random: Random;
  /** The longest pause between two attempts to agree, in milliseconds. */
  readonly longestPause: () => number;
  /** @throws {LockLostError} unless the lock is held now */
  readonly assertHeld: () => Promise<void>;
}

/** The fencing token of one lock. Attempts to agree on it are repeated until the lock ends. */
export class FencingToken {
  private agreed: Promise<number> | undefined;
  /** Ends the pause between two attempts. */
  private goOn: (() => void) | undefined;

  constructor(private readonly options: FencingTokenOptions) {}

  /** Resolves when a quorum has agreed. */
  get value(): Promise<number> {
    this.agreed ??= this.agree().catch((error: unknown) => {
      // A later call may succeed.
      this.agreed = undefined;
      throw error;
    });
    return this.agreed;
  }

  /** The lock has ended. */
  end(): void {
    this.goOn?.();
  }

  private async agree(): Promise<number> {
    const { leasedKeys, random, longestPause, assertHeld } = this.options;
    for (;;) {
      await assertHeld();
      const token = await leasedKeys.drawToken();
      // An agreement that is reached after the end of the validity does not count.
      await assertHeld();
      if (token !== undefined) return token;
      await this.pause(longestPause() * random.fraction());
    }
  }

  private pause(delay: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.options.clock.schedule(delay, resolve);
      this.goOn = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
