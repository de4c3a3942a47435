import { type MasterState, type MasterStatus, type RedlockStatus, summarize } from '../../../lib/operate/status.js';

export const voting = (master: string): MasterStatus => ({ master, state: 'voting' });

export const down = (master: string): MasterStatus => ({ master, state: 'down', reason: 'gone' });

export const quarantined = (master: string, remaining: number): MasterStatus => ({
  ...{ master, state: 'quarantined', reason: 'waits after a restart', remaining },
});

export function summaryOf(...masters: readonly MasterStatus[]): RedlockStatus {
  return summarize('web:1', masters);
}

/** The status of masters in these states. */
export function statusWith(...states: readonly MasterState[]): RedlockStatus {
  return summaryOf(...states.map((state, index) => ({ master: `m${index + 1}`, state })));
}
