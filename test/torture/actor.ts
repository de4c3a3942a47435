import { setTimeout as sleep } from 'node:timers/promises';
import type { LockLostError } from '../../lib/redlock/errors.js';
import { type Lock } from '../../lib/locks/lock.js';
import { type AcquireOptions } from '../../lib/settings/options.js';
import { type LockService } from '../../lib/nest/lock.service.js';
import { type Dice } from './dice.js';
import { keyOfPermit, PERMITS, PERMITS_OF } from './evidence.js';
import { type Writer } from './register.js';
import { type Claim, now, type Trace } from './trace.js';

/**
 * An extension gives at least the shortest ttl, counted from its start, which is at most a master's timeout before its
 * end. A lock that ends within this many milliseconds after its holder looked has therefore not been extended since.
 */
const SURELY_NOT_EXTENDED = 100;

/**
 * Records what a holder believes, and never more than is true.
 *
 * Belief begins when the lock has been granted. It ends when the lock is released, when its signal aborts, or at the
 * end of the validity, whichever comes first. The holder computes the end of the validity when it looks: the time
 * before the look, plus the remaining time. A holder that is stopped, or busy, believes no longer than it saw last. A
 * lock that was held before and after a period was held throughout it, so a later look covers everything before it.
 */
class Section {
  private until: number;
  private lookedAt: number;
  isOver = false;
  knownToken: number | undefined;
  /** Resolves when the loss of the lock is reported. */
  readonly untilLost: Promise<void>;

  constructor(
    private readonly trace: Trace,
    readonly name: string,
    readonly claim: Claim,
    asked: number,
    private readonly lock: Lock,
    /** Whether the library extends it. */
    private readonly extended: boolean,
  ) {
    const at = (this.lookedAt = now());
    this.until = at + lock.remaining();
    trace.say({ kind: 'granted', section: name, ...claim, asked, at, until: this.until });
    this.untilLost = new Promise((resolve) => {
      const lose = (): void => {
        this.noteLoss();
        resolve();
      };
      if (lock.signal.aborted) lose();
      else lock.signal.addEventListener('abort', lose, { once: true });
    });
  }

  look(): void {
    if (this.isOver) return;
    const at = now();
    const remaining = this.lock.remaining();
    // Looking may itself report the loss. In that case, the loss has already been recorded.
    if (remaining === 0) return;
    this.lookedAt = at;
    this.until = at + remaining;
    this.trace.say({ kind: 'looked', section: this.name, at, until: this.until });
  }

  /** Withdraws the recorded belief before the holder asks for a shorter ttl. */
  promiseNothing(): void {
    const at = now();
    if (!this.isOver) this.trace.say({ kind: 'looked', section: this.name, at, until: Math.min(at, this.until) });
  }

  /** The fencing token; `undefined` for a shared section, and if the lock ends first. */
  async token(): Promise<number | undefined> {
    if (this.claim.mode === 'shared') return undefined;
    // The library retries while the lock is held, which is not long without extension.
    const asked = this.trace.ask('token', this.lock.remaining() + 1_000);
    try {
      const token = await this.lock.fencingToken();
      this.trace.say({ kind: 'token', section: this.name, at: now(), token });
      asked.settle('known');
      this.knownToken = token;
      return token;
    } catch (error) {
      asked.settle((error as Error).name);
      return undefined;
    }
  }

  /** To be called before the lock is released. */
  leave(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.trace.saySince(this.due, { kind: 'left', section: this.name, why: 'released' });
  }

  private noteLoss(): void {
    if (this.isOver) return;
    this.isOver = true;
    const why = (this.lock.signal.reason as LockLostError).cause;
    this.trace.saySince(this.due, { kind: 'lost', section: this.name, why });
  }

  /** When the end should have been reported; unknown if the lock may have been extended since its holder looked. */
  private get due(): number | undefined {
    return this.extended && now() - this.lookedAt > SURELY_NOT_EXTENDED ? undefined : this.until;
  }
}

interface ActorContext {
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
    await this.hold(choice, { wait }, async (section, lock) => {
      await this.workIn(section, dice.between(2, ttl / 4));
      if (section.isOver || !dice.chance(0.7)) return;
      section.promiseNothing();
      const asked = trace.ask('extend', TWO_ROUNDS);
      await lock.extend(dice.pick(TTLS)).then(
        () => asked.settle('extended'),
        (error: unknown) => asked.settle(nameOf(error)),
      );
      section.look();
      await this.workIn(section, dice.between(2, ttl / 2));
    });
  }

  /** `tryAcquire`. */
  private async attempt(): Promise<void> {
    await this.hold(this.choose(), undefined, (section) => this.workIn(section, this.context.dice.between(2, 60)));
  }

  /** Does not look at the lock: only the library can report that it has ended. */
  private async sleepThrough(): Promise<void> {
    const choice = this.choose();
    const options = { wait: choice.wait, extend: this.context.dice.chance(0.3) };
    await this.hold(choice, options, (section) => Promise.race([section.untilLost, sleep(choice.ttl + 500)]));
  }

  /** `minHold`: the keys outlive the section. Shared locks do not have that. */
  private async keep(): Promise<void> {
    const choice = this.choose([EXCLUSIVE, PERMIT]);
    const minHold = Math.ceil(this.context.dice.between(20, choice.ttl / 2));
    await this.hold(choice, { wait: choice.wait, minHold }, (section) => this.workIn(section, 5));
  }

  /** A signal ends the wait. */
  private async impatiently(): Promise<void> {
    const { dice } = this.context;
    const choice = this.choose();
    const patience = Math.ceil(dice.between(1, 300));
    const options = { wait: 3_000, signal: AbortSignal.timeout(patience), extend: true };
    await this.hold(choice, options, (section) => this.workIn(section, dice.between(2, 60)), patience);
  }

  /** Acquires, works and releases; without options, it tries once. */
  private async hold(
    choice: Choice,
    options: (AcquireOptions & { readonly wait: number }) | undefined,
    work: (section: Section, lock: Lock) => Promise<void>,
    within = options?.wait ?? 0,
  ): Promise<void> {
    const { locks, trace } = this.context;
    const { resources, sharing, ttl } = choice;
    const asked = trace.ask('acquire', within + TWO_ROUNDS);
    const acquiring = options
      ? locks.acquire(resources, { ...sharing, ttl, ...options })
      : locks.tryAcquire(resources, { ...sharing, ttl });
    const lock = await acquiring.catch((error: unknown) => {
      asked.settle(nameOf(error));
      throw error;
    });
    if (!lock) {
      asked.settle('null');
      return;
    }
    const section = this.enter(lock, choice, asked.at, options?.extend === true);
    asked.settle('granted');
    await work(section, lock);
    section.leave();
    const leaving = trace.ask('release', TWO_ROUNDS);
    await lock.release();
    leaving.settle('released');
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
