import { resolveFlag } from '../core/settings/settings.js';
import type { Clock } from '../core/clock.js';
import type { LockObserver } from '../core/observer.js';
import type { DataRecord } from './guard/data-record.js';
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

/** How a server keeps its data, as far as it says so. */
interface Durability {
  readonly hasAppendOnlyFile: boolean;
  /** `appendfsync`; `undefined` if the server does not report it. */
  readonly fsync: string | undefined;
  /** Whether its append-only file is being written anew. */
  readonly isRewriting?: boolean;
  readonly replicas: number;
}

/** What visibly contradicts the declaration that a server is durable, in words. */
export function flawsIn({ hasAppendOnlyFile, fsync, isRewriting = false, replicas }: Durability): readonly string[] {
  if (!hasAppendOnlyFile) return ['it has no append-only file'];
  return [
    ...(fsync === undefined || fsync === 'always' ? [] : [`its appendfsync is ${fsync}, not always`]),
    ...(isRewriting ? ['its append-only file is being written anew, and is incomplete if it is the first one'] : []),
    ...(replicas > 0
      ? [`it has ${replicas} replicas, whose data may lack its last writes when started in its place`]
      : []),
  ];
}

/** @throws {RedlockConfigError} if it is not a flag */
export function resolveDurable(option: string, durable: unknown): boolean | undefined {
  return durable === undefined ? undefined : resolveFlag(`${option}.durable`, durable);
}

/** For a server whose run is not known yet. */
const UNBOUND = boundScript('');

/** The dependencies of the recognition of one server. */
interface RecognitionContext {
  /** The name of the master in logs and errors. */
  readonly name: string;
  readonly clock: Clock;
  readonly observer: LockObserver;
  /** `undefined` where the restart guard is off. */
  readonly guard: RestartGuard | undefined;
  readonly data: DataRecord | undefined;
  /** Asks the server for its identity. */
  readonly report: () => Promise<ServerIdentity>;
  /** Whether its operator declares that it keeps its data. */
  readonly isDurable: boolean;
  /** Asks for `appendfsync`; `undefined` if the server does not report it. */
  readonly fsync: () => Promise<string | undefined>;
  /** Loads the script. No answer is awaited: the server loads it before it reads what is sent afterwards. */
  readonly load: (script: Script) => void;
  /** Closes the connection, because the server must never vote. */
  readonly refuse: (fault: string) => void;
  readonly isConnected: () => boolean;
  /** Whether the grants of the server count. */
  readonly votes: () => boolean;
}

/**
 * Finds out which server a connection leads to: over each new connection, and whenever an answer leaves a doubt. A
 * server that cannot be a master is refused.
 */
export class Recognition {
  /** The script of the operations, bound to the run of the server: another run does not know it. */
  script: Script = UNBOUND;
  /** The identity that the server reported last. */
  lastReport: ServerIdentity | undefined;
  /** Why the server must never vote; `undefined` if it may. */
  fault: string | undefined;
  /** What visibly contradicts the declaration that it is durable. */
  risk: string | undefined;
  /** The recognition under way; `undefined` if there is none. */
  current: Promise<boolean> | undefined;
  /** Whether the report has arrived that the recognition under way has requested. */
  private hasReported = false;
  /** Number of times that the identity has become doubtful. */
  private doubts = 0;
  private readonly warnings = new Set<string>();

  constructor(private readonly context: RecognitionContext) {}

  /** An answer has left a doubt which server this is. {@link run} settles it. */
  noteDoubt(): void {
    this.doubts++;
  }

  /** Resolves with whether the server may be used. Calls before the report arrives share one request. */
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
      data?.refuse(this.fault);
      if (this.fault !== before) observer.masterRefused?.(name, this.fault);
      this.context.refuse(this.fault);
      return false;
    }
    this.script = boundScript(report.run);
    this.context.load(this.script);
    if (data) {
      guard?.meet(data, report, asked);
      // The same data may only have got another name: then what waits for this answer loses no vote.
      if (data.isChecked && isConnected()) await guard?.decided();
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

  /** Reports each risk once. */
  private warn(risk: string): void {
    if (this.warnings.has(risk)) return;
    this.warnings.add(risk);
    this.context.observer.masterAtRisk?.(this.context.name, risk);
  }
}
