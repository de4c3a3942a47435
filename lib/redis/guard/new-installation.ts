import { beginningOf } from '../../core/state/generation.js';
import type { GuardGroup, Reports } from './guard-group.js';

/** What a reading says about an installation. */
type Finding =
  /** All masters are new: another reading has to show that they were so at the same time. */
  | 'read again'
  /** All masters were new at the same time. */
  | 'new'
  | undefined;

/**
 * Recognizes masters that are all empty at the same time. What one of them does not have was never written, which is what
 * the state of a lock has to know about an empty master. Masters that all lose everything at once look the same; no state
 * survives that. One that was restarted with old data shows that the installation is not new.
 */
export class NewInstallation {
  /** The markers in the last reading, if all of them were new. */
  private seen: string | undefined;

  constructor(private readonly group: GuardGroup) {}

  observe(reports: Reports): Finding {
    const all = [...reports];
    const isNew =
      all.length === this.group.identities.length &&
      all.every(
        ([identity, report]) =>
          report.marker?.nonce === identity.nonce &&
          report.marker.wasEmpty &&
          identity.isYoungAt(report) &&
          beginningOf(report.marker.generation) === report.marker.writtenAt,
      ) &&
      all.some(([, { marker }]) => !marker?.isFirst);
    const markers = all.map(([{ server }, { marker }]) => `${server.name} ${marker?.nonce ?? ''}`).sort();
    const before = this.seen;
    this.seen = isNew ? markers.join('\n') : undefined;
    if (!isNew) return undefined;
    // The answers of one reading come at different times. What has not changed since then was there at its end.
    return before === this.seen ? 'new' : 'read again'; // @mutant new-after-one-reading
  }
}
