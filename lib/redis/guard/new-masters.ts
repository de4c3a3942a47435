import type { Instant } from '../../core/clock.js';
import { beginningOf } from '../../core/state/state-entry.js';
import { ROUNDED, SLEWED } from './server-clock.js';
import type { ServerRecord } from './server-record.js';
import type { GuardGroup, Reports } from './guard-group.js';

// Milliseconds in which processes object to new masters: longer than a contact interval, a reconnect and a command.
export const EARLY_AFTER = 2_500; // @mutant early-vote-too-early
// With fewer masters, all of them could be new because each of them lost its data.
export const EARLY_FROM = 3;

interface Sighting {
  readonly markers: string;
  readonly since: number;
  // The times of the servers in these reports, in milliseconds.
  readonly times: ReadonlyMap<ServerRecord, number>;
}

// New masters vote early, and are the first ones, if no process objects for `EARLY_AFTER`. That time has to pass by the
// clocks of this process and of all servers: a clock may jump, and what follows counts for all processes.
// Protocol 8.6 and 10.2
export class NewMasters {
  private quiet: Sighting | undefined;
  private empty: Sighting | undefined;

  constructor(private readonly group: GuardGroup) {}

  // This process holds a lock: what was seen before does not count.
  interrupt(): void {
    this.quiet = undefined;
  }

  // In milliseconds, if all are new; `undefined` where none votes early, and only `maxTtl` bounds the wait.
  get usualWait(): number | undefined {
    const { records, clusters } = this.group;
    // A holder may still have contact with the primaries before a failover only, and would veto too late.
    const isPossible = clusters.length === 0 && records.every(({ server }) => server.handover === 0);
    return isPossible && records.length >= EARLY_FROM ? EARLY_AFTER : undefined;
  }

  // In milliseconds; `undefined` if not all are new and unvetoed: a holder would have vetoed one of them. A report
  // shows no veto that came after it was requested (`asked`), however late it arrives.
  untilVote(reports: Reports, asked: Instant): number | undefined {
    const { group } = this;
    const all = [...reports];
    const isQuiet =
      this.usualWait !== undefined &&
      !group.isEngaged &&
      all.every(([, { marker }]) => marker?.isVetoed === false) &&
      all.some(([record, report]) => record.isYoungAt(report));
    this.quiet = isQuiet ? this.sight(this.quiet, reports) : undefined;
    return this.leftOf(this.quiet, reports, asked);
  }

  // In milliseconds; `undefined` if they are not the first ones, or are marked as such. What the first ones do not have
  // was never written. A process that knew other data at one of the addresses objects.
  untilFirst(reports: Reports, asked: Instant): number | undefined {
    const all = [...reports];
    const isEmpty =
      !this.group.records.some(({ hasLostData }) => hasLostData) &&
      (this.empty !== undefined || this.group.clusters.every((cluster) => cluster.isNew())) &&
      all.every(([, { marker }]) => marker?.wasEmpty && beginningOf(marker.generation) === marker.writtenAt) &&
      all.some(([, { marker }]) => !marker?.isFirst);
    this.empty = isEmpty ? this.sight(this.empty, reports) : undefined;
    return this.leftOf(this.empty, reports, asked);
  }

  // All of them have to be new when it begins. One whose own quarantine ends meanwhile still shows an objection.
  private sight(before: Sighting | undefined, reports: Reports): Sighting | undefined {
    const all = [...reports];
    const seen = all.map(([{ server }, { marker }]) => `${server.name} ${marker?.nonce ?? ''}`).sort();
    const markers = seen.join('\n');
    const isKnown = all.every(([{ nonce }, { marker }]) => marker?.nonce === nonce);
    if (!isKnown || all.length < this.group.records.length) return undefined;
    if (before?.markers === markers) return before;
    // A clock that was set back makes an old marker look young.
    const isNew = all.every(
      ([each, report]) => each.isYoungAt(report) && (report.marker?.writtenAt ?? 0) <= report.time,
    );
    if (!isNew) return undefined;
    return { markers, since: this.group.now, times: new Map(all.map(([record, { time }]) => [record, time])) };
  }

  private leftOf(sighting: Sighting | undefined, reports: Reports, asked: Instant): number | undefined {
    if (!sighting) return undefined;
    const byServers = [...reports].map(([record, { time }]) => time - (sighting.times.get(record) ?? time) + ROUNDED);
    const passed = Math.min(asked.monotonic - sighting.since, Math.min(...byServers) / (1 - SLEWED));
    return Math.min(EARLY_AFTER, Math.max(0, EARLY_AFTER - passed)); // @mutant new-without-a-wait
  }
}
