import type { MasterReport } from '../errors.js';
import { TIMED_OUT } from '../master.interface.js';
import type { QuorumCall } from './quorum-call.js';

/** What each master replied last to the extensions of one lock. */
export class ExtensionReplies {
  private earlier: readonly MasterReport[] = [];
  private current: Pick<QuorumCall, 'report' | 'isOpen'> | undefined;

  /** A further extension was sent. */
  begin(quorumCall: Pick<QuorumCall, 'report' | 'isOpen'>): void {
    this.earlier = this.last;
    this.current = quorumCall;
  }

  /** The replies so far. A master that was not waited for is reported with its reply to an earlier extension. */
  get last(): readonly MasterReport[] {
    if (!this.current) return this.earlier;
    const { report, isOpen } = this.current;
    return report.map(({ master, answer }, index) => ({
      master,
      answer: answer ?? (isOpen ? TIMED_OUT : this.earlier[index]?.answer),
    }));
  }
}
