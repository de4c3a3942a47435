import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, type Provider, Scope } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import type { TestingModule } from '@nestjs/testing';
import { LockService, QuorumUnavailableError, type RedlockModuleOptions, WithLock } from 'nestjs-redlock';
import {
  Elections,
  Leader,
  type Leadership,
  type LeaderOptions,
  LeadershipResignedError,
  RedlockLeaderModule,
} from 'nestjs-redlock/leader';
import { openTelemetry } from 'nestjs-redlock/opentelemetry';
import { RedlockHealthIndicator, RedlockHealthModule } from 'nestjs-redlock/terminus';
import { ManualClock } from 'nestjs-redlock/testing';
import { Telemetry } from '../support/telemetry.js';
import { boot, logs } from './support/applications.js';
import { Locks } from './support/locks.js';
import { throwing } from '../support/throwing.js';

const SECOND = 1_000;
const TTL = 10 * SECOND;
const RESOURCE = 'leader:outbox';

/** What the method does, by the name of its instance. By default, it lasts until it is asked to end. */
const work = new Map<string, (leadership: Leadership) => Promise<unknown>>();
const INSTANCE = Symbol('instance');

@Injectable()
class Outbox {
  running = 0;

  constructor(
    @Inject(LockService) readonly locks: LockService,
    @Inject(Elections) readonly elections: Elections,
    @Inject(INSTANCE) readonly instance: string,
  ) {}

  @Leader('outbox', { data: { port: 80 } })
  async relay(leadership: Leadership): Promise<void> {
    this.running++;
    try {
      await (work.get(this.instance)?.(leadership) ?? leadership.ended);
    } finally {
      this.running--;
    }
  }
}

/** Applications that share their masters and their clock. */
class Cluster {
  readonly clock = new ManualClock();
  readonly locks = new Locks(3, { clock: this.clock, drainTimeout: 0 });

  async start(instance: string, more: Partial<RedlockModuleOptions> = {}): Promise<TestingModule> {
    const app = await boot({
      imports: [this.locks.module({ instance, ...more }), RedlockLeaderModule, ...HEALTH],
      providers: [Outbox, { provide: INSTANCE, useValue: instance }],
    });
    await this.clock.advance(10);
    return app;
  }

  async close(app: TestingModule, within: number): Promise<void> {
    const closing = app.close();
    await this.clock.advance(within);
    await closing;
  }
}

const HEALTH = [TerminusModule.forRoot({ logger: false }), RedlockHealthModule];

let cluster: Cluster;
beforeEach(() => {
  cluster = new Cluster();
});
afterEach(() => {
  work.clear();
});

