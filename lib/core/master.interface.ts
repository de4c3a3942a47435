/**
 * The port between the algorithm and a server: everything the algorithm asks of one master.
 *
 * A master answers every request exactly once, in whatever way, and never throws: failure is an answer.
 * Requests to one master take effect in the order in which they were asked.
 */
export interface Master {
  /** How messages call this master, for example `10.0.0.1:6379`. Never contains credentials. */
  readonly name: string;
  /** Puts one request to this master. `reply` is called exactly once, possibly before `ask` returns. */
  ask(request: Request, reply: Reply): void;
  /**
   * Opens the connection and keeps reopening it until `close`. Resolves when the first try has succeeded or failed;
   * `problem` tells which.
   */
  connect(): Promise<void>;
  /** Why this master cannot be asked at the moment; `undefined` when it can. */
  problem(): Unreachable | undefined;
  /** What is known of the server. */
  identity(): MasterIdentity;
  /** Whether `identity()` has a quarantine, without the cost of describing it. */
  readonly isQuarantined: boolean;
  /** Drops the connection and opens a new one: called when the master has been silent for long. */
  reconnect(): void;
  /** Calls back whenever this master can be asked again after it could not. */
  onReady(listener: () => void): void;
  /**
   * From now on, tells when this process is next to take a key: its name is given to `ask` as the `waiter` of a
   * request. Wake-ups may be lost, for example while there is no connection for them.
   *
   * @param listener `undefined` ends it
   */
  listen(waiter: string, listener: WakeUp | undefined): void;
  /** Ends the connection. Requests that wait for an answer are answered "unreachable". */
  close(): Promise<void>;
}

/** What is known of a server. */
export interface MasterIdentity {
  /** Tells one run of a server from all others, where it is known. */
  readonly run?: string | undefined;
  /** Tells the data of the server from all other data: what a master has drawn or granted belongs to one of these. */
  readonly data?: string | undefined;
  /** Version of the server, where it is known. */
  readonly version?: string | undefined;
  /** Why the server must not vote at all, if it must not. */
  readonly fault?: string | undefined;
  /** Why its votes do not count for a while, if they do not. */
  readonly quarantine?: Quarantine | undefined;
}

/** The votes of a master do not count for a while. */
export interface Quarantine {
  /** Why, in words that hold no secret. */
  readonly reason: string;
  /** Milliseconds until they count again. */
  readonly remaining: number;
}

/** Called with the key that is free, or with `undefined` when wake-ups may have been missed. */
export type WakeUp = (key: string | undefined) => void;

/** Takes the one answer to a request. */
export type Reply = (answer: Answer) => void;

/** For how long a key that was released is kept for the process that is woken, in milliseconds. */
export const RESERVED_FOR = 50;

/** What a master can be asked, told apart by its `op`. */
export type Request =
  AcquireRequest | ExtendRequest | DrawRequest | ReleaseRequest | LeaveRequest | InspectRequest | ProbeRequest;

interface KeyRequest {
  /** Full key names, prefix included, without duplicates, sorted. */
  readonly keys: readonly string[];
}

interface OwnerRequest extends KeyRequest {
  /** Tells one acquisition from all others. A secret. */
  readonly token: string;
}

interface WithdrawableRequest extends OwnerRequest {
  /**
   * Set when releases are under way for this token: nothing more may be sent on its behalf, since it would arrive
   * after its own release.
   */
  withdrawn: boolean;
}

/** Take all keys, or none. */
export interface AcquireRequest extends WithdrawableRequest {
  /** Tells requests apart. */
  readonly op: 'acquire';
  /** Life of the keys in milliseconds. */
  readonly ttl: number;
  /** A refusal must tell how long the keys stay held, even where that costs the server more. */
  readonly explain: boolean;
  /** Where to wait if the keys are held; absent if the asker does not wait at this master. */
  readonly queue?: QueueTicket | undefined;
}

/** A place in the queues of some keys at one master, for a process that wants to take them. */
export interface QueueTicket {
  /** Names of the queues, one for each key and in the same order. */
  readonly queues: readonly string[];
  /** The process that waits, under the name by which it listens. */
  readonly waiter: string;
  /** Milliseconds that it has waited already. Who has waited longest is woken first. */
  readonly waited: number;
}

/** Refresh all keys that hold the token, set those that are absent again; refuse if one holds another token. */
export interface ExtendRequest extends WithdrawableRequest {
  /** Tells requests apart. */
  readonly op: 'extend';
  /** New life of the keys in milliseconds. */
  readonly ttl: number;
}

