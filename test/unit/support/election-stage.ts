import type { LockService } from 'nestjs-redlock';
import { ManualClock, MemoryMaster, memoryLockService } from 'nestjs-redlock/testing';
import type { ElectionObserver } from '../../../lib/operate/leadership.js';
import type { MasterReply, MasterRequest } from '../../../lib/masters/master.interface.js';
import { Campaign, type Leadership } from '../../../lib/leader/campaign.js';

import { MachineClock } from './machine-clock.js';

export const RESOURCE = 'leader:outbox';
export const TTL = 10_000;

/** What the masters do with a request of one instance; `undefined` lets it pass. */
export type Answer = (request: MasterRequest) => MasterReply | undefined;

/** Instances that campaign for one election, on masters in memory, by one clock. */
export class ElectionStage {
  readonly clock = new ManualClock();
  readonly masters = Array.from({ length: 3 }, (_, i) => new MemoryMaster(this.clock, `m${i}`));
  /** Of all instances, as they happened. */
  readonly events: string[] = [];

  instance(name: string, locks?: LockService): Instance {
    return new Instance(name, this, locks);
  }

  /** The instances that lead by their own account. */
  leaders(...instances: readonly Instance[]): string[] {
    return instances.filter(({ campaign }) => campaign.isLeader).map(({ name }) => name);
  }

  /** Elects the first instance, which leads until the test ends it. The others follow it. */
  async elect(...instances: readonly Instance[]): Promise<void> {
    for (const { campaign } of instances) {
      campaign.start();
      await this.clock.advance(100);
    }
  }
}

export class Instance {
  readonly locks: LockService;
  readonly clock: MachineClock;
  readonly campaign: Campaign;
  readonly leaderships: Leadership[] = [];
  readonly problems: unknown[] = [];
  /** What the masters answered to, by kind of request. */
  readonly asked: Record<string, number> = {};
  answer: Answer = () => undefined;
  /** By default, the method lasts until `end` is called or its signal aborts. */
  work: (leadership: Leadership) => unknown = ({ signal }) =>
    new Promise<void>((resolve) => {
      this.end = resolve;
      signal.addEventListener('abort', () => resolve());
    });
  end: () => void = () => undefined;
  observer: ElectionObserver = {};
  /** In [0, 1). */
  fraction = 0;
  data: () => unknown = () => ({ at: this.name });

  constructor(
    readonly name: string,
    readonly stage: ElectionStage,
    locks?: LockService,
  ) {
    this.clock = new MachineClock(stage.clock);
    const { clock } = this;
    const masters = stage.masters.map((master) => this.linkTo(master));
    this.locks = locks ?? memoryLockService({ masters, clock, instance: name, ttl: TTL, maxTtl: '30s', maxHold: '1m' });
    const note = (event: string): void => void stage.events.push(`${name} ${event}`);
    this.campaign = new Campaign(
      { name: 'outbox', resource: RESOURCE, ttl: TTL, data: () => this.data() },
      {
        ...{ where: '@Leader on Outbox.relay', locks: this.locks, fraction: () => this.fraction },
        call: (leadership) => {
          this.leaderships.push(leadership);
          note('runs');
          return this.work(leadership);
        },
        observer: {
          elected: (...args) => {
            note('elected');
            this.observer.elected?.(...args);
          },
          resigned: (...args) => {
            note('resigned');
            this.observer.resigned?.(...args);
          },
          lost: (...args) => {
            note('lost');
            this.observer.lost?.(...args);
          },
          overrun: () => note('overrun'),
          changed: (_, { instance }) => note(`sees ${instance}`),
          problem: (_, cause) => void this.problems.push(cause),
        },
      },
    );
  }

  get terms(): number[] {
    return this.leaderships.map(({ term }) => term);
  }

  /** Lets the method last until `end` is called, whatever its signal says. */
  clingOn(): void {
    this.work = () => new Promise<void>((resolve) => (this.end = resolve));
  }

  /** From now on, no request of this instance arrives: others see it as crashed. */
  cutOff(): void {
    this.answer = () => ({ kind: 'unreachable', reason: 'cut off', sent: false });
  }

  refuse(...operations: readonly MasterRequest['op'][]): void {
    this.answer = ({ op }) =>
      operations.includes(op) ? { kind: 'refused', code: 'OOM', reason: 'a test refuses it' } : undefined;
  }

  private linkTo(master: MemoryMaster): MemoryMaster {
    const ask: MemoryMaster['ask'] = (request, reply) => {
      this.asked[request.op] = (this.asked[request.op] ?? 0) + 1;
      const answer = this.answer(request);
      if (answer) queueMicrotask(() => reply(answer));
      else master.ask(request, reply);
    };
    return new Proxy(master, {
      get: (target, key) => {
        if (key === 'ask') return ask;
        const value: unknown = Reflect.get(target, key);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }
}
