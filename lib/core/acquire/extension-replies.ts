import type { MasterReport } from '../errors.js';
import { mayHaveReached, type MasterReply, TIMED_OUT } from '../master.interface.js';
import type { QuorumCall } from './quorum-call.js';

/** What each master replied last to the extensions of one lock. */
export class ExtensionReplies {
  private earlier: readonly MasterReport[] = [];
  private current: Pick<QuorumCall, 'report' | 'isOpen'> | undefined;

  /** Masters on which an extension may have set keys again. */
  private readonly renewed = new Set<string>();

  /** A further extension was sent. */
  begin(quorumCall: Pick<QuorumCall, 'report' | 'isOpen'>): void {
    this.earlier = this.last;
    if (this.current) for (const name of renewedIn(this.current.report)) this.renewed.add(name);
    this.current = quorumCall;
  }

  /** Names of the masters on which an extension may have set keys again. */
  get mayBeRenewed(): ReadonlySet<string> {
    return new Set([...this.renewed, ...renewedIn(this.current?.report ?? [])]);
  }

  /**
   * The replies so far. A master that was not waited for is reported with its reply to an earlier extension, and so is one
   * that refused it and has not answered the one under way: the validity may end soon after that was sent.
   */
  get last(): readonly MasterReport[] {
    if (!this.current) return this.earlier;
    const { report, isOpen } = this.current;
    return report.map(({ master, answer }, index) => {
      const earlier = this.earlier[index]?.answer;
      return { master, answer: answer ?? (isOpen && earlier?.kind !== 'refused' ? TIMED_OUT : earlier) };
    });
  }
}

/** The masters that have not answered an extension, or have set a key again. */
export function renewedIn(report: readonly MasterReport[]): readonly string[] {
  return report.flatMap(({ master, answer }) => (hasKept(answer) ? [] : [master]));
}

/** Whether the answer to an extension shows that it has set no key again. */
function hasKept(answer: MasterReply | undefined): boolean {
  if (answer?.kind === 'granted') return answer.healed !== true;
  return answer?.kind === 'held' || !mayHaveReached(answer);
}
