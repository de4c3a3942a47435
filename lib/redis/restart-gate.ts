import type { Clock } from '../redlock/clock.js';
import { duration } from '../settings/display.js';
import type { Quarantine } from '../redlock/server.js';
import type { GateReport } from './replies.js';

// What the restart gate of a server answered last. The gate itself is in the scripts (`scripts/gate.lua`): whether a
// request is granted is decided there, and nothing here withholds one.
// Protocol 8.6
export class RestartGate {
  // Of the last call that passed over this connection; '' before the first one.
  private from = '';
  private run = '';
  private cause = '';
  // By the monotonic clock of this process.
  private until = -Infinity;

  constructor(private readonly clock: Clock) {}

  // For display: the server decides by its own clock.
  get quarantine(): Quarantine | undefined {
    const remaining = this.until - this.clock.read().monotonic;
    return remaining > 0 ? { reason: `waits ${duration(remaining)} ${this.cause}`, remaining } : undefined;
  }

  // Identifies the data in which the server votes; `undefined` before a call has passed over this connection.
  // Protocol 10.4
  get marker(): string | undefined {
    return this.from === '' ? undefined : `${this.run}-${this.from}`;
  }

  get isShut(): boolean {
    return this.until > this.clock.read().monotonic;
  }

  noteReport(run: string, { from, wait, cause }: GateReport): void {
    const isOther = this.run !== '' && run !== this.run;
    // The marker of a run that this process knew is gone.
    const isLost = cause === 'new' && this.run === run;
    if (isOther || cause === 'restart') this.cause = 'after a restart';
    else if (isLost) this.cause = 'because its data was lost';
    else if (cause === 'new') this.cause = 'because it is new';
    else if (this.run === '') this.cause = 'because it is new, or was restarted';
    this.run = run;
    if (wait > 0) this.shut(wait);
    else this.pass(from);
  }

  shut(wait: number): void {
    this.from = '';
    if (!this.isShut) this.cause ||= 'because its data was lost';
    this.until = this.clock.read().monotonic + wait;
  }

  pass(from: string): void {
    this.from = from;
    this.until = -Infinity;
    this.cause = '';
  }

  // What was passed over the connection says nothing about the next one.
  forget(): void {
    this.from = '';
  }
}
