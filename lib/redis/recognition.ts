import type { LockObserver } from '../operate/observer.js';
import { faultOf, type ServerIdentity } from './replies.js';

interface RecognitionContext {
  readonly name: string;
  readonly observer: LockObserver;
  // The first call over each connection, which may also be repeated later.
  // Protocol 8.4
  readonly report: () => Promise<ServerIdentity>;
  readonly isGuarded: boolean;
  // The server must never vote: closes the connection.
  readonly refuse: (fault: string) => void;
}

// Finds out which server a connection leads to. A server that cannot be a master is refused.
export class Recognition {
  lastReport: ServerIdentity | undefined;
  fault: string | undefined;
  private readonly warnings = new Set<string>();

  constructor(private readonly context: RecognitionContext) {}

  // Resolves with whether the server may be used.
  async run(): Promise<boolean> {
    const { name, observer, isGuarded } = this.context;
    const report = await this.context.report();
    const { fault: before } = this;
    this.lastReport = report;
    this.fault = faultOf(report, isGuarded);
    if (this.fault !== undefined) {
      if (this.fault !== before) observer.masterRefused?.(name, this.fault);
      this.context.refuse(this.fault);
      return false;
    }
    if (before !== undefined && report.gate.wait === 0) observer.masterVotesAgain?.(name);
    this.warnOf(report);
    return true;
  }

  private warnOf({ eviction }: ServerIdentity): void {
    if (eviction === undefined) return;
    const risk = `maxmemory-policy ${eviction} drops locks when memory is full: use noeviction`;
    if (this.warnings.has(risk)) return;
    this.warnings.add(risk);
    this.context.observer.masterAtRisk?.(this.context.name, risk);
  }
}
