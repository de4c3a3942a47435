import type { LockHolder } from './holder.js';
import type {
  Ballot,
  OpenStateRequest,
  ReadStateRequest,
  StateReport,
  WriteStateRequest,
} from './state/state-entry.js';

/**
 * The port between the algorithm and a server: everything that the algorithm requires of one master.
 *
 * A master answers every request exactly once and never throws: a failure is an answer, too.
 * Requests to one master take effect in the order of the calls to `ask`.
 */
export interface Master {
  /** Name of this master in messages, for example `10.0.0.1:6379`. Never contains credentials. */
  readonly name: string;
  /** Sends one request to this master. Calls `reply` exactly once, possibly before `ask` returns. */
  ask(request: MasterRequest, reply: ReplyCallback): void;
  /**
   * Opens the connection and keeps reopening it until `close`. Resolves when the first attempt has succeeded or failed;
   * `problem` then reports the result.
   */
  connect(): Promise<void>;
  /** Why this master cannot take requests now; `undefined` if it can. */
  problem(): UnreachableReply | undefined;
  /** What is known about the server. */
  identity(): MasterIdentity;
  /** The parts of a master that consists of several servers; absent if it is one server. */
  shards?(): readonly ShardStatus[] | undefined;
  /** What all servers of a master with {@link shards} refuse; `undefined` while one of them may take locks. */
  readonly refusalReason?: string | undefined;
  /** Whether `identity()` has a quarantine, without the cost of describing it. */
  readonly isQuarantined: boolean;
  /** Whether none of its servers answers; absent if it is one server. A server that hangs must not count for the others. */
  readonly isSilent?: boolean;
  /** Drops the connection and opens a new one. Called when the master has not answered for a long time. */
  reconnect(): void;
  /** The clocks of this process have stood still: what was read before is older than they show. */
  noteStandstill?(): void;
  /** Registers a callback for each time this master can take requests again, or its votes count again. */
  onReady(listener: () => void): void;
  /**
   * Calls `listener` from now on when this process is next to take a key. The process joins queues under the same name,
   * as the `waiter` of its requests. Notifications can be lost, for example while their connection is down.
   *
   * @param listener `undefined` ends the subscription
   */
  listen(waiter: string, listener: NotificationListener | undefined): void;
  /**
   * Closes the connection, within a bounded time that leaves requests under way a chance to arrive. Pending requests are
   * answered with `unreachable`.
   */
  close(): Promise<void>;
  /**
   * What operators do with a key. Absent if they cannot release the locks of this master by force.
   * @internal
   */
  readonly operator?: OperatorMaster | undefined;
}

// Milliseconds; negative if the key does not expire.
export interface KeyValue {
  readonly value: string;
  readonly remaining: number;
}

// Beside the port of the algorithm. Its methods never reject.
export interface OperatorMaster {
  // `null` if the key is free; a reply says why the master does not report it.
  read(key: string): Promise<KeyValue | MasterReply | null>;
  // `null` for a key that is free or shared; a reply says why there are no values.
  values(keys: readonly string[]): Promise<readonly (string | null)[] | MasterReply>;
  // Replaces the value of the key by `REVOKED` if it is `value`, and keeps its remaining time. Resolves with that time,
  // with `0` if the key has another value, or with the reason why the holder may still have the key.
  revoke(key: string, value: string): Promise<number | MasterReply>;
}

/** What is known about a server. */
export interface MasterIdentity {
  /** Identifies one run of the server, if known. */
  readonly run?: string | undefined;
  /** Identifies the server's data set. Everything that a master has drawn or granted belongs to one data set. */
  readonly data?: string | undefined;
  /**
   * Identifies the data since it was new or may have been lost. Unlike `data`, it stays the same when only the clock of the
   * server is in doubt.
   */
  readonly generation?: string | undefined;
  /** Version of the server, if known. */
  readonly version?: string | undefined;
  /** Why the server must not vote at all; `undefined` if it may. */
  readonly fault?: string | undefined;
  /** What contradicts the declaration that it is durable; `undefined` if nothing does visibly. */
  readonly risk?: string | undefined;
  /** The quarantine during which its votes do not count; `undefined` if there is none. */
  readonly quarantine?: Quarantine | undefined;
}

