import type {
  Gone,
  Granted,
  HeldByOther,
  Quarantine,
  QuarantinedReply,
  Refused,
  Server,
  TimedOutReply,
  UnreachableReply,
} from '../redlock/server.js';
import type { OpenStateRequest, ReadStateRequest, StateReport, WriteStateRequest } from '../fencing/state-entry.js';

/**
 * The port between the algorithm and a server: everything that the algorithm requires of one master.
 *
 * A master answers every request exactly once and never throws: a failure is an answer, too.
 * Requests to one master take effect in the order of the calls to `ask`.
 */
export interface Master extends Server {
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
  /** Whether `identity()` has a quarantine, without the cost of describing it. */
  readonly isQuarantined: boolean;
  /** Throws if no lock of these resources can be taken together here; absent if each can. */
  check?(resources: readonly string[]): void;
  /**
   * Resolves when the next attempt to open a lost connection has succeeded or failed; `undefined` if a call need not wait
   * for it.
   */
  reopened?(): Promise<void> | undefined;
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
  /**
   * Identifies the data in which the server votes; `null` while it does not vote, empty or absent if a loss of its data
   * cannot be noticed.
   */
  readonly marker?: string | null | undefined;
  /** Version of the server, if known. */
  readonly version?: string | undefined;
  /** Why the server must not vote at all; `undefined` if it may. */
  readonly fault?: string | undefined;
  /** How long it does not vote, by its last answer; `undefined` if it does. */
  readonly quarantine?: Quarantine | undefined;
}

/** Receives the key that is free, or `undefined` if notifications may have been lost. */
export type NotificationListener = (key: string | undefined) => void;

/** Receives the single answer to a request. */
export type ReplyCallback = (answer: MasterReply) => void;

// In milliseconds: for so long at most, a released key stays reserved for the process that is notified.
export const LONGEST_RESERVATION = 1_000;
// The score of a waiter in a queue is the moment since which it waits, in milliseconds. Its fraction is the time for which a
// key is reserved for it, as a share of so many milliseconds.
export const RESERVATION_SCALE = 1_024;
// The value of a key during that time begins with it. The name of the waiter follows.
export const RESERVED = 'reserved for ';
// The members of a shared key, and the names of the processes that wait for one, begin with it.
export const SHARED_MARK = 'shared ';
// In milliseconds, from the last request of the writer that has the key.
export const WRITER_LIFE = 5_000;
// Of a key at the same time.
export const MAX_SHARED_HOLDERS = 1_000;

/** A request to a master, discriminated by its `op`. */
export type MasterRequest =
  | AcquireRequest
  | PickRequest
  | DeferReadersRequest
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

interface RoundRequest extends OwnerRequest {
  /**
   * When the round of this request began, in milliseconds of the monotonic clock of this process. A connection that could
   * only be used later is no part of the round.
   */
  readonly since: number;
}

