import type { StateReading } from '../../../lib/fencing/lock-state.js';
import type { HeldJob, JobContext } from '../../../lib/schedule/job-locks.js';

/** A lock that the cluster has granted. */
interface Grant {
  readonly instance: string;
  readonly lost: AbortController;
  isReleased: boolean;
}

interface Waiter {
  readonly instance: string;
  readonly grant: () => void;
}

/** The locks and records of jobs, as several instances share them: one holder at a time, first come first served. */
export class JobCluster {
  /** The records by resource. A value passes through JSON, as on its way to the masters. */
  readonly values = new Map<string, string>();
  /** What the next readings say beside the value. */
  since: number | undefined;
  /** What the next attempts to store fail with. */
  readonly failures: Error[] = [];
  private readonly holders = new Map<string, Grant>();
  private readonly waiting = new Map<string, Waiter[]>();

  /** The locks as one instance sees them. */
  of(instance: string): JobContext['locks'] {
    return { hold: ([resource = ''], { signal }) => this.hold(instance, resource, signal) };
  }

  /** The instances that wait for a resource. */
  waiters(resource: string): string[] {
    return (this.waiting.get(resource) ?? []).map(({ instance }) => instance);
  }

  /** The holder of a resource. */
  holder(resource: string): string | undefined {
    return this.holders.get(resource)?.instance;
  }

  /** Takes the lock from its holder, as if the holder had stood still for a ttl. */
  expire(resource: string): void {
    const grant = this.holders.get(resource);
    if (!grant) return;
    grant.lost.abort(new Error('the lock was lost'));
    this.release(resource, grant);
  }

  value(resource: string): unknown {
    const json = this.values.get(resource);
    return json === undefined ? undefined : JSON.parse(json);
  }

  private async hold(instance: string, resource: string, signal: AbortSignal): Promise<HeldJob> {
    signal.throwIfAborted();
    if (this.holders.has(resource)) {
      await new Promise<void>((grant, reject) => {
        const queue = this.waiting.get(resource) ?? [];
        this.waiting.set(resource, queue);
        const waiter = { instance, grant };
        queue.push(waiter);
        signal.addEventListener('abort', () => {
          if (queue.includes(waiter)) queue.splice(queue.indexOf(waiter), 1);
          reject(signal.reason as Error);
        });
      });
    }
    const grant: Grant = { instance, lost: new AbortController(), isReleased: false };
    this.holders.set(resource, grant);
    return this.heldJob(resource, grant);
  }

  private heldJob(resource: string, grant: Grant): HeldJob {
    const { lost } = grant;
    const assertHeld = (): void => {
      if (lost.signal.aborted) throw lost.signal.reason;
    };
    const lock = {
      resources: [resource],
      signal: lost.signal,
      get isHeld() {
        return !lost.signal.aborted && !grant.isReleased;
      },
      get loss() {
        return lost.signal.aborted ? (lost.signal.reason as Error) : undefined;
      },
      assertHeld,
      state: {
        read: async (): Promise<StateReading> => {
          assertHeld();
          return { value: this.value(resource), since: this.since };
        },
        store: async (_: string, value: unknown): Promise<void> => {
          assertHeld();
          const failure = this.failures.shift();
          if (failure) throw failure;
          this.values.set(resource, JSON.stringify(value));
        },
      },
    };
    return {
      lock: lock as unknown as HeldJob['lock'],
      run: (work) => work(),
      end: async () => this.release(resource, grant),
    };
  }

  private release(resource: string, grant: Grant): void {
    if (grant.isReleased) return;
    grant.isReleased = true;
    this.holders.delete(resource);
    this.waiting.get(resource)?.shift()?.grant();
  }
}
