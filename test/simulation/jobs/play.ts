import { settlePromises } from '../engine/microtasks.js';
import { MAX_ERROR } from './generator.js';
import { JobsWorld } from './jobs-world.js';
import type { JobsPlan } from './plan.js';
import { checkNothingMissed } from './punctuality.js';
import type { RareState } from './rare-states.js';
import { type JobProperty, JobViolation } from './violation.js';

/** The outcome of a run. */
export interface JobsResult {
  readonly property: JobProperty | undefined;
  readonly message: string | undefined;
  readonly reached: readonly RareState[];
  readonly events: number;
  readonly ticks: number;
  readonly starts: number;
  /** Equal for the same course of events. */
  readonly fingerprint: number;
}

/** A run with more events is in an endless loop. */
const MAX_EVENTS = 2_000_000;
/** How long connecting and a few rounds may take, in milliseconds. */
const SLACK = 30_000;

/** Plays a plan until everything is over, and checks all properties. */
export async function play(plan: JobsPlan, log?: (line: string) => void): Promise<JobsResult> {
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown): void => void rejections.push(reason);
  process.on('unhandledRejection', onRejection);
  const world = new JobsWorld(plan, log);
  try {
    // Leaves the promise reaction in which this function may be called.
    const error = await new Promise<unknown>((resolve) =>
      setImmediate(() => {
        try {
          run(world);
          resolve(undefined);
        } catch (thrown) {
          resolve(thrown);
        }
      }),
    );
    // Only after this turn does Node report unhandled rejections.
    await new Promise((resolve) => setImmediate(resolve));
    return resultOf(world, error ?? rejections[0]);
  } finally {
    process.off('unhandledRejection', onRejection);
  }
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
  if (ledger.active.length > 1) throw new JobViolation('progress', scheduler.now, 'more than one run does not end');
}

/** Runs events until a moment, or until there is nothing left to wait for. */
function until(world: JobsWorld, moment: number, isEnough?: () => boolean): void {
  const { scheduler, ledger } = world;
  if (isEnough?.()) return;
  while (scheduler.step(moment)) {
    settlePromises();
    if (ledger.active.length > 1) ledger.checkBeliefs();
    if (world.failure) throw world.failure;
    if (scheduler.steps > MAX_EVENTS) {
      throw new JobViolation('progress', scheduler.now, 'something goes round in circles');
    }
    if (isEnough?.()) return;
  }
  scheduler.now = Math.max(scheduler.now, moment);
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

function resultOf(world: JobsWorld, error: unknown): JobsResult {
  const { states, scheduler, ledger } = world;
  const isViolation = error instanceof JobViolation;
  const reported = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return {
    property: error === undefined ? undefined : isViolation ? error.property : 'no unexpected error',
    message:
      error === undefined ? undefined : isViolation ? `${error.message} (at ${error.at.toFixed(3)} ms)` : reported,
    reached: [...states],
    events: scheduler.steps,
    ticks: ledger.ticks.size,
    starts: ledger.runs.length,
    fingerprint: scheduler.fingerprint,
  };
}
