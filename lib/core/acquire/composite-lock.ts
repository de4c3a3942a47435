import type { Instant } from '../clock.js';
import type { MasterReport } from '../errors.js';
import type { Extension, LeasedKeys } from './leased-keys.js';

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
