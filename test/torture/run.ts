import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from './cluster.js';
import { Crew } from './crew.js';
import { type Evidence, type GhostKey, keyOfPermit, PERMITS, type Phase } from './evidence.js';
import { carryOut } from './faults.js';
import { type FaultKind, KINDS } from './kinds.js';
import { type Arsenal, Nemesis } from './nemesis.js';
import { MAX_TTL, type Plan, planOf } from './plan.js';
import { Register } from './register.js';
import { now } from './trace.js';

/** What every run needs, whatever it puts under torture. */
export interface RunOptions {
  readonly seed: number;
  readonly workers: number;
  /** Path of the compiled worker.ts. */
  readonly program: string;
  /** URL of the library's entry. */
  readonly library: string;
  /** `false` shows what happens without the guard. */
  readonly restartGuard?: boolean;
  /** `false` shows which writes a resource receives that ignores fencing tokens. */
  readonly fenced?: boolean;
  /** Called at the beginning of each phase, with the number of writes that were accepted so far. */
  readonly progress?: (phase: Phase, accepted: number) => void;
}

export interface TortureOptions extends RunOptions {
  readonly milliseconds: number;
  readonly masters: number;
  /** Replaces the plan that the seed gives. */
  readonly plan?: Plan;
}

/** The servers of a run, and what can happen to them. */
export interface Arena<Name extends string> extends Arsenal<Name> {
  /** URLs. */
  readonly masters: readonly string[];
  readonly resources: readonly string[];
  /** Keys that should be gone when every lock has ended. */
  readonly ghosts: () => Promise<GhostKey[]>;
}

const RESOURCES = ['a', 'b', 'c', 'd', 'e'];
const ACTORS = 4;
/** More than `maxTtl`, for a key that was set at the very end on a master whose clock is slightly slow. */
const GHOSTS_AFTER = MAX_TTL + 250;

/** Starts masters and workers, carries out the plan, ends everything, and returns the evidence. */
export async function torture(options: TortureOptions): Promise<Evidence> {
  const { seed, milliseconds, masters, workers } = options;
  await using cluster = await Cluster.start(masters);
  const plan = options.plan ?? planOf({ seed, milliseconds, masters, workers });
  const arena: Arena<FaultKind> = {
    masters: cluster.urls,
    resources: RESOURCES,
    kinds: KINDS,
    carryOut: (world, fault) => carryOut(cluster, world, fault),
    ghosts: () => cluster.ghosts(),
  };
  return await runIn(arena, plan, options);
}

/** Starts workers on these servers, carries out the plan, ends the workers, and returns the evidence. */
export async function runIn<Name extends string>(
  arena: Arena<Name>,
  plan: Plan<Name>,
  options: RunOptions,
): Promise<Evidence> {
  const { seed, workers, program, library, restartGuard = true, fenced = true, progress } = options;
  const { masters, resources, kinds } = arena;
  const keys = [...resources, ...Array.from({ length: PERMITS }, (_, slot) => keyOfPermit(slot))];
  const folder = await mkdtemp(join(tmpdir(), 'redlock-torture-'));
  try {
    await using register = await Register.open(fenced);
    const started = now();
    await using crew = new Crew({
      ...{ program, folder, library, workers, seed, restartGuard, masters },
      ...{ register: register.port, maxTtl: MAX_TTL, keys: resources, actors: ACTORS },
    });
    await crew.untilReady();
    const accepted = (): number => register.writes.filter((write) => write.accepted).length;
    const nemesis = new Nemesis({ crew, register, keys }, arena, plan, (phase) => progress?.(phase, accepted()));
    const begun = now();
    await nemesis.run();
    const over = now();
    await crew.end();
    await sleep(GHOSTS_AFTER);
    const ghosts = await arena.ghosts();
    const phases: Phase[] = [
      { name: 'start', from: started, to: begun },
      ...nemesis.phases,
      { name: 'end', from: over, to: now() },
    ];
    const { faults } = nemesis;
    const names = { kinds: Object.keys(kinds), keys };
    return { ...names, phases, faults, workers: await crew.records(), writes: register.writes, ghosts };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
