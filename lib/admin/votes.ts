import { resolveSettings } from '../settings/settings.js';
import type { Examination } from './examination.js';
import { isVital } from './permissions.js';

type ClockOffset = NonNullable<Examination['clock']>;

// Milliseconds until its votes count, 0 if they count now; `undefined` if a process has to connect to it first, which
// begins its wait. Nothing is written for the answer.
// Protocol 8.3
export function waitOf({ report }: Examination): number | undefined {
  if (!report || report.gate.from === '' || report.gate.run !== report.run) return undefined;
  return Math.max(0, Number(report.gate.from) - report.time);
}

// All masters, each of which is examined beside the others.
export class ExaminedMasters {
  constructor(readonly all: readonly Examination[]) {}

  // A process has connected to one of them with the restart guard.
  get areMet(): boolean {
    return this.all.some(({ report }) => (report?.gate.from ?? '') !== '');
  }

  get areGuardedByDefault(): boolean {
    const hasGroup = this.all.some(({ isGroup }) => isGroup);
    return resolveSettings({}, this.all.length, hasGroup).restartGuard;
  }

  // Otherwise, a marker shows that an application has switched the guard on.
  get areGuarded(): boolean {
    return this.areGuardedByDefault || this.areMet;
  }

  // Whether its votes would count if the restart guard let them.
  canVote(one: Examination, guarded: boolean): boolean {
    const { unreachable, fault, refusal, missing } = one;
    if (unreachable ?? fault ?? refusal ?? this.twinOf(one)) return false;
    return !missing.some((rule) => isVital(rule, guarded));
  }

  // The first master that is the same server.
  twinOf(one: Examination): Examination | undefined {
    const first = this.all.find((other) => other === one || isSame(one, other));
    return first === one ? undefined : first;
  }

  // The offset that most clocks agree on, if most of them agree.
  get clock(): ClockOffset | undefined {
    const sorted = this.all.flatMap(({ clock }) => clock ?? []).sort((a, b) => middleOf(a) - middleOf(b));
    return sorted[Math.floor((sorted.length - 1) / 2)];
  }

  // In milliseconds, from the median of all clocks; positive if the clock is ahead. Overlapping bounds have no certain
  // distance.
  clockErrorOf({ clock }: Examination): number | undefined {
    const reference = this.clock;
    if (!clock || !reference) return undefined;
    if (clock.min > reference.max) return clock.min - reference.max;
    return clock.max < reference.min ? clock.max - reference.min : 0;
  }
}

export function middleOf({ min, max }: ClockOffset): number {
  return (min + max) / 2;
}

function isSame(one: Examination, other: Examination): boolean {
  const run = one.report?.run ?? '';
  return run !== '' && run === other.report?.run;
}
