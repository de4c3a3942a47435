import type { AcquireRequest, MasterReply, MasterRequest, Master } from '../../lib/masters/master.interface.js';
import { acquiring, ask, writerKeysOf, picking, releasing, sharing } from './ask.js';
import { eventually } from './eventually.js';

/** A process that waits at a master. */
export class Process {
  readonly woken: (string | undefined)[] = [];
  /** Keys that it has asked for since it last left all. */
  private readonly known = new Set<string>();

  constructor(
    readonly name: string,
    readonly master: Master,
  ) {}

  get token(): string {
    return `token of ${this.name}`;
  }

  /** Listens, and resolves as soon as notifications arrive. Those of the probe may come late, and are not recorded. */
  async listen(): Promise<this> {
    const probe = `probe:${this.name}`;
    let isListening = false;
    this.master.listen(this.name, (key) => {
      if (key === probe) isListening = true;
      else this.woken.push(key);
    });
    await eventually(async () => {
      await this.ask(acquiring([probe], 'probe'));
      await this.ask(this.taking([probe]));
      const { kind } = await this.ask(releasing([probe], 'probe'));
      await this.ask({ op: 'leave', keys: [probe], queues: [`queue:${probe}`], waiter: this.name });
      return kind === 'granted' && isListening;
    });
    this.woken.length = 0;
    return this;
  }

  ask(request: MasterRequest): Promise<MasterReply> {
    return ask(this.master, request);
  }

  /** Resolves when it has been woken, or woken so often. */
  wakes(times = 1): Promise<void> {
    return eventually(() => this.woken.length >= times);
  }

  /** The request of a process that joins the queues if it is refused. */
  taking(keys: readonly string[], waited = 0, reserveFor = 50): AcquireRequest {
    for (const key of keys) this.known.add(key);
    const queues = keys.map((key) => `queue:${key}`);
    return acquiring(keys, this.token, { queue: { queues, waiter: this.name, waited, reserveFor } });
  }

  take(keys: readonly string[], waited = 0, reserveFor = 50): Promise<MasterReply> {
    return this.ask(this.taking(keys, waited, reserveFor));
  }

  /** Asks for shared keys, and joins the queues if it is refused. */
  share(keys: readonly string[], waited = 0): Promise<MasterReply> {
    const { queue } = this.taking(keys, waited);
    return this.ask(sharing(keys, this.token, { waited, queue }));
  }

  /** Asks for one of the keys, and joins their common queue if all are held. */
  pick(keys: readonly string[], waited = 0): Promise<MasterReply> {
    for (const key of keys) this.known.add(key);
    const queue = { queues: [`queue:${keys[0]}`], waiter: this.name, waited, reserveFor: 50 };
    return this.ask(picking(keys, this.token, { queue }));
  }

  /** Keeps later shared requests out. */
  want(keys: readonly string[], waited: number): Promise<MasterReply> {
    for (const key of keys) this.known.add(key);
    return this.ask({ op: 'defer-readers', keys, writerKeys: writerKeysOf(keys), waiter: this.name, waited });
  }

  leave(...keys: string[]): Promise<MasterReply> {
    const queues = keys.map((key) => `queue:${key}`);
    return this.ask({ op: 'leave', keys, queues, waiter: this.name });
  }

  leaveShared(...keys: string[]): Promise<MasterReply> {
    const queues = keys.map((key) => `queue:${key}`);
    return this.ask({ op: 'leave', keys, queues, waiter: this.name, isShared: true });
  }

  unshare(...keys: string[]): Promise<MasterReply> {
    return this.ask({ ...releasing(keys, this.token), isShared: true });
  }

  give(...keys: string[]): Promise<MasterReply> {
    return this.ask(releasing(keys, this.token));
  }

  /** Leaves all that it has or waits for, so that nothing of it wakes a process later. */
  async leaveAll(): Promise<void> {
    for (const key of [...this.known]) {
      await this.leave(key);
      await this.leaveShared(key);
      await this.give(key);
      await this.unshare(key);
    }
    this.known.clear();
  }
}
