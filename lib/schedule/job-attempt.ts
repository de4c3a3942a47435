import { refuseStream } from '../nest/lockable-method.js';

/** A signal that follows several others until it is let go, so that a signal that lives long keeps no trace of it. */
export class JoinedSignal {
  private readonly controller = new AbortController();
  private readonly unfollow: (() => void)[] = [];

  constructor(...sources: readonly AbortSignal[]) {
    for (const source of sources) this.follow(source);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  letGo(): void {
    for (const unfollow of this.unfollow) unfollow();
  }

  private follow(source: AbortSignal): void {
    const abort = (): void => this.controller.abort(source.reason);
    if (source.aborted) abort();
    source.addEventListener('abort', abort);
    this.unfollow.push(() => source.removeEventListener('abort', abort));
  }
}

/** What the method of a job has thrown. */
export interface JobFailure {
  readonly error: unknown;
  readonly message: string;
}

/** Calls the method of a job. Never rejects; gives nothing if the method succeeded. */
export async function attemptJob(where: string, work: () => unknown): Promise<JobFailure | undefined> {
  try {
    const advice = ': await it inside of the method';
    refuseStream(where, await refuseStream(where, work(), advice), advice);
    return undefined;
  } catch (error) {
    return { error, message: messageOf(error) };
  }
}

/**
 * The message of what was thrown. Anything can be thrown: an error whose message is a list, an object without a
 * prototype, a getter that throws. The end of the attempt has to be recorded all the same.
 */
export function messageOf(error: unknown): string {
  try {
    const message: unknown = error instanceof Error ? error.message : error;
    const text: unknown = typeof message === 'string' ? message : JSON.stringify(message);
    return typeof text === 'string' ? text : String(message);
  } catch {
    return 'an error without a readable message';
  }
}