/** The status of one of the servers that a master consists of: of a primary of a Redis Cluster. */
export interface ShardStatus {
  /** `host:port`, by which this process reaches it. */
  readonly address: string;
  /**
   * - `voting`: its votes count
   * - `quarantined`: the votes of some or all of its partitions do not count for a while
   * - `down`: there is no connection, or it does not answer
   * - `refused`: it refused what a lock needs, such as every write, when it was asked last
   */
  readonly state: 'voting' | 'quarantined' | 'down' | 'refused';
  /** Why it does not vote, without secrets. */
  readonly reason?: string;
  /** Milliseconds until all of its quarantines end at the latest. */
  readonly remaining?: number;
  /** Number of partitions that it serves, of 256 in the cluster. Each lock belongs to one of them. */
  readonly partitions: number;
}

/** The reason of a {@link Quarantine} of a master whose data has not been read yet. */
export const UNREAD_DATA = 'its data is being looked at';

/** The reason of a {@link Quarantine} that begins on new masters, too. */
export const NEW_DATA = 'its data is new to all processes';

/** A period in which the votes of a master do not count. */
export interface Quarantine {
  /** The reason, without secrets. */
  readonly reason: string;
  /** Milliseconds until the votes count again. */
  readonly remaining: number;
}

/** Receives the key that is free, or `undefined` if notifications may have been lost. */
export type NotificationListener = (key: string | undefined) => void;

/** Receives the single answer to a request. */
export type ReplyCallback = (answer: MasterReply) => void;

// In milliseconds: how long a released key stays reserved for the process that is notified.
export const RESERVATION_LIFE = 50;
// The value of a key during that time begins with it. The name of the waiter follows.
export const RESERVED = 'reserved for ';
// The members of a shared key, and the names of the processes that wait for one, begin with it.
export const SHARED_MARK = 'shared ';
// In milliseconds, from the last request of a process for its place at a barrier.
export const BARRIER_LIFE = 5_000;
// Of a key at the same time.
export const MAX_SHARED_HOLDERS = 1_000;

/** A request to a master, discriminated by its `op`. */
export type MasterRequest =
  | AcquireRequest
  | PickRequest
  | RaiseBarrierRequest
  | ExtendRequest
  | DrawRequest
  | ReleaseRequest
  | LeaveRequest
  | InspectRequest
  | ProbeRequest
  | OpenStateRequest
  | WriteStateRequest
  | ReadStateRequest;

interface KeyRequest {
  /** Full key names, including the prefix, sorted and without duplicates. */
  readonly keys: readonly string[];
}

interface OwnerRequest extends KeyRequest {
  /** Identifies one acquisition. A secret. */
  readonly token: string;
}

interface WithdrawableRequest extends OwnerRequest {
  /**
   * Set when a release, or a later round of the same token, supersedes this request. A request that is not on its way
   * yet must then not be sent any more, because it would arrive after its own release.
   */
  withdrawn: boolean;
}

/** Takes all keys, or none. */
export interface AcquireRequest extends WithdrawableRequest {
  /** The kind of request. */
  readonly op: 'acquire';
  /** Lifetime of the keys in milliseconds. */
  readonly ttl: number;
  /** Where to wait if the keys are held; absent if the process does not wait at this master. */
  readonly queue?: QueueTicket | undefined;
  /** Present if other shared holders may have the keys at the same time; absent for an exclusive holder. */
  readonly sharing?: Sharing | undefined;
}

/** What a request for shared keys adds. It is deferred while an older request for exclusive keys stands at a barrier. */
export interface Sharing {
  /** Names of the barriers, one per key, in the order of the keys: the name of the queue, and `BARRIER`. */
  readonly barriers: readonly string[];
  /** Milliseconds since the acquisition began. */
  readonly waited: number;
}

/**
 * Takes one key: the one that is reserved for the process, or the first that is free. If all are held, the process joins
 * the queue, and the answer has the shortest remaining time.
 */
