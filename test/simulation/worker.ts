import { serve } from './engine/thread.js';
import { KINDS, generateAny } from './generator.js';
import { PROFILES, scheduleFor } from './mutants/profiles.js';
import { RARE_STATES } from './properties/sometimes.js';
import { play } from './run.js';
import type { FaultKind, Schedule } from './schedule.js';

interface Choice {
  readonly faults?: readonly FaultKind[];
  readonly mutant?: string;
}

serve<Schedule, Choice>({
  rareStates: RARE_STATES,
  plan: (seed, { faults, mutant }) => {
    const unknown = faults?.find((kind) => !KINDS.has(kind));
    if (unknown !== undefined) throw new Error(`no such fault: ${unknown}; there are ${[...KINDS].join(', ')}`);
    return mutant === undefined ? generateAny(seed, faults) : scheduleFor(mutant, seed);
  },
  play: (schedule, { mutant = '' }, log) => {
    const { modelFaults } = PROFILES[mutant] ?? {};
    return play(schedule, { ...(modelFaults && { modelFaults }), ...(log && { log }) });
  },
  describe: ({ seed, options, servers, processes }) => {
    const clocks = [...servers, ...processes].map(
      ({ rate, offset }) => `${((rate - 1) * 1e6).toFixed(0)} ppm ${offset >= 0 ? '+' : ''}${offset} ms`,
    );
    const what = `${servers.length} masters, ${processes.length} processes, ${JSON.stringify(options)}`;
    return `seed ${seed}: ${what}\nclocks: ${clocks.join(', ')}`;
  },
  parts: { faults: 0, operations: 1 },
});
