import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { type AppliedFault, type Phase } from './evidence.js';
import { carryOut, type World } from './faults.js';
import { type Kind, KINDS } from './kinds.js';
import { type Plan, type PlannedFault } from './plan.js';
import { now } from './trace.js';

/**
 * After all faults are healed, every worker must get a lock on every key within this time, in milliseconds, even on a
 * slow machine.
 */
const RECOVERED_WITHIN = 30_000;

/** Carries out a plan, and records what happened when. */
export class Nemesis {
  readonly faults: AppliedFault[] = [];
  readonly phases: Phase[] = [];
  /** The work in progress at each target: a slow machine may need longer than planned. */
  private readonly busy = new Map<string, Promise<void>>();
  private restarting: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly enter: (phase: Phase) => void,
  ) {}

  /** Resolves at the end of the last phase. */
  async run(): Promise<void> {
    let under: Promise<void>[] = [];
    for (const { name, from, to } of this.plan.phases) {
      const begun = now();
      const phase = { name, from: begun, to: Infinity };
      this.phases.push(phase);
      this.enter(phase);
      for (const fault of this.plan.faults.filter(({ at }) => from <= at && at < to)) {
        await sleep(Math.max(0, begun + fault.at - from - now()));
        const applying = this.apply(fault);
        // The error is reported at the end of the phase.
        applying.catch(() => undefined);
        under.push(applying);
      }
      await sleep(Math.max(0, begun + to - from - now()));
      // A phase lasts until all its faults are healed.
      await Promise.all(under);
      under = [];
      if (name === 'calm') await this.untilAllWritten(begun);
      phase.to = now();
    }
  }

  /**
   * Resolves when each key was written to by two sections: the first may have begun before the calm, the second has not.
   * The time that this takes depends on the machine. The checker reports what is still missing afterwards.
   */
  private async untilAllWritten(since: number): Promise<void> {
    const { register, keys } = this.world;
    const sectionsOn = (key: string): number => {
      const writes = register.writes.filter(
        ({ at, accepted, keys: own }) => at > since && accepted && own.includes(key),
      );
      return new Set(writes.map(({ section }) => section)).size;
    };
    await eventually(() => keys.every((key) => sectionsOn(key) >= 2), RECOVERED_WITHIN).catch(() => undefined);
  }

  private async apply(fault: PlannedFault): Promise<void> {
    const { kind, targets } = fault;
    const { target, newWorker }: Kind = KINDS[kind];
    const names = targets.map((index) => `${target === 'worker' ? 'worker' : 'master'} ${index}`);
    const before = Promise.all([this.restarting, ...names.map((name) => this.busy.get(name))]);
    const act = async (): Promise<void> => {
      await before;
      const at = now();
      await carryOut(this.world, fault);
      this.faults.push({ kind, targets, at, until: now() });
    };
    const acting = act();
    if (newWorker) this.restarting = acting;
    for (const name of names) this.busy.set(name, acting);
    await acting;
  }
}
