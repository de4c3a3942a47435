import { serve } from '../engine/thread.js';
import { generate } from './generator.js';
import type { JobsPlan } from './plan.js';
import { play } from './play.js';
import { RARE_STATES } from './rare-states.js';

serve<JobsPlan, object>({
  rareStates: RARE_STATES,
  plan: (seed) => generate(seed),
  play: (plan, _, log) => play(plan, log),
  describe: (plan) => JSON.stringify(plan, (_, value: unknown) => (value === Infinity ? 'for ever' : value), 1),
  parts: { faults: 0, instances: 1 },
});
