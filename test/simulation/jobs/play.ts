import { type Outcome, playOut, runUntil } from '../engine/play.js';
import { Violation } from '../properties/violation.js';
import { MAX_ERROR } from './generator.js';
import { JobsWorld } from './jobs-world.js';
import type { JobsPlan } from './plan.js';
import { checkNothingMissed } from './punctuality.js';
import type { RareState } from './rare-states.js';

export interface JobsResult extends Outcome {
  readonly reached: readonly RareState[];
  readonly ticks: number;
  readonly starts: number;
}

const MAX_EVENTS = 2_000_000;
/** How long connecting and a few rounds may take, in milliseconds. */
const SLACK = 30_000;

/** Plays a plan until everything is over, and checks all properties. */
export async function play(plan: JobsPlan, log?: (line: string) => void): Promise<JobsResult> {
  const world = new JobsWorld(plan, log);
  const outcome = await playOut(plan.seed, world.scheduler, () => run(world));
  const { states, ledger } = world;
  return { ...outcome, reached: [...states], ticks: ledger.ticks.size, starts: ledger.runs.length };
}

function run(world: JobsWorld): void {
  const { plan, scheduler, ledger, faults, instances } = world;
  until(world, plan.lasts);
  until(world, Math.max(faults.end, plan.lasts));
  // At the end, an instance lives and all masters answer.
  if (!instances.some(({ isUp }) => isUp)) world.launch(0);
  const calmFrom = scheduler.now;
  // The clock of the last instance may be behind, and a run may begin just before the end.
  const settledWithin = MAX_ERROR + plan.ttl * 2 + world.quarantine + SLACK;
  until(world, calmFrom + settledWithin);
  until(world, scheduler.now + 3 * plan.work.most + settledWithin, () => unsettled(world).length === 0);
  checkNothingMissed(world);
  checkSettled(world, settledWithin);
  if (ledger.active.length > 1) throw new Violation('progress', scheduler.now, 'more than one run does not end');
}

function until(world: JobsWorld, moment: number, isEnough?: () => boolean): void {
  const { scheduler, ledger } = world;
  if (isEnough?.()) return;
  const check = (): void => {
    if (ledger.active.length > 1) ledger.checkBeliefs();
    if (world.failure) throw world.failure;
  };
  runUntil(scheduler, moment, { check, most: MAX_EVENTS, isEnough });
}

/** The ticks that were started, and whose end is not recorded. */
function unsettled({ ledger }: JobsWorld): readonly number[] {
  return [...ledger.ticks]
    .filter(
      ([, { startedAt, finishedAt, runs }]) => (startedAt > -Infinity || runs.length > 0) && finishedAt === Infinity,
    )
    .map(([tick]) => tick);
}

/**
 * (b) At the end, after a time in which an instance lived and the masters answered, the end of each tick is recorded whose
 * start was acknowledged, read or followed by a run: with `recover: true` by an attempt that returned or failed, with
 * `recover: false` also as abandoned. Exempt: a tick of which a run goes on, or has only just ended; the tick of the first
 * record, if a master has lost its data before; and all ticks after more masters lost their data than the condition allows.
 */
function checkSettled(world: JobsWorld, within: number): void {
  const { ledger, plan, scheduler } = world;
  if (ledger.isVoid) return;
  for (const tick of unsettled(world)) {
    const { runs, startedAt } = ledger.tick(tick);
    const last = Math.max(startedAt, ...runs.map(({ endedAt }) => endedAt));
    if (last > scheduler.now - within) continue;
    ledger.fail('a crashed tick runs again, or never', `${world.nameOf(tick)} was started, and did not run again`);
  }
  for (const [tick, { state }] of ledger.ticks) {
    if ((state === 'unknown' && tick !== ledger.firstTick) || (state === 'abandoned' && plan.policy.recover)) {
      ledger.fail('a crashed tick runs again, or never', `${world.nameOf(tick)} is recorded as ${state}`);
    }
  }
}
