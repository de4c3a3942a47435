import { Dice } from './dice.js';
import { type FaultKind, type Kind, KEPT, KINDS } from './kinds.js';

/** Longest ttl of a lock, in milliseconds: short, so that masters that forgot vote again soon. */
export const MAX_TTL = 1_000;
/** For how long a master that forgot does not vote: `maxTtl` after the first call, and the time until that comes. */
export const QUARANTINE = MAX_TTL + 1_000;
const SETTLING = 3_000;
const CALM = 1_500;
const CYCLE = 30_000;

export interface PlannedFault {
  /** Milliseconds from the start. */
  readonly at: number;
  readonly kind: FaultKind;
  /** Numbers of masters or of workers. */
  readonly targets: readonly number[];
  /** Milliseconds until it is healed. */
  readonly lasts: number;
  /** Severity from 0 to 1, for kinds that have one. */
  readonly size: number;
}

export interface PlannedPhase {
  readonly name: 'faults' | 'assumptions broken' | 'settling' | 'calm';
  readonly from: number;
  readonly to: number;
}

export interface Plan {
  readonly phases: readonly PlannedPhase[];
  readonly faults: readonly PlannedFault[];
}

export interface PlanOptions {
  readonly seed: number;
  readonly milliseconds: number;
  readonly masters: number;
  readonly workers: number;
}

/** Plans all faults and phases. The same options give the same plan. */
export function planOf(options: PlanOptions): Plan {
  const phases = phasesOf(options.milliseconds);
  const scheduler = new Scheduler(options);
  for (const phase of phases) {
    if (phase.name === 'faults') scheduler.fill(phase);
    if (phase.name === 'assumptions broken') scheduler.breakAssumptions(phase);
  }
  return { phases, faults: scheduler.faults };
}

function phasesOf(milliseconds: number): PlannedPhase[] {
  const phases: PlannedPhase[] = [];
  const add = (name: PlannedPhase['name'], length: number): void => {
    const from = phases.at(-1)?.to ?? 0;
    phases.push({ name, from, to: from + length });
  };
  const cycles = Math.max(1, Math.round((milliseconds - CALM) / CYCLE));
  const cycle = (milliseconds - CALM) / cycles;
  const broken = Math.min(3_000, cycle / 10);
  for (let i = 0; i < cycles; i++) {
    add('faults', cycle - broken - SETTLING);
    add('assumptions broken', broken);
    add('settling', SETTLING);
  }
  add('calm', CALM);
  return phases;
}

interface Target {
  /** From when on another fault may hit it. */
  free: number;
  /** Until when its votes are missing. */
  impaired: number;
  /** Until when its votes are missing because it forgot. */
  forgot: number;
}

/** Chooses faults that can overlap without breaking an assumption. */
class Scheduler {
  readonly faults: PlannedFault[] = [];
  private readonly dice: Dice;
  private readonly masters: Target[];
  private readonly workers: Target[];
  private deck: FaultKind[] = [];

  constructor(private readonly options: PlanOptions) {
    const targets = (count: number): Target[] =>
      Array.from({ length: count }, () => ({ free: -Infinity, impaired: -Infinity, forgot: -Infinity }));
    this.dice = new Dice(options.seed);
    this.masters = targets(options.masters);
    this.workers = targets(options.workers);
  }

  /** Schedules every kind once before any kind twice, as far as they fit, and several at a time. */
  fill({ from, to }: PlannedPhase): void {
    for (let at = from; at < to; at += this.dice.between(50, 400)) {
      if (this.deck.length === 0) this.deck = this.dice.shuffle(Object.keys(KEPT) as FaultKind[]);
      // Usually a majority can vote, but sometimes it cannot.
      const limit = this.dice.chance(0.85) ? this.minority : this.options.masters;
      const fitting = this.deck
        .map((kind) => ({ kind, fault: this.faultOf(kind, at, to, limit) }))
        .find(({ fault }) => fault);
      if (!fitting?.fault) continue;
      this.deck.splice(this.deck.indexOf(fitting.kind), 1);
      this.add(fitting.fault);
    }
  }

  /** Often enough to hit a lock. */
  breakAssumptions({ from, to }: PlannedPhase): void {
    for (let at = from; at < to; at += this.dice.between(100, 300)) {
      const targets = this.dice.shuffle(this.masters.map((_, index) => index)).slice(0, this.minority + 1);
      this.add({ at, kind: 'keys deleted by an operator', lasts: 0, size: this.dice.fraction(), targets });
    }
  }

  private get minority(): number {
    return Math.ceil(this.options.masters / 2) - 1;
  }

  private faultOf(name: FaultKind, at: number, end: number, limit: number): PlannedFault | undefined {
    const kind = KINDS[name];
    const [least, most] = kind.lasts;
    const lasts = this.dice.between(least, most);
    if (at + lasts > end) return undefined;
    const targets = kind.target === 'worker' ? this.freeWorkers(at) : this.freeMasters(kind, at, limit);
    return targets && { at, kind: name, targets, lasts, size: this.dice.fraction() };
  }

  /** Leaves at least one worker running. */
  private freeWorkers(at: number): number[] | undefined {
    const free = this.workers.flatMap((worker, index) => (worker.free <= at ? [index] : []));
    return free.length > 1 ? [this.dice.pick(free)] : undefined;
  }

  private freeMasters(kind: Kind, at: number, limit: number): number[] | undefined {
    const free = this.masters.flatMap((master, index) => (master.free <= at ? [index] : []));
    const count = kind.target === 'majority' ? this.minority + 1 : 1;
    if (free.length < count) return undefined;
    const forgot = this.masters.filter((master) => master.forgot > at).length;
    const impaired = this.masters.filter((master) => master.impaired > at).length;
    if (kind.target === 'majority' ? forgot > 0 : impaired + 1 > limit) return undefined;
    // Not an assumption, but a limit that leaves something to check: usually only a minority forgets at a time.
    if (kind.target === 'master' && kind.forgets && forgot + 1 > this.minority) return undefined;
    return this.dice.shuffle(free).slice(0, count);
  }

  private add(fault: PlannedFault): void {
    this.faults.push(fault);
    const { at, lasts, targets } = fault;
    const kind: Kind = KINDS[fault.kind];
    const healed = at + lasts;
    const votes = kind.forgets ? healed + QUARANTINE : healed;
    for (const index of targets) {
      const target = (kind.target === 'worker' ? this.workers : this.masters)[index] as Target;
      target.free = Math.max(target.free, votes + 300);
      target.impaired = Math.max(target.impaired, votes);
      if (kind.forgets) target.forgot = votes;
    }
  }
}