export interface PickRequest extends WithdrawableRequest {
  /** The kind of request. */
  readonly op: 'pick';
  /** Lifetime of the key in milliseconds. */
  readonly ttl: number;
  /** The queue that the keys share; absent if the process does not wait at this master. */
  readonly queue?: QueueTicket | undefined;
}

/**
 * Lets a process that waits for exclusive keys stand at their barriers: while it does, shared keys are not granted to
 * requests that are not older. It is repeated while the process waits, since an entry lives for a few seconds.
 */
export interface RaiseBarrierRequest extends KeyRequest {
  /** The kind of request. */
  readonly op: 'raise-barrier';
  /** Names of the barriers, one per key, in the order of the keys: the name of the queue, and `BARRIER`. */
  readonly barriers: readonly string[];
  /** The process, by the name under which it listens. */
  readonly waiter: string;
  /** Milliseconds that the process has already waited; `undefined` if it leaves the barriers. */
  readonly waited: number | undefined;
}

/** The entry of a waiting process in the queues of some keys on one master. */
export interface QueueTicket {
  /** Names of the queues, one per key, in the order of the keys. */
  readonly queues: readonly string[];
  /** The waiting process, by the name under which it listens. */
  readonly waiter: string;
  /** Milliseconds that the process has already waited. The process that has waited longest is notified first. */
  readonly waited: number;
}

/** Refreshes all keys that hold the token and sets absent keys again. Refuses if a key holds another token. */
export interface ExtendRequest extends WithdrawableRequest {
  /** The kind of request. */
  readonly op: 'extend';
  /** New lifetime of the keys in milliseconds. */
  readonly ttl: number;
  /** Whether the keys are shared. */
  readonly isShared?: boolean | undefined;
}

/**
 * Raises the fencing counters of the keys and answers with the largest if every key still holds the token. Refuses
 * otherwise. Changes no key.
 */
export interface DrawRequest extends OwnerRequest {
  /** The kind of request. */
  readonly op: 'draw';
  /** The counter of each key, in the order of the keys. */
  readonly counters: readonly number[];
  /** Lower bound of the value to which the counters are raised. */
  readonly atLeast: number;
  /** Whether the counters must also exceed their present values. False if this master has drawn for the lock before. */
  readonly isFirst: boolean;
}

/**
 * Deletes the keys that hold the token. If processes wait for such a key at this master, the first of them that listens
 * is notified, and the key stays reserved for it for a moment.
 */
export interface ReleaseRequest extends OwnerRequest {
  /** The kind of request. */
  readonly op: 'release';
  /** Names of the queues, one per key, in the order of the keys. */
  readonly queues: readonly string[];
  /** Instead of being deleted, the keys expire after this many milliseconds. `0` deletes them. */
  readonly keepFor: number;
  /** Longest time in milliseconds for which the keys can still exist. After that, there is nothing left to release. */
  readonly ttl: number;
  /** Whether the keys are shared. */
  readonly isShared?: boolean | undefined;
}

/** Removes a process from the queues of some keys. If that process was next, another one is notified. */
export interface LeaveRequest extends KeyRequest {
  /** The kind of request. */
  readonly op: 'leave';
  /** Names of the queues, one per key, in the order of the keys. */
  readonly queues: readonly string[];
  /** The process, by the name under which it listens. */
  readonly waiter: string;
  /** Whether it waits for shared keys. */
  readonly isShared?: boolean | undefined;
  /**
   * Milliseconds that another waiter of the process has waited for the same keys, which takes over its place; absent if
   * there is none.
   */
  readonly nextWaited?: number | undefined;
}

/** Asks whether one of the keys is held. */
export interface InspectRequest extends KeyRequest {
  /** The kind of request. */
  readonly op: 'inspect';
  /** The queues of which the longest is reported. */
  readonly queues?: readonly string[];
}

/** Checks that keys can be written: sets them for a moment and deletes them. Answered like an acquisition. */
export interface ProbeRequest extends KeyRequest {
  /** The kind of request. */
  readonly op: 'probe';
}