/**
 * Raise the fencing counters of the keys and answer the largest, if every key still holds the token; refuse otherwise.
 * It changes no key.
 */
export interface DrawRequest extends OwnerRequest {
  /** Tells requests apart. */
  readonly op: 'draw';
  /** The counter of each key, in the same order. */
  readonly counters: readonly number[];
  /** The counters become at least this. */
  readonly atLeast: number;
  /** Whether the counters also become larger than they are. False where this master has drawn for this lock before. */
  readonly isFirst: boolean;
}

/**
 * Delete the keys that hold the token. If processes wait for one of them at this master, the first of them that
 * listens is woken, and the key is kept for it alone during a moment.
 */
export interface ReleaseRequest extends OwnerRequest {
  /** Tells requests apart. */
  readonly op: 'release';
  /** Names of the queues, one for each key and in the same order. */
  readonly queues: readonly string[];
  /** Instead of deleting, leave the keys this many milliseconds to live. `0` deletes. */
  readonly keepFor: number;
  /** Longest time in milliseconds for which the keys can still live: afterwards the release has nothing to do. */
  readonly ttl: number;
}

/** Give up the places of a process in the queues of some keys, and wake the next if this one was next. */
export interface LeaveRequest extends KeyRequest {
  /** Tells requests apart. */
  readonly op: 'leave';
  /** Names of the queues, one for each key and in the same order. */
  readonly queues: readonly string[];
  /** The process, under the name by which it listens. */
  readonly waiter: string;
}

/** Tell whether one of the keys is held. */
export interface InspectRequest extends KeyRequest {
  /** Tells requests apart. */
  readonly op: 'inspect';
}

/** Tell whether keys can be written: set them for a moment and delete them, answered like an acquisition. */
export interface ProbeRequest extends KeyRequest {
  /** Tells requests apart. */
  readonly op: 'probe';
}

/** Yes: acquired, extended, released, or, for an inspection, free. */
export interface Granted {
  /** Tells answers apart. */
  readonly kind: 'granted';
  /** Whether other processes wait for one of the keys at this master, as far as it told. */
  readonly crowded?: boolean;
  /** The fencing counter, for a {@link DrawRequest}. */
  readonly fence?: number;
  /** Whether an extension had to set a key again that was absent. */
  readonly healed?: boolean;
}

/** Another token holds one of the keys. */
export interface Held {
  /** Tells answers apart. */
  readonly kind: 'held';
  /** Milliseconds until the holder's key expires, where the master told. */
  readonly remaining: number | undefined;
}

/** No connection. */
export interface Unreachable {
  /** Tells answers apart. */
  readonly kind: 'unreachable';
  /** Why, in words that hold no secret. */
  readonly reason: string;
  /** Whether the request may have reached the server before the connection broke. */
  readonly sent: boolean;
}

/** No answer in time. */
export interface TimedOut {
  /** Tells answers apart. */
  readonly kind: 'timeout';
  /** `false` when the master was known to be silent and was not even asked. */
  readonly sent: boolean;
}

/** The server is there and says no for a reason of its own, such as `NOAUTH`, `READONLY` or `OOM`. */
export interface Refused {
  /** Tells answers apart. */
  readonly kind: 'refused';
  /** First word of the server's error. */
  readonly code: string;
  /** The rest, in words that hold no secret. */
  readonly reason: string;
}

/** It granted, but it may have forgotten what it granted before: its vote does not count. */
export interface Quarantined extends Quarantine {
  /** Tells answers apart. */
  readonly kind: 'quarantined';
  /** `false` when the request was not even sent. */
  readonly sent: boolean;
}

/** What a master says to a request, told apart by its `kind`. */
export type Answer = Granted | Held | Unreachable | TimedOut | Refused | Quarantined;

export const GRANTED: Granted = Object.freeze({ kind: 'granted' });
export const GRANTED_AMONG_OTHERS: Granted = Object.freeze({ kind: 'granted', crowded: true });
export const HEALED: Granted = Object.freeze({ kind: 'granted', healed: true });
export const TIMED_OUT: TimedOut = Object.freeze({ kind: 'timeout', sent: true });
export const NOT_ASKED: TimedOut = Object.freeze({ kind: 'timeout', sent: false });

/** Whether a request that got this answer may have taken effect, now or later. */
export function mayHaveReached(answer: Answer | undefined): boolean {
  return answer === undefined || !('sent' in answer) || answer.sent;
}
