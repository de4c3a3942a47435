import { describe, expect, it } from '@jest/globals';
import { fc } from '../../support/properties.js';
import { KEPT, type Kind, KINDS } from '../../torture/kinds.js';
import { type Plan, type PlannedFault, planOf, QUARANTINE } from '../../torture/plan.js';

const seeds = fc.integer({ min: 1, max: 2 ** 31 });
const options = { milliseconds: 20_000, masters: 5, workers: 4, clocks: true };
const kindOf = ({ kind }: PlannedFault): Kind => KINDS[kind];

describe('A torture plan', () => {
  it('is the same for the same seed', () => {
    expect(planOf({ ...options, seed: 1 })).toEqual(planOf({ ...options, seed: 1 }));
    expect(planOf({ ...options, seed: 1 })).not.toEqual(planOf({ ...options, seed: 2 }));
  });

  it('contains every kind of fault at least once, even in the shortest run', () => {
    const missing = (seed: number): string[] => {
      const kinds = new Set<string>(planOf({ ...options, seed }).faults.map(({ kind }) => kind));
      return Object.keys(KINDS).filter((kind) => !kinds.has(kind));
    };
    fc.assert(fc.property(seeds, (seed) => expect(missing(seed)).toEqual([])));
  });

  it('omits faults that need a settable clock if there is none', () => {
    const { faults } = planOf({ ...options, seed: 1, clocks: false });
    expect(faults.filter((fault) => kindOf(fault).needsClock)).toEqual([]);
  });

  it('breaks assumptions only in the phases for that, and heals every fault within its phase', () => {
    expectNowhere(({ phases, faults }) =>
      faults.filter(({ at, lasts, kind }) => {
        const phase = phases.find(({ from, to }) => from <= at && at < to)!;
        return phase.name !== (kind in KEPT ? 'faults' : 'assumptions broken') || at + lasts > phase.to;
      }),
    );
  });

  it('gives a target one fault at a time, until its votes count again', () => {
    expectNowhere(({ faults }) =>
      faults.filter(keepsAssumptions).filter((fault, index, kept) => {
        const until = fault.at + fault.lasts + (kindOf(fault).forgets ? QUARANTINE : 0);
        return kept.slice(index + 1).some((other) => other.at < until && shareTarget(fault, other));
      }),
    );
  });

  it('keeps all processes present and informed while a master forgets what only they can notice', () => {
    expectNowhere(({ faults }) =>
      faults.filter(keepsAssumptions).filter((fault, _, kept) => {
        if (!kindOf(fault).needsWitnesses) return false;
        const isAway = ({ at, lasts }: PlannedFault): boolean => at <= fault.at && fault.at < at + lasts;
        return kept.some((other) => {
          const { newWorker, target } = kindOf(other);
          return (newWorker && Math.abs(other.at - fault.at) < 4_000) || (target === 'worker' && isAway(other));
        });
      }),
    );
  });

  function expectNowhere(offences: (plan: Plan) => readonly PlannedFault[]): void {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 20_000, max: 60_000 }), (seed, milliseconds) =>
        expect(offences(planOf({ ...options, seed, milliseconds }))).toEqual([]),
      ),
    );
  }

  function shareTarget(a: PlannedFault, b: PlannedFault): boolean {
    const areAlike = (kindOf(a).target === 'worker') === (kindOf(b).target === 'worker');
    return areAlike && a.targets.some((index) => b.targets.includes(index));
  }

  function keepsAssumptions({ kind }: PlannedFault): boolean {
    return kind in KEPT;
  }
});
