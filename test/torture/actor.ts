import { setTimeout as sleep } from 'node:timers/promises';
import type { Lock } from '../../lib/core/lock.js';
import type { AcquireOptions } from '../../lib/core/settings/options.js';
import type { LockService } from '../../lib/nest/lock.service.js';
import type { Dice } from './dice.js';
import { keyOfPermit, PERMITS, PERMITS_OF } from './permits.js';
import { Section } from './section.js';
import type { Trace } from './trace.js';
import type { Writer } from './writer.js';

export interface ActorContext {
  readonly worker: number;
  readonly name: string;
  readonly keys: readonly string[];
  readonly maxTtl: number;
  readonly locks: LockService;
  readonly trace: Trace;
  readonly writer: Writer;
  readonly dice: Dice;
}

/** What an actor is going to ask for. */
interface Choice {
  readonly resources: readonly string[];
  readonly sharing: Pick<AcquireOptions, 'mode' | 'permits'>;
  readonly ttl: number;
  readonly wait: number;
}

const EXCLUSIVE: Choice['sharing'] = { mode: 'exclusive' };
const SHARED: Choice['sharing'] = { mode: 'shared' };
const PERMIT: Choice['sharing'] = { permits: PERMITS };
const SHARINGS = [EXCLUSIVE, EXCLUSIVE, EXCLUSIVE, EXCLUSIVE, SHARED, SHARED, SHARED, PERMIT, PERMIT];
const TTLS = [200, 200, 400, 400, 1_000];
const WAITS = [0, 200, 1_000, 3_000];
/** Longest time for two rounds to the masters, in milliseconds. */
const TWO_ROUNDS = 100;

/** Takes locks in all the ways that applications do, one after the other. */
export class Actor {
  private sections = 0;
  private readonly ways = [
    ...[() => this.underLock(), () => this.underLock(), () => this.underLock(), () => this.underLock()],
    ...[() => this.underLock(), () => this.underLock(), () => this.byHand(), () => this.byHand()],
    ...[() => this.attempt(), () => this.attempt(), () => this.attempt(), () => this.impatiently()],
    ...[() => this.impatiently(), () => this.sleepThrough(), () => this.keep()],
  ];

  constructor(private readonly context: ActorContext) {}

  async work(goOn: () => boolean): Promise<void> {
    const { dice } = this.context;
    while (goOn()) {
      try {
        await dice.pick(this.ways)();
      } catch (error) {
        // Any other error is unexpected, and the process reports it.
        if (!isExpected(error)) throw error;
      }
      await sleep(dice.between(1, 20));
    }
  }

  /** `withLock`, which extends the lock while the work runs. */
  private async underLock(): Promise<void> {
    const { dice, locks, trace } = this.context;
    const choice = this.choose();
    const { resources, sharing, ttl, wait } = choice;
    const duration = dice.chance(0.08) ? dice.between(200, 2_000) : dice.between(2, 40);
    const asked = trace.ask('acquire', wait + TWO_ROUNDS);
    let release: { settle(how: string): void } | undefined;
    const work = async (lock: Lock): Promise<void> => {
      const section = this.enter(lock, choice, asked.at, true);
      asked.settle('granted');
      await this.workIn(section, duration);
      section.leave();
      release = trace.ask('release', TWO_ROUNDS);
    };
    try {
      await locks.withLock(resources, { ...sharing, ttl, wait }, work);
    } catch (error) {
      asked.settle(nameOf(error));
      throw error;
    } finally {
      release?.settle('released');
    }
  }

  /** `acquire`, `extend` to longer and shorter ttls, and `release`. */
  private async byHand(): Promise<void> {
    const { dice, trace } = this.context;
    const choice = this.choose();
    const { ttl, wait } = choice;
    const lock = await this.acquire(choice, { wait });
    const section = this.enter(lock.lock, choice, lock.asked, false);
    await this.workIn(section, dice.between(2, ttl / 4));
    if (!section.isOver && dice.chance(0.7)) {
      section.promiseNothing();
      const asked = trace.ask('extend', TWO_ROUNDS);
      await lock.lock.extend(dice.pick(TTLS)).then(
        () => asked.settle('extended'),
        (error: unknown) => asked.settle(nameOf(error)),
      );
      section.look();
      await this.workIn(section, dice.between(2, ttl / 2));
    }
    await this.leave(section, lock.lock);
  }

