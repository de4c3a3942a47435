import { Dice } from '../dice.js';
import { type Plan, type PlannedFault, QUARANTINE } from '../plan.js';
import { SHARD_KINDS, type ShardFault, type ShardKind } from './kinds.js';

export const SHARDS = 3;
/** The number of the bus among the targets, after the shards. */
const BUS = SHARDS;
/** Bounds of the time in which a shard serves between two faults, in milliseconds. */
const HEALTHY = [0, 2_500] as const;
const CALM = 1_500;

interface ShardPlanOptions {
  readonly seed: number;
  readonly milliseconds: number;
  readonly workers: number;
  /** @default true: without it, all faults lose data, and one follows the other */
  readonly restartGuard?: boolean;
}

/** Plans faults of a Redis Cluster, several at a time. The same options give the same plan. */
export function shardPlanOf({ seed, milliseconds, workers, restartGuard = true }: ShardPlanOptions): Plan<ShardFault> {
  const dice = new Dice(seed);
  const kinds = (Object.keys(SHARD_KINDS) as ShardFault[]).filter((name) => restartGuard || forgets(name));
  const [least, most] = restartGuard ? [QUARANTINE + HEALTHY[0], QUARANTINE + HEALTHY[1]] : [0, 100];
  const freeAt = Array.from({ length: SHARDS + 1 }, () => 0);
  const idleAt = Array.from({ length: workers }, () => 0);
  const faults: PlannedFault<ShardFault>[] = [];
  const end = milliseconds - CALM;
  let deck: ShardFault[] = [];

  const targetsOf = ({ target, shards, bus }: ShardKind, at: number): number[] | undefined => {
    if (target === 'worker') {
      const idle = idleAt.flatMap((from, worker) => (from <= at ? [worker] : []));
      // Another one runs meanwhile.
      return idle.length > 1 ? [dice.pick(idle)] : undefined;
    }
    if (bus && freeAt[BUS]! > at) return undefined;
    const free = dice.shuffle([...Array(SHARDS).keys()].filter((shard) => freeAt[shard]! <= at));
    return free.length < shards ? undefined : [...free.slice(0, shards), ...(bus ? [BUS] : [])];
  };
  const faultOf = (name: ShardFault, at: number): PlannedFault<ShardFault> | undefined => {
    const kind: ShardKind = SHARD_KINDS[name];
    const lasts = dice.between(...kind.lasts);
    const targets = at + lasts > end ? undefined : targetsOf(kind, at);
    return targets && { at, kind: name, targets, lasts, size: dice.fraction() };
  };

  // Every kind once before any kind twice, as far as they fit.
  for (let at = 0; at < end; at += dice.between(50, 600)) {
    if (deck.length === 0) deck = dice.shuffle(kinds);
    const fitting = deck.map((name) => faultOf(name, at)).find((fault) => fault !== undefined);
    if (!fitting) continue;
    const { kind, targets, lasts } = fitting;
    deck.splice(deck.indexOf(kind), 1);
    faults.push(fitting);
    const isAboutWorker = SHARD_KINDS[kind].target === 'worker';
    for (const target of targets) {
      const times = isAboutWorker ? idleAt : freeAt;
      times[target] = at + lasts + (isAboutWorker ? dice.between(...HEALTHY) : dice.between(least, most));
    }
  }
  return {
    phases: [
      { name: 'faults', from: 0, to: end },
      { name: 'calm', from: end, to: milliseconds },
    ],
    faults,
  };
}

function forgets(name: ShardFault): boolean {
  const kind: ShardKind = SHARD_KINDS[name];
  return kind.forgets === true;
}
