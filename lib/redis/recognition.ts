import { counted } from '../core/display.js';
import type { Clock } from '../core/clock.js';
import type { LockObserver } from '../core/observer.js';
import type { ServerRecord } from './guard/server-record.js';
import type { RestartGuard } from './guard/restart-guard.js';
import { faultOf, type ServerIdentity } from './replies.js';
import { boundScript, type Script } from './scripts/bound-script.js';

/** What can be declared for one master in addition to its connection settings. */
export interface DurableOption {
  /**
   * Declares that this master keeps each acknowledged write across restarts.
   * @default the module's `durable`
   */
  readonly durable?: boolean;
}

interface Durability {
  readonly hasAppendOnlyFile: boolean;
  readonly fsync: string | undefined;
  readonly isRewriting?: boolean;
  readonly replicas: number;
}

export function flawsIn({ hasAppendOnlyFile, fsync, isRewriting = false, replicas }: Durability): readonly string[] {
  if (!hasAppendOnlyFile) return ['it has no append-only file'];
  return [
    ...(fsync === undefined || fsync === 'always' ? [] : [`its appendfsync is ${fsync}, not always`]),
    ...(isRewriting ? ['its append-only file is being written anew, and is incomplete if it is the first one'] : []),
    ...(replicas > 0
      ? [`it has ${counted(replicas, 'replica')}, whose data may lack its last writes when started in its place`]
      : []),
  ];
}

interface RecognitionContext {
  readonly name: string;
  readonly clock: Clock;
  readonly observer: LockObserver;
  // `undefined` where the restart guard is off.
  readonly guard: RestartGuard | undefined;
  readonly data: ServerRecord | undefined;
  readonly report: () => Promise<ServerIdentity>;
  readonly isDurable: boolean;
  readonly fsync: () => Promise<string | undefined>;
  // No answer is awaited: the server loads the script before it reads what is sent afterwards.
  readonly load: (script: Script) => void;
  // The server must never vote: closes the connection.
  readonly refuse: (fault: string) => void;
  readonly isConnected: () => boolean;
  readonly votes: () => boolean;
}

// Finds out which server a connection leads to: over each new connection, and whenever an answer leaves a doubt. A
// server that cannot be a master is refused.
export class Recognition {
  // Bound to the run of the server: another run does not know it.
  script = boundScript('');
  lastReport: ServerIdentity | undefined;
  fault: string | undefined;
  risk: string | undefined;
  current: Promise<boolean> | undefined;
  // Of the recognition under way.
  private hasReported = false;
  private doubts = 0;
  private readonly warnings = new Set<string>();

  constructor(private readonly context: RecognitionContext) {}

  // An answer leaves a doubt.
  check(): Promise<boolean> {
    this.doubts++;
    this.context.data?.check();
    return this.run();
  }

  // Resolves with whether the server may be used. Calls before the report arrives share one request.
  run(): Promise<boolean> {
    if (this.current && !this.hasReported) return this.current;
    // A report that has arrived already does not settle a doubt that came after it.
    const before = this.current;
    const next = before ? before.catch(() => false).then(() => this.recognize()) : this.recognize();
    const current: Promise<boolean> = next.finally(() => {
      if (this.current === current) this.current = undefined;
    });
    this.current = current;
    return current;
  }

  private async recognize(): Promise<boolean> {
    const { name, clock, observer, guard, data, isConnected, votes } = this.context;
    const asked = clock.read();
    this.hasReported = false;
    const report = await this.context.report();
    this.hasReported = true;
    const { doubts, fault: before } = this;
    this.lastReport = report;
    this.fault = faultOf(report);
    if (this.fault !== undefined) {
      data?.doubt(this.fault);
      data?.endCheck();
      if (this.fault !== before) observer.masterRefused?.(name, this.fault);
      this.context.refuse(this.fault);
      return false;
    }
    this.script = boundScript(report.run);
    this.context.load(this.script);
    if (data) {
      guard?.meet(data, report, asked);
      // The same data may only have got another name: then what waits for this answer loses no vote.
      if (data.state === 'checking' && isConnected()) await guard?.decided();
      if (doubts === this.doubts) data.endCheck();
    }
    if (before !== undefined && votes()) observer.masterVotesAgain?.(name);
    this.warnOf(report);
    if (data && this.context.isDurable) void this.compareDeclaration(report);
    return true;
  }

  private warnOf({ eviction, run }: ServerIdentity): void {
    if (eviction !== undefined)
      this.warn(`maxmemory-policy ${eviction} drops locks when memory is full: use noeviction`);
    if (run === '' && this.context.guard) {
      this.warn('it does not permit INFO in scripts: a restart or a failover that keeps stale data goes unnoticed');
    }
  }

  private async compareDeclaration(report: ServerIdentity): Promise<void> {
    const [flaw] = flawsIn({ ...report, fsync: await this.context.fsync() });
    this.risk = flaw === undefined ? undefined : `it is declared durable, but ${flaw}`;
    if (this.risk !== undefined) this.warn(`${this.risk}: two holders are possible after a restart`);
  }

  private warn(risk: string): void {
    if (this.warnings.has(risk)) return;
    this.warnings.add(risk);
    this.context.observer.masterAtRisk?.(this.context.name, risk);
  }
}
