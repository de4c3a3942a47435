import type { Attributes, BatchObservableCallback, Meter } from '@opentelemetry/api';
import { type MasterState, type RedlockStatus, votingIn } from '../core/health/status.js';
import type { Instruments } from './instruments.js';

const STATES: readonly MasterState[] = ['voting', 'quarantined', 'silent', 'down', 'refused'];

/**
 * Reports the status of the masters at each collection of metrics, also while no lock is used.
 *
 * @param attributes attributes of every measurement
 * @returns ends the reports
 */
export function observeStatus(
  meter: Meter,
  { mastersVoting, masterState, quorumAvailable }: Instruments,
  { status, attributes }: { readonly status: () => RedlockStatus; readonly attributes: Attributes },
): () => void {
  const gauges = [mastersVoting, masterState, quorumAvailable];
  const observe: BatchObservableCallback = (result) => {
    const present = status();
    result.observe(mastersVoting, votingIn(present), attributes);
    result.observe(quorumAvailable, present.canVote ? 1 : 0, attributes);
    for (const { master, state } of present.masters) {
      for (const each of STATES) {
        const labels = { ...attributes, 'redlock.master': master, 'redlock.state': each };
        result.observe(masterState, each === state ? 1 : 0, labels);
      }
    }
  };
  meter.addBatchObservableCallback(observe, gauges);
  return () => meter.removeBatchObservableCallback(observe, gauges);
}
