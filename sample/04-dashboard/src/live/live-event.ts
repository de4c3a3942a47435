import type { LockLostCause, MasterStatus } from 'nestjs-redlock';

/** An event to show. */
export type Happening =
  /** @property previous the previous holder, if it was another instance @property waited in milliseconds */
  | { kind: 'granted'; resource: string; instance: string; previous: string | undefined; waited: number }
  | { kind: 'released'; resource: string; instance: string; held: number }
  | { kind: 'lost'; resource: string; instance: string; held: number; cause: LockLostCause }
  /** @property number of the master, from 1 @property remaining milliseconds of its quarantine */
  | ({ kind: 'master'; number: number } & Pick<MasterStatus, 'state' | 'reason' | 'remaining'>)
  | { kind: 'quorum'; canVote: boolean; voting: number }
  /** A user has pressed a button. */
  | { kind: 'command'; target: string; command: string };

/** The event with its time, in milliseconds since the Unix epoch. */
export type LiveEvent = Happening & { readonly id: number; readonly at: number };