interface WithdrawableRequest extends RoundRequest {
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

/** What a request for shared keys adds. It is deferred while the writer key is older. */
export interface Sharing {
  /** Names of the writer keys, one per key, in the order of the keys: the name of the queue, and `WRITER`. */
  readonly writerKeys: readonly string[];
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
 * Lets a process that waits for exclusive keys keep out shared requests that are not older, by the writer keys: the first
 * such process has them. It is repeated while the process waits, since a writer key lives for a few seconds.
 */
export interface DeferReadersRequest extends KeyRequest {
  /** The kind of request. */
  readonly op: 'defer-readers';
  /** Names of the writer keys, one per key, in the order of the keys: the name of the queue, and `WRITER`. */
  readonly writerKeys: readonly string[];
  /** The process, by the name under which it listens. */
  readonly waiter: string;
  /** Milliseconds that the process has already waited. */
  readonly waited: number;
}

/** The entry of a waiting process in the queues of some keys on one master. */
export interface QueueTicket {
  /** Names of the queues, one per key, in the order of the keys. */
  readonly queues: readonly string[];
  /** The waiting process, by the name under which it listens. */
  readonly waiter: string;
  /** Milliseconds that the process has already waited. The process that has waited longest is notified first. */
  readonly waited: number;
  /** Milliseconds that the process needs to take a key after its release, at most 1,000: the key is reserved for so long. */
  readonly reserveFor: number;
}

/**
 * Refreshes the keys that hold the token, never to an earlier end, and says whether one was absent. Refuses if a key holds
 * another token.
 */
export interface ExtendRequest extends WithdrawableRequest {
  /** The kind of request. */
  readonly op: 'extend';
  /** New lifetime of the keys in milliseconds. */
  readonly ttl: number;
  /** Whether the keys are shared. */
  readonly isShared?: boolean | undefined;
  /** Whether absent keys are set again. */
  readonly heals?: boolean | undefined;
}

/**
 * Raises the fencing counters of the keys and answers with the largest if every key still holds the token. Refuses
 * otherwise. Changes no key.
 */
export interface DrawRequest extends RoundRequest {
  /** The kind of request. */
  readonly op: 'draw';
  /** The counter of each key, in the order of the keys. */
  readonly counters: readonly number[];
  /** Lower bound of the value to which the counters are raised. */
  readonly atLeast: number;
  /**
   * Whether the counters must also exceed their present values and reach the clock of the server in microseconds. False if
   * this master has drawn for the lock before.
   */
  readonly isFirst: boolean;
}

/**
 * Deletes the keys that hold the token, and says whether all of them did. If processes wait for such a key at this master,
 * the first of them that listens is notified, and the key stays reserved for it for a moment.
 */
export interface ReleaseRequest extends OwnerRequest {
  /** The kind of request. */
  readonly op: 'release';
  /** Names of the queues, one per key, in the order of the keys. */
  readonly queues: readonly string[];
  /** Instead of being deleted, the keys expire after this many milliseconds. `0` deletes them. */
  readonly keepFor: number;
  /** Longest time in milliseconds for which the keys can still exist. After that, there is nothing left to release. `0` only asks for the reply. */
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
export interface GrantedReply extends Granted {
  /** Whether other processes wait for one of the keys at this master, if the master reports it. */
  readonly hasWaiters?: boolean;
  /** The fencing counter, in the answer to a {@link DrawRequest}. */
  readonly fence?: number;
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
export interface HeldReply extends HeldByOther {
  /** Number of shared holders, if the key is shared; absent if it has one exclusive holder. */
  readonly sharedBy?: number;
  /** Number of processes that wait in the queue of a key on this master, in the answer to an {@link InspectRequest}. */
  readonly waiting?: number;
  /**
   * The number for which the state is claimed, because of which it was not opened or written.
   * @internal
   */
  readonly claim?: number;
}

/** One of the keys was absent, in the answer to an extension or a release, and no other token holds any. */
export interface GoneReply extends Gone {
  /** Whether other processes wait for one of the keys at this master, in the answer to a release. */
  readonly hasWaiters?: boolean;
}

/** The server answered with an error of its own, such as `NOAUTH`, `READONLY` or `OOM`. */
export interface RefusedReply extends Refused {
  /**
   * Whether no lock can be taken on this master without the permission that is missing; absent if that is unknown.
   * @internal
   */
  readonly isVital?: boolean;
  /**
   * Whether it was the restart gate that failed, so that no lock can be taken, whatever its key.
   * @internal
   */
  readonly isAtGate?: boolean;
}

/** A master's answer to a request, discriminated by its `kind`. */
export type MasterReply =
  GrantedReply | HeldReply | GoneReply | UnreachableReply | TimedOutReply | RefusedReply | QuarantinedReply;

export const GRANTED: GrantedReply = Object.freeze({ kind: 'granted' });
export const GRANTED_WITH_WAITERS: GrantedReply = Object.freeze({ kind: 'granted', hasWaiters: true });
export const GONE: GoneReply = Object.freeze({ kind: 'gone' });
export const GONE_WITH_WAITERS: GoneReply = Object.freeze({ kind: 'gone', hasWaiters: true });
// By a key whose remaining time is unknown, or which does not expire by itself.
export const HELD: HeldReply = Object.freeze({ kind: 'held', remaining: undefined });
export const NOT_ASKED: TimedOutReply = Object.freeze({ kind: 'timeout', sent: false });
