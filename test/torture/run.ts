import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from './cluster.js';
import { Crew } from './crew.js';
import { type Evidence, keyOfPermit, PERMITS, type Phase } from './evidence.js';
import { KINDS } from './kinds.js';
import { Nemesis } from './nemesis.js';
import { MAX_TTL, type Plan, planOf } from './plan.js';
import { Register } from './register.js';
import { now } from './trace.js';

export interface TortureOptions {
  readonly seed: number;
  readonly milliseconds: number;
  readonly masters: number;
  readonly workers: number;
  /** Path of the compiled worker.ts. */
  readonly program: string;
  /** URL of the library's entry. */
  readonly library: string;
  /** Replaces the plan that the seed gives. */
  readonly plan?: Plan;
  /** `false` shows what happens without the guard. */
  readonly restartGuard?: boolean;
  /** `false` shows which writes a resource receives that ignores fencing tokens. */
  readonly fenced?: boolean;
  /** Called at the beginning of each phase, with the number of writes that were accepted so far. */
  readonly progress?: (phase: Phase, accepted: number) => void;
}

const RESOURCES = ['a', 'b', 'c', 'd', 'e'];
const ACTORS = 4;
/** More than `maxTtl`, for a key that was set at the very end on a master whose clock is slightly slow. */
const GHOSTS_AFTER = MAX_TTL + 250;

/** Starts masters and workers, carries out the plan, ends everything, and returns the evidence. */
export async function torture(options: TortureOptions): Promise<Evidence> {
  const { seed, workers, program, library, restartGuard = true, fenced = true, progress } = options;
  const plan = options.plan ?? planOf(options);
  const keys = [...RESOURCES, ...Array.from({ length: PERMITS }, (_, slot) => keyOfPermit(slot))];
  const folder = await mkdtemp(join(tmpdir(), 'redlock-torture-'));
  try {
    await using cluster = await Cluster.start(options.masters);
    const register = new Register(fenced);
    const started = now();
    const task = {
      ...{ program, folder, library, workers, seed, restartGuard, masters: cluster.urls },
      ...{ maxTtl: MAX_TTL, keys: RESOURCES, actors: ACTORS },
    };
    await using crew = new Crew(task, register);
    await crew.untilReady();
    const accepted = (): number => register.writes.filter((write) => write.accepted).length;
    const nemesis = new Nemesis({ cluster, crew, register, keys }, plan, (phase) => progress?.(phase, accepted()));
    const begun = now();
    await nemesis.run();
    const over = now();
    await crew.end();
    await sleep(GHOSTS_AFTER);
    const ghosts = await cluster.ghosts();
    const phases: Phase[] = [
      { name: 'start', from: started, to: begun },
      ...nemesis.phases,
      { name: 'end', from: over, to: now() },
    ];
    const names = { kinds: Object.keys(KINDS), keys };
    return { ...names, phases, faults: nemesis.faults, workers: crew.records, writes: register.writes, ghosts };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
