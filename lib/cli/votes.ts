import { reasonFor, type Relation, relationOf } from '../redis/data-record.js';
import { resolveSettings } from '../core/settings/settings.js';
import type { ServerIdentity } from '../redis/replies.js';
import type { Examination } from './examination.js';
import { isVital } from './permissions.js';

type ClockOffset = NonNullable<Examination['clock']>;

interface MasterStanding {
  readonly data: Relation;
  // Milliseconds until its votes count, 0 if they count now; `undefined` if a process has to connect to it first.
  readonly wait: number | undefined;
  readonly reason: string;
}

// Judges as a process would that connects to the master now. `isDurable`: the applications declare that it is.
export function standingOf(report: ServerIdentity, isDurable = false): MasterStanding {
  const { marker } = report;
  const data = relationOf(report, { isDurable, nonce: '' });
  if (!marker) return { data, wait: undefined, reason: 'no process has met its data yet' };
  if (data === 'unknown') {
    return { data, wait: undefined, reason: `${reasonFor(report, marker)}, and no process has met it since` };
  }
  if (data === 'renamed') {
    const change = marker.run === report.run ? 'its history has another name' : 'it was restarted with all of its data';
    return { data, wait: undefined, reason: `${change}, and no process has met it since` };
  }
  const left = Math.max(0, Math.min(marker.from - report.time, marker.wait));
  return { data, wait: left, reason: marker.reason };
}

export function standingIn({ report, isDurable }: Examination): MasterStanding | undefined {
  return report && standingOf(report, isDurable);
}

// Milliseconds until its votes count, 0 if they count now; `undefined` if a process has to connect to it first.
export function waitOf(one: Examination): number | undefined {
  if (one.shard) return one.shard.standing?.wait;
  if (one.cluster) {
    const waits = one.cluster.shards.map((shard) => waitOf(shard) ?? Infinity);
    const wait = Math.min(...waits, Infinity);
    return wait === Infinity ? undefined : wait;
  }
  return standingIn(one)?.wait;
}

// All masters, each of which is examined beside the others.
export class ExaminedMasters {
  constructor(readonly all: readonly Examination[]) {}

  // Each cluster counts as its primaries.
  get servers(): readonly Examination[] {
    return this.all.flatMap((one) => one.cluster?.shards ?? [one]);
  }

  // A process has connected to one of them with the restart guard.
  get areMet(): boolean {
    return this.servers.some(({ report, shard }) => report?.marker !== undefined || shard?.standing?.isMet === true);
  }

  get areGuardedByDefault(): boolean {
    return resolveSettings({}, this.all.length).restartGuard;
  }

  // Otherwise, a marker shows that an application has switched the guard on.
  get areGuarded(): boolean {
    return this.areGuardedByDefault || this.areMet;
  }

  // Whether its votes would count if the restart guard let them. A cluster votes for what any of its primaries serves.
  canVote(one: Examination): boolean {
    const { unreachable, fault, refusal, missing, cluster } = one;
    if (cluster && !cluster.shards.some((shard) => new ExaminedMasters([shard]).canVote(shard))) return false;
    if (unreachable ?? fault ?? refusal ?? this.twinOf(one)) return false;
    return !missing.some(isVital);
  }

  // The first master that is the same server or cluster.
  twinOf(one: Examination): Examination | undefined {
    const first = this.all.find((other) => other === one || isSame(one, other));
    return first === one ? undefined : first;
  }

  // The offset that most clocks agree on, if most of them agree.
  get clock(): ClockOffset | undefined {
    const sorted = this.servers.flatMap(({ clock }) => clock ?? []).sort((a, b) => middleOf(a) - middleOf(b));
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
  if (one.cluster && other.cluster) {
    const ids = new Set(one.cluster.ids);
    return other.cluster.ids.some((id) => ids.has(id));
  }
  const identity = identityOf(one);
  return identity !== undefined && identityOf(other) === identity;
}

// Without the permission for INFO, equal nonces at two addresses show that they are one server.
function identityOf({ report }: Examination): string | undefined {
  return report?.run || report?.marker?.run || report?.marker?.nonce || undefined;
}
