import type { MasterReport } from './errors.js';
import type { QuorumCall } from './quorum.js';
import { TIMED_OUT } from './server.js';

// What each master replied last to the extensions of one lock.
export class ExtensionReplies {
  private earlier: readonly MasterReport[] = [];
  private current: Pick<QuorumCall, 'report' | 'isOpen'> | undefined;

  begin(quorumCall: Pick<QuorumCall, 'report' | 'isOpen'>): void {
    this.earlier = this.last;
    this.current = quorumCall;
  }

  // A master that was not waited for has its reply to an earlier extension here, and so has one that refused it and has
  // not answered the one under way: the validity may end soon after that was sent.
  get last(): readonly MasterReport[] {
    if (!this.current) return this.earlier;
    const { report, isOpen } = this.current;
    return report.map(({ master, answer }, index) => {
      const earlier = this.earlier[index]?.answer;
      return { master, answer: answer ?? (isOpen && earlier?.kind !== 'refused' ? TIMED_OUT : earlier) };
    });
  }
}