/** Success: acquired, extended, released or, for an inspection, free. */
export interface GrantedReply {
  /** The kind of answer. */
  readonly kind: 'granted';
  /** Whether other processes wait for one of the keys at this master, if the master reports it. */
  readonly hasWaiters?: boolean;
  /** The fencing counter, in the answer to a {@link DrawRequest}. */
  readonly fence?: number;
  /** Whether an extension had to set an absent key again. */
  readonly healed?: boolean;
  /** Which of the keys was taken, counted from 0, in the answer to a {@link PickRequest}. */
  readonly picked?: number;
  /**
   * The permissions that are missing although locks can be taken, and what does not work without them, in the answer to a
   * {@link ProbeRequest}; empty if none is.
   * @internal
   */
  readonly lacks?: string;
  /**
   * What is stored, in the answer to a request for the state.
   * @internal
   */
  readonly state?: StateReport;
}

/** Another token holds one of the keys. */
export interface HeldReply {
  /** The kind of answer. */
  readonly kind: 'held';
  /** Milliseconds until the holder's key expires; `undefined` if the master did not report it. */
  readonly remaining: number | undefined;
  /** The holder of the first of the keys that are held; absent if the key was not set by this library, or is reserved for the next holder. */
  readonly holder?: LockHolder;
  /** Whether an operator released the lock by force: its holder cannot extend it any more. */
  readonly revoked?: boolean;
  /** Number of shared holders, if the key is shared; absent if it has one exclusive holder. */
  readonly sharedBy?: number;
  /** Number of processes that wait in the queue of a key on this master, in the answer to an {@link InspectRequest}. */
  readonly waiting?: number;
  /**
   * The larger ballot because of which the state was not opened or written.
   * @internal
   */
  readonly promised?: Ballot;
}

/** There is no connection to the master. */
export interface UnreachableReply {
  /** The kind of answer. */
  readonly kind: 'unreachable';
  /** The reason, without secrets. */
  readonly reason: string;
  /** Whether the request may have reached the server before the connection broke. */
  readonly sent: boolean;
  /** Whether waiting cannot help: its settings or the server have to be changed, such as a wrong password. */
  readonly isPermanent?: boolean;
}

/** The master did not answer in time. */
export interface TimedOutReply {
  /** The kind of answer. */
  readonly kind: 'timeout';
  /** `false` if the master was known to be silent, so that the request was not sent. */
  readonly sent: boolean;
}

/** The server answered with an error of its own, such as `NOAUTH`, `READONLY` or `OOM`. */
export interface RefusedReply {
  /** The kind of answer. */
  readonly kind: 'refused';
  /** First word of the server's error. */
  readonly code: string;
  /** The rest of the error, without secrets. */
  readonly reason: string;
  /**
   * Whether no lock can be taken on this master without the permission that is missing; absent if that is unknown.
   * @internal
   */
  readonly isVital?: boolean;
}

/** The vote of the master does not count, because the master may have lost what it granted before. */
export interface QuarantinedReply extends Quarantine {
  /** The kind of answer. */
  readonly kind: 'quarantined';
  /** `false` if the request was not sent. */
  readonly sent: boolean;
}

/** A master's answer to a request, discriminated by its `kind`. */
export type MasterReply = GrantedReply | HeldReply | UnreachableReply | TimedOutReply | RefusedReply | QuarantinedReply;

export const GRANTED: GrantedReply = Object.freeze({ kind: 'granted' });
export const GRANTED_WITH_WAITERS: GrantedReply = Object.freeze({ kind: 'granted', hasWaiters: true });
export const HEALED: GrantedReply = Object.freeze({ kind: 'granted', healed: true });
// By a key whose remaining time is unknown, or which does not expire by itself.
export const HELD: HeldReply = Object.freeze({ kind: 'held', remaining: undefined });
export const TIMED_OUT: TimedOutReply = Object.freeze({ kind: 'timeout', sent: true });
export const NOT_ASKED: TimedOutReply = Object.freeze({ kind: 'timeout', sent: false });

// May have taken effect or may still do so.
export function mayHaveReached(answer: MasterReply | undefined): boolean {
  return answer === undefined || !('sent' in answer) || answer.sent;
}
