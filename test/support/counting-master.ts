import type {
  Master,
  MasterIdentity,
  ReplyCallback,
  MasterRequest,
  NotificationListener,
} from '../../lib/masters/master.interface.js';

/** Counts the requests to a master. */
export class CountingMaster implements Master {
  readonly asked = {
    ...{ acquire: 0, pick: 0, 'defer-readers': 0, extend: 0, draw: 0, release: 0, leave: 0, inspect: 0, probe: 0 },
    ...{ 'open-state': 0, 'write-state': 0, 'read-state': 0 },
  };
  /** Number of notifications that named a key. */
  calls = 0;
  /** Requests that have no answer yet. */
  pending = 0;

  constructor(private readonly inner: Master) {}

  get name(): string {
    return this.inner.name;
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    this.asked[request.op]++;
    this.pending++;
    this.inner.ask(request, (answer) => {
      this.pending--;
      reply(answer);
    });
  }

  connect(): Promise<void> {
    return this.inner.connect();
  }

  problem(): ReturnType<Master['problem']> {
    return this.inner.problem();
  }

  identity(): MasterIdentity {
    return this.inner.identity();
  }

  get isQuarantined(): boolean {
    return this.inner.isQuarantined;
  }

  onReady(listener: () => void): void {
    this.inner.onReady(listener);
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    const counting: NotificationListener = (key) => {
      if (key !== undefined) this.calls++;
      listener?.(key);
    };
    this.inner.listen(waiter, listener && counting);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
