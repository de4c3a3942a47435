import { type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { now } from './trace.js';

/** A write that reached the register. */
export interface Write {
  readonly section: string;
  readonly worker: number;
  readonly keys: readonly string[];
  readonly token: number;
  readonly at: number;
  readonly accepted: boolean;
}

/** The message of a worker. */
type WriteRequest = Omit<Write, 'at' | 'accepted'>;

/** The protected resource. It accepts a write only with a token that is not smaller than the largest it has seen. */
export class Register {
  readonly writes: Write[] = [];
  private readonly largest = new Map<string, number>();
  private readonly events = new EventEmitter();

  /** @param fenced `false` accepts every write, to show the consequences */
  constructor(private readonly fenced: boolean) {}

  /** The worker whose write is accepted next; `undefined` if that takes longer than `within` milliseconds. */
  async nextWriter(within: number): Promise<number | undefined> {
    const signal = AbortSignal.timeout(within);
    return once(this.events, 'write', { signal }).then(
      ([write]) => (write as Write).worker,
      () => undefined,
    );
  }

  /** Answers the writes of a worker. */
  serve(worker: ChildProcess): void {
    worker.on('message', ({ write }: { write?: WriteRequest }) => {
      // Workers are killed, and then get no answer.
      if (write) worker.send({ accepted: this.accept(write) }, () => undefined);
    });
  }

  private accept(request: WriteRequest): boolean {
    const { keys, token } = request;
    const accepted = !this.fenced || keys.every((key) => token >= (this.largest.get(key) ?? 0));
    if (accepted) for (const key of keys) this.largest.set(key, token);
    const write = { ...request, at: now(), accepted };
    this.writes.push(write);
    if (accepted) this.events.emit('write', write);
    return accepted;
  }
}

/** A worker's way to the register. Answers arrive in the order of the writes. */
export class Writer {
  private readonly waiting: ((accepted: boolean) => void)[] = [];

  constructor() {
    process.on('message', ({ accepted }: { accepted: boolean }) => this.waiting.shift()?.(accepted));
  }

  /** Resolves with whether the write was accepted. */
  write(write: WriteRequest): Promise<boolean> {
    process.send?.({ write });
    return new Promise((resolve) => this.waiting.push(resolve));
  }
}