describe('Applications with a method under @Leader', () => {
  it('run it on one instance, and know which one', async () => {
    const apps = [await cluster.start('a'), await cluster.start('b')];
    await cluster.clock.advance(5 * SECOND);
    const [a, b] = apps.map((app) => app.get(Elections));
    expect([a!.isLeader('outbox'), b!.isLeader('outbox')]).toEqual([true, false]);
    expect(apps.map((app) => app.get(Outbox).running)).toEqual([1, 0]);
    const known = { instance: 'a', since: new Date('2000-01-01'), method: '@Leader on Outbox.relay' };
    const leader = { ...known, term: expect.any(Number), data: { port: 80 } };
    await expect(a!.leader('outbox')).resolves.toEqual(leader);
    await expect(b!.leader('outbox')).resolves.toEqual(leader);
    expect(logs.some((line) => /^log leads "outbox" in term \d+$/.test(line))).toBe(true);
    expect(logs.some((line) => /^debug a leads "outbox", term \d+$/.test(line))).toBe(true);
  });

  it('warn once where another application has an election of the same name, and not on instances of one', async () => {
    await cluster.start('a');
    await cluster.start('b');
    await cluster.clock.advance(30 * SECOND);
    const warnings = (): string[] => logs.filter((line) => line.startsWith('warn election "outbox"'));
    expect(warnings()).toEqual([]);

    @Injectable()
    class Mails {
      @Leader('outbox')
      async send({ ended }: Leadership): Promise<void> {
        await ended;
      }
    }
    await boot({ imports: [cluster.locks.module({ instance: 'other' }), RedlockLeaderModule], providers: [Mails] });
    await cluster.clock.advance(60 * SECOND);
    expect(warnings()).toEqual([
      'warn election "outbox": it is @Leader on Mails.send here, and @Leader on Outbox.relay on a, which leads: only one of ' +
        "them does at a time; give each application a `keyPrefix` of its own (it is 'lock:'), or each election a name",
    ]);
  });

  it('name no leader that has resigned, although its state is still there', async () => {
    let end = (): void => undefined;
    work.set('a', () => new Promise<void>((resolve) => (end = resolve)));
    const app = await cluster.start('a');
    end();
    await cluster.clock.settle();
    await expect(app.get(LockService).readState(RESOURCE)).resolves.toMatchObject({ value: { instance: 'a' } });
    await expect(app.get(Elections).leader('outbox')).resolves.toBeUndefined();
  });

  it('never have two leaders while a method goes on after the shutdown: the lock expires, and is not released', async () => {
    let end = (): void => undefined;
    const signals: AbortSignal[] = [];
    work.set('a', ({ signal }) => {
      signals.push(signal);
      return new Promise<void>((resolve) => (end = resolve));
    });
    const first = await cluster.start('a', { drainTimeout: 3 * SECOND });
    const second = await cluster.start('b');
    const { elections, running } = first.get(Outbox);
    const closing = first.close();
    await cluster.clock.advance(SECOND);
    expect(signals[0]!.reason).toBeInstanceOf(LeadershipResignedError);
    // It is asked to end, so that it counts as no leader, and still has the lock.
    expect([elections.isLeader('outbox'), running]).toEqual([false, 1]);
    expect((await second.get(Elections).leader('outbox'))?.instance).toBe('a');
    await cluster.clock.advance(2 * SECOND + 100);
    await closing;
    const since = cluster.clock.read().monotonic;
    expect(elections.isLeader('outbox')).toBe(false);
    while (!second.get(Elections).isLeader('outbox')) await cluster.clock.advance(100);
    // Its last extension was at most a third of a ttl before.
    expect(cluster.clock.read().monotonic - since).toBeGreaterThan((TTL * 2) / 3 - 3 * SECOND);
    expect(cluster.clock.read().monotonic - since).toBeLessThan(TTL + 4 * SECOND);
    end();
  });

  it('say that they cannot see the leader during an outage', async () => {
    const app = await cluster.start('a');
    cluster.locks.each('takeDown');
    await expect(app.get(Elections).leader('outbox')).rejects.toThrow(QuorumUnavailableError);
    await expect(app.get(Elections).leader('outbox')).rejects.toThrow('see which instance leads "outbox"');
    await cluster.clock.advance(TTL);
    expect(app.get(Elections).isLeader('outbox')).toBe(false);
  });

  it('name a leader whose key is that of another campaign without the term of the state', async () => {
    const app = await cluster.start('a');
    const { lock } = await leadershipOf(app);
    const { instance, since } = (await app.get(LockService).inspect(RESOURCE)).holder!;
    const { elections } = app.get(Outbox);
    await lock.state.store('a record', { term: 7, instance, since: since.getTime() - 1 }, {});
    await expect(elections.leader('outbox')).resolves.toEqual({ instance, since, term: undefined, data: undefined });
    await lock.state.store('a record', 'not a record', {});
    await expect(elections.leader('outbox')).resolves.toMatchObject({ instance, term: undefined });
  });

  it('keep the state of their lock from other values', async () => {
    const app = await cluster.start('a');
    const { lock } = await leadershipOf(app);
    const refusal =
      'the state of "leader:outbox" is the record of the election: keep a value of your own in the state of another lock';
    await expect(lock.state.set('mine')).rejects.toThrow(refusal);
    await expect(app.get(Elections).leader('outbox')).resolves.toMatchObject({ term: expect.any(Number) });
  });

  it('report events to observers, which may throw or be removed', async () => {
    const events: string[] = [];
    const app = await boot({
      imports: [cluster.locks.module({ instance: 'a' }), RedlockLeaderModule],
      providers: [Outbox, { provide: INSTANCE, useValue: 'a' }],
    });
    const elections = app.get(Elections);
    elections.observe({ elected: throwing(new Error('a bug in an observer')) });
    elections.observe({ elected: (election, term) => events.push(`elected ${election} ${typeof term}`) });
    const remove = elections.observe({ resigned: () => events.push('never') });
    elections.observe({ resigned: (election) => events.push(`resigned ${election}`) });
    remove();
    remove();
    await cluster.clock.advance(10);
    await cluster.close(app, SECOND);
    expect(events.sort()).toEqual(['elected outbox number', 'resigned outbox']);
    expect(logs).toContain('error an observer of elections threw: Error: a bug in an observer');
  });

  it('are down for the health check while a method goes on after a loss', async () => {
    let end = (): void => undefined;
    work.set('a', () => new Promise<void>((resolve) => (end = resolve)));
    const app = await cluster.start('a');
    const health = app.get(RedlockHealthIndicator);
    await expect(health.isHealthy()).resolves.toMatchObject({ redlock: { status: 'up' } });
    cluster.clock.stall(TTL);
    await cluster.clock.advance(2 * SECOND);
    await expect(health.isHealthy()).resolves.toMatchObject({ redlock: { status: 'down', overruns: ['outbox'] } });
    expect(logs.some((line) => line.startsWith('warn does not lead "outbox" any more in term'))).toBe(true);
    expect(logs.some((line) => line.startsWith('warn the method of "outbox" goes on without leading'))).toBe(true);
    end();
    await cluster.clock.advance(SECOND);
    await expect(health.isHealthy()).resolves.toMatchObject({ redlock: { status: 'up' } });
  });

  it('have metrics', async () => {
    const telemetry = new Telemetry();
    const observers = [openTelemetry({ meterProvider: telemetry.meterProvider })];
    const app = await cluster.start('a', { observers });
    const labels = { 'redlock.service': 'default', 'redlock.election': 'outbox' };
    expect(await telemetry.points('redlock.leader.leading')).toMatchObject([{ attributes: labels, value: 1 }]);
    expect(await telemetry.points('redlock.leader.time_to_lead')).toMatchObject([{ attributes: labels, value: 1 }]);
    cluster.clock.stall(TTL);
    work.set('a', () => new Promise(() => undefined));
    await cluster.clock.advance(SECOND);
    cluster.clock.stall(TTL);
    await cluster.clock.advance(2 * SECOND);
    expect(await telemetry.points('redlock.leader.leading')).toMatchObject([{ value: 0 }]);
    expect(await telemetry.points('redlock.leader.terms')).toMatchObject([
      { attributes: { ...labels, 'redlock.outcome': 'lost' }, value: 2 },
    ]);
    expect(await telemetry.points('redlock.leader.overruns')).toMatchObject([{ attributes: labels, value: 1 }]);
    await app.close();
  });

  it('count no campaign as a wait, and no leadership as a hold', async () => {
    const telemetry = new Telemetry();
    const { tracerProvider, meterProvider } = telemetry;
    const observers = [openTelemetry({ tracerProvider, meterProvider })];
    const apps = [await cluster.start('a', { observers }), await cluster.start('b', { observers })];
    await cluster.clock.advance(TTL);
    await cluster.close(apps[0]!, SECOND);
    expect(apps[1]!.get(Elections).isLeader('outbox')).toBe(true);
    expect(telemetry.spans.map(({ name }) => name)).toEqual([]);
    expect(await telemetry.points('redlock.acquire.duration')).toEqual([]);
  });

  it('log the error of a method, and elect again', async () => {
    work.set('a', () => Promise.reject(new Error('no database')));
    const app = await cluster.start('a');
    expect(
      logs.some((line) => /^error resigns from "outbox" in term \d+, because its method has failed: no/.test(line)),
    ).toBe(true);
    work.clear();
    await cluster.clock.advance(3 * SECOND);
    expect(app.get(Elections).isLeader('outbox')).toBe(true);
  });
});

