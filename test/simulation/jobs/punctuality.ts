import { MAX_ERROR } from './generator.js';
import type { JobInstance } from './job-instance.js';
import type { JobsWorld } from './jobs-world.js';

/** How late timers, connections and rounds may be, in milliseconds. */
const SLACK = 5_000;

/**
 * (e) For each tick whose successor was also due before the end: if some instance was up from before the tick came due on
 * its clock until its successor could be due, and neither stood still nor was cut off, the tick was started, or given up
 * on record. Exempt:
 * - with `overlap: 'skip'`, a tick during which an earlier one ran;
 * - a tick until whose successor an earlier one ran, or the masters did not work: the successor supersedes it;
 * - all ticks after more masters lost their data than the condition allows.
 */
export function checkNothingMissed(world: JobsWorld): void {
  const { ledger, ticks, scheduler } = world;
  if (ledger.isVoid) return;
  for (let tick = ticks.next(world.firstStart); ;) {
    const next = ticks.next(tick);
    if (world.moment(next) > scheduler.now - MAX_ERROR - SLACK) return;
    if (ledger.ticks.get(tick)?.isHandled !== true && !isExempt(world, tick, next)) {
      const witness = world.instances.find((instance) => wasUpThrough(world, instance, tick, next));
      if (witness) {
        ledger.fail('no tick is missed', `${world.nameOf(tick)} did not start, and ${witness.name} was up through it`);
      }
    }
    tick = next;
  }
}

function isExempt(world: JobsWorld, tick: number, next: number): boolean {
  const { ledger, plan, faults } = world;
  const [from, to] = [world.moment(tick) - MAX_ERROR - SLACK, world.moment(tick) + MAX_ERROR + SLACK];
  const runsIn = (begin: number, end: number): boolean =>
    ledger.runs.some((run) => run.tick < tick && run.startedAt < end && run.endedAt > begin);
  if (plan.policy.overlap === 'skip' && runsIn(from, to)) return true;
  const successor = world.moment(next) - MAX_ERROR - SLACK;
  const unsettled = successor - 2 * plan.ttl - world.quarantine - SLACK;
  return (
    runsIn(unsettled, successor + MAX_ERROR) ||
    faults.outages.some((outage) => outage.from < successor && outage.to > unsettled)
  );
}

function wasUpThrough(world: JobsWorld, instance: JobInstance, tick: number, next: number): boolean {
  const { faults } = world;
  const due = world.moment(tick) - (instance.process.clocks.wallTime - world.mastersTime);
  const until = world.moment(next) - MAX_ERROR - SLACK;
  const paused = faults.pauses.some(
    (pause) => pause.instance === instance && pause.from < until && pause.to > instance.upFrom,
  );
  return instance.upFrom < due - SLACK && instance.upTo > until && !paused;
}