  private async attempt(): Promise<void> {
    const { locks, trace, dice } = this.context;
    const choice = this.choose();
    const { resources, sharing, ttl } = choice;
    const asked = trace.ask('acquire', TWO_ROUNDS);
    const lock = await locks.tryAcquire(resources, { ...sharing, ttl }).catch((error: unknown) => {
      asked.settle(nameOf(error));
      throw error;
    });
    if (!lock) {
      asked.settle('null');
      return;
    }
    const section = this.enter(lock, choice, asked.at, false);
    asked.settle('granted');
    await this.workIn(section, dice.between(2, 60));
    await this.leave(section, lock);
  }

  /** Does not look at the lock: only the library can report that it has ended. */
  private async sleepThrough(): Promise<void> {
    const choice = this.choose();
    const { ttl, wait } = choice;
    const extend = this.context.dice.chance(0.3);
    const { lock, asked } = await this.acquire(choice, { wait, extend });
    const section = this.enter(lock, choice, asked, extend);
    await Promise.race([section.untilLost, sleep(ttl + 500)]);
    await this.leave(section, lock);
  }

  /** `minHold`: the keys outlive the section. Shared locks do not have that. */
  private async keep(): Promise<void> {
    const { dice } = this.context;
    const choice = this.choose([EXCLUSIVE, PERMIT]);
    const { ttl, wait } = choice;
    const { lock, asked } = await this.acquire(choice, { wait, minHold: Math.ceil(dice.between(20, ttl / 2)) });
    const section = this.enter(lock, choice, asked, false);
    await this.workIn(section, 5);
    await this.leave(section, lock);
  }

  /** A signal ends the wait. */
  private async impatiently(): Promise<void> {
    const { dice } = this.context;
    const choice = this.choose();
    const patience = Math.ceil(dice.between(1, 300));
    const options = { wait: 3_000, signal: AbortSignal.timeout(patience), extend: true };
    const { lock, asked } = await this.acquire(choice, options, patience);
    const section = this.enter(lock, choice, asked, true);
    await this.workIn(section, dice.between(2, 60));
    await this.leave(section, lock);
  }

  private async acquire(
    { resources, sharing, ttl }: Choice,
    options: AcquireOptions & { readonly wait: number },
    within = options.wait,
  ): Promise<{ readonly lock: Lock; readonly asked: number }> {
    const { locks, trace } = this.context;
    const asked = trace.ask('acquire', within + TWO_ROUNDS);
    try {
      const lock = await locks.acquire(resources, { ...sharing, ttl, ...options });
      asked.settle('granted');
      return { lock, asked: asked.at };
    } catch (error) {
      asked.settle(nameOf(error));
      throw error;
    }
  }

  private enter(lock: Lock, { resources, sharing }: Choice, asked: number, extended: boolean): Section {
    const { trace, name } = this.context;
    const { mode = 'exclusive', permits } = sharing;
    const keys = permits === undefined ? resources : [keyOfPermit(lock.slot)];
    return new Section(trace, `${name}.${++this.sections}`, { keys, mode, permits }, asked, lock, extended);
  }

  /** Writes at the beginning and, without checking the lock again, at the end. */
  private async workIn(section: Section, duration: number): Promise<void> {
    const { dice } = this.context;
    const token = section.knownToken ?? (await section.token());
    if (token !== undefined) await this.write(section, token);
    const end = performance.now() + duration;
    while (!section.isOver && performance.now() < end) {
      await sleep(Math.min(dice.between(1, 25), Math.max(0, end - performance.now())));
      section.look();
    }
    if (token !== undefined) await this.write(section, token);
  }

  private async write({ name, claim }: Section, token: number): Promise<void> {
    const { worker, writer } = this.context;
    await writer.write({ section: name, worker, keys: claim.keys, token });
  }

  private async leave(section: Section, lock: Lock): Promise<void> {
    section.leave();
    const asked = this.context.trace.ask('release', TWO_ROUNDS);
    await lock.release();
    asked.settle('released');
  }

  private choose(sharings = SHARINGS): Choice {
    const { dice, keys, maxTtl } = this.context;
    const sharing = dice.pick(sharings);
    const several = dice.chance(0.25) ? 2 + Math.floor(dice.between(0, 2)) : 1;
    return {
      resources: sharing === PERMIT ? [PERMITS_OF] : dice.shuffle(keys).slice(0, several),
      sharing,
      ttl: Math.min(dice.pick(TTLS), maxTtl),
      wait: dice.pick(WAITS),
    };
  }
}

/** Compares code and name, because the library may be loaded from another place than its types. */
function isExpected(error: unknown): boolean {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return name === 'TimeoutError' || (typeof code === 'string' && EXPECTED.includes(code));
}

const EXPECTED = ['LOCK_NOT_ACQUIRED', 'QUORUM_UNAVAILABLE', 'LOCK_LOST', 'LOCK_SERVICE_STOPPED'];

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : String(error);
}
