import { type Clock, elapsedSince, type Instant, type Timer } from '../clock.js';
import type { MasterReport } from '../errors.js';
import type { Extension, LeasedKeys } from './quorum-lock.js';
import type { CallSettings } from '../settings/settings.js';
import type { Witness } from '../witness.interface.js';

// The parts of a lock that were acquired one by one. The lock ends as soon as one of them does.
export class CompositeLock implements LeasedKeys {
  private readonly parts: LeasedKeys[] = [];

  add(part: LeasedKeys): void {
    this.parts.push(part);
  }

  get remaining(): number {
    return this.first.remaining;
  }

  remainingAt(now: Instant): number {
    return Math.min(...this.parts.map((part) => part.remainingAt(now)));
  }

  get validSince(): Instant {
    return this.first.validSince;
  }

  // Several keys have no state.
  readonly stateAccess = undefined;
  // A permit has one key.
  readonly slot = undefined;

  get lastReplies(): readonly MasterReport[] {
    return this.first.lastReplies;
  }

  async extend(ttl: number): Promise<Extension> {
    return resultOf(await Promise.all(this.parts.map((part) => part.extend(ttl))));
  }

  async verify(ttl?: number): Promise<Extension | undefined> {
    const answers = await Promise.all(this.parts.map((part) => part.verify(ttl)));
    const extensions = answers.filter((extension) => extension !== undefined);
    return extensions.length < answers.length ? undefined : resultOf(extensions);
  }

  noteSetBack(milliseconds: number): void {
    for (const part of this.parts) part.noteSetBack(milliseconds);
  }

  // The largest token of the parts, to which every part then has to agree.
  async drawToken(atLeast = 0): Promise<number | undefined> {
    let token = atLeast;
    while (this.remaining > 0) {
      const least = token;
      const tokens = await Promise.all(this.parts.map((part) => part.drawToken(least)));
      const agreed = tokens.filter((each) => each !== undefined);
      if (agreed.length < tokens.length) return undefined;
      token = Math.max(...agreed);
      if (agreed.every((each) => each === token)) return token;
    }
    return undefined;
  }

  async release(keepFor: number): Promise<void> {
    await Promise.all(this.parts.map((part) => part.release(keepFor)));
  }

  giveUp(): void {
    for (const part of this.parts) part.giveUp();
  }

  private get first(): LeasedKeys {
    return this.parts.reduce((first, part) => (part.remaining < first.remaining ? part : first));
  }
}

// One part that was not extended decides.
function resultOf(extensions: readonly Extension[]): Extension {
  const failed = extensions.filter(({ extended }) => !extended);
  const telling = failed.find(({ quorumCall }) => quorumCall.ownedByOther) ?? failed[0] ?? extensions[0];
  return telling as Extension;
}

// As a share of the ttl.
const EXTEND_AFTER = 1 / 3;
// As a share of the ttl, after an extension that failed.
const RETRY_AFTER = 1 / 10;

// Keeps the resources that are already acquired alive until the rest are acquired, too.
export class SequentialAcquisition {
  // Protocol 4.9
  private readonly leasedKeys = new CompositeLock();
  private since: Instant | undefined;
  private timer: Timer | undefined;
  private extending: Promise<unknown> | undefined;
  private ended = false;
  private isGivenUp = false;

  constructor(
    private readonly clock: Clock,
    private readonly witness: Witness,
    private readonly call: CallSettings,
  ) {}

  add(part: LeasedKeys): void {
    this.leasedKeys.add(part);
    if (this.since) return;
    this.since = this.clock.read();
    this.keepAfter(this.call.ttl * EXTEND_AFTER);
  }

  // The validity of `ttl` milliseconds counts from now. `undefined` if a part is lost or not extended.
  async complete(ttl: number): Promise<LeasedKeys | undefined> {
    this.end();
    await this.extending;
    if (this.isGivenUp) return undefined;
    const { extended } = await this.leasedKeys.extend(ttl);
    return extended && this.leasedKeys.remaining > 0 ? this.leasedKeys : undefined;
  }

  // Begins no other round.
  giveUp(): void {
    this.isGivenUp = true;
    this.leasedKeys.giveUp();
  }

  release(): Promise<void> {
    this.end();
    return this.leasedKeys.release(0);
  }

  private end(): void {
    this.ended = true;
    this.timer?.cancel();
  }

  private keepAfter(delay: number): void {
    if (this.ended) return;
    this.timer = this.clock.schedule(delay, () => void this.keep()).unref();
  }

  private async keep(): Promise<void> {
    // A lock may not be kept for longer, and this is not even a lock yet: let it expire, so that all is acquired anew.
    if (this.since && elapsedSince(this.clock, this.since) >= this.call.maxHold) return;
    const permitted = await this.witness.announceTtl(this.call.ttl);
    // Released or completed meanwhile: nothing may be extended after that.
    if (this.ended) return;
    const ttl = Math.min(this.call.ttl, permitted);
    const extending = this.leasedKeys.extend(ttl);
    this.extending = extending;
    const { extended } = await extending;
    if (extended || this.leasedKeys.remaining > 0) this.keepAfter(ttl * (extended ? EXTEND_AFTER : RETRY_AFTER));
  }
}