/** The leadership of an instance that leads already. */
async function leadershipOf(app: TestingModule): Promise<Leadership> {
  const { instance } = app.get(Outbox);
  const found = new Promise<Leadership>((resolve) =>
    work.set(instance, (leadership) => {
      resolve(leadership);
      return leadership.ended;
    }),
  );
  cluster.clock.stall(TTL);
  await cluster.clock.advance(SECOND);
  return found;
}

describe('A method under @Leader that is declared wrongly', () => {
  const bootWith = (...providers: Provider[]): Promise<TestingModule> =>
    boot({ imports: [cluster.locks.module({ instance: 'a' }), RedlockLeaderModule], providers });

  function declared(name: unknown, options?: unknown): Provider {
    class Worker {
      @Leader(name as string, options as LeaderOptions)
      async lead({ ended }: Leadership): Promise<void> {
        await ended;
      }
    }
    return Worker;
  }

  it.each<[string, unknown, unknown, string]>([
    ['no name', undefined, undefined, '@Leader on Worker.lead: name must be a non-empty string, got undefined'],
    ['an empty name', '', undefined, 'name must be a non-empty string'],
    ['permits', 'x', { permits: 2 }, 'may hold known options only'],
    ['reentrant', 'x', { reentrant: true }, 'may hold known options only'],
    ['an unknown option', 'x', { tttl: 5 }, 'did you mean ttl?'],
    ['options that are none', 'x', 5, 'must be an object of options'],
    ['a ttl without a unit', 'x', { ttl: '10' }, '@Leader on Worker.lead: ttl must have a unit'],
    ['a ttl beyond maxTtl', 'x', { ttl: '1h' }, 'must be at most maxTtl'],
    ['data that is no JSON', 'x', { data: 1n }, 'must be a value that JSON can represent in 16 KiB, or a function'],
    ['an unknown service', 'x', { service: 'billing' }, "import RedlockModule.forRoot({ name: 'billing', ... })"],
  ])('is refused at boot: %s', async (_, name, options, message) => {
    await expect(bootWith(declared(name, options))).rejects.toThrow(message);
  });

  it('is refused twice of one name, and where another method takes permits of the name', async () => {
    await expect(bootWith(declared('x'), declared('x'))).rejects.toThrow(
      'must be different for each election on the same masters',
    );
    class Other {
      @WithLock('leader:x', { permits: 2 })
      async work(): Promise<void> {}
    }
    await expect(bootWith(declared('x'), Other)).rejects.toThrow(
      'permits and a lock of one name do not exclude each other',
    );
  });

  it('is refused without its module, also in an object that a factory has made', async () => {
    const imports = [cluster.locks.module({ instance: 'a' })];
    await expect(boot({ imports, providers: [declared('x')] })).rejects.toThrow(
      'the elections of nestjs-redlock/leader: import RedlockLeaderModule beside RedlockModule',
    );
    const made = { provide: 'made', useFactory: () => new (declared('x') as new () => object)() };
    await expect(boot({ imports, providers: [made] })).rejects.toThrow('has elections, and RedlockLeaderModule');
    await expect(boot({ imports: [RedlockLeaderModule], providers: [declared('x')] })).rejects.toThrow(
      'import RedlockModule.forRoot(...) beside RedlockLeaderModule',
    );
  });

  it('is refused in a class with a scope', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Worker {
      @Leader('x')
      async lead({ ended }: Leadership): Promise<void> {
        await ended;
      }
    }
    await expect(bootWith(Worker)).rejects.toThrow('needs a singleton');
  });

  it('is named in the error of a look at an unknown election', async () => {
    const app = await bootWith(declared('x'));
    expect(() => app.get(Elections).isLeader('y')).toThrow(
      'must be the name of an election of this application, with its service (x)',
    );
    await expect(app.get(Elections).leader('y')).rejects.toThrow('(x), got "y"');
    expect(() => app.get(Elections).isLeader('x', 'billing')).toThrow('of an election of this application');
  });
});

describe('Elections of one name in two lock services', () => {
  class Worker {
    @Leader('x', { service: 'billing', ttl: '5s', data: () => 'at once' })
    async leadBilling({ ended }: Leadership): Promise<void> {
      await ended;
    }
    @Leader('x')
    async lead({ ended }: Leadership): Promise<void> {
      await ended;
    }
  }

  it('are two elections', async () => {
    const app = await boot({
      imports: [
        cluster.locks.module({ instance: 'a' }),
        new Locks(1, { clock: cluster.clock, name: 'billing' }).module(),
        RedlockLeaderModule,
      ],
      providers: [Worker],
    });
    await cluster.clock.advance(10);
    const elections = app.get(Elections);
    expect([elections.isLeader('x'), elections.isLeader('x', 'billing')]).toEqual([true, true]);
    await expect(elections.leader('x', 'billing')).resolves.toMatchObject({ data: 'at once' });
    await expect(elections.leader('x')).resolves.toMatchObject({ data: undefined });
    expect(() => elections.isLeader('x', 'other')).toThrow('with its service (x of service billing, x)');
  });
});
