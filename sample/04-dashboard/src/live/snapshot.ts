import type { LockInspection, MasterStatus } from 'nestjs-redlock';
import type { ProcessState } from '../masters/local-masters.js';
import type { Holder } from './lock-board.js';

/** The state of everything at one moment. */
export interface Snapshot {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly quorum: number;
  readonly canVote: boolean;
  readonly masters: readonly MasterView[];
  readonly locks: readonly LockView[];
  readonly instances: readonly InstanceView[];
}

/** The library's view of a master, and the state of its process. */
export interface MasterView extends MasterStatus {
  /** From 1. */
  readonly number: number;
  readonly pid: number | undefined;
  readonly process: ProcessState;
}

export interface LockView {
  readonly resource: string;
  /** The answer of each master. */
  readonly keys: readonly LockInspection['state'][];
  /** The report of the holder. */
  readonly holder: Holder | undefined;
  readonly waiting: readonly string[];
}

export interface InstanceView {
  readonly name: string;
  readonly pid: number | undefined;
  readonly process: ProcessState;
}
