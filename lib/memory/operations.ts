// The operations of the scripts in lib/redis/scripts, written a second time in another language. Masters in memory and
// the servers of the simulation share them. A change of a script must change its operation here, too: on the same
// traces, test/simulation/model.spec.ts compares the answers and the data of a real server with those of this model.
import {
  type AcquireRequest,
  type DrawRequest,
  type ExtendRequest,
  GONE,
  GONE_WITH_WAITERS,
  type GoneReply,
  GRANTED,
  type GrantedReply,
  HELD,
  type HeldReply,
  type InspectRequest,
  type LeaveRequest,
  type MasterRequest,
  MAX_SHARED_HOLDERS,
  type PickRequest,
  type ProbeRequest,
  type RefusedReply,
  type ReleaseRequest,
  type Sharing,
  type DeferReadersRequest,
} from '../masters/master.interface.js';
import {
  contentOf,
  granted,
  heldFor,
  longestOf,
  millisecondsOf,
  type OperationContext,
  reservedFor,
  settle,
  sharedMember,
} from './memory-database.js';
import { arrivalIn, deferralOf, dropReservation, leaveQueues, memberOf, queueUp, wake } from './waiting.js';
import { WRITER } from '../settings/keyspace.js';
import {
  compareVersions,
  entryFrom,
  entryText,
  FOREIGN,
  type OpenStateRequest,
  type ReadStateRequest,
  type StateEntry,
  type WriteStateRequest,
} from '../fencing/state-entry.js';

type SharedAcquisition = AcquireRequest & { readonly sharing: Sharing };

interface Refusal {
  // Negative if the key never expires.
  readonly remaining: number;
  readonly content: ReturnType<typeof contentOf>;
}

// Protocol 11.2
function acquireShared(server: OperationContext, request: SharedAcquisition): GrantedReply | HeldReply {
  const { keys, token, ttl, queue, sharing } = request;
  const refusals = keys.map((key, index) => refusalOf(server, request, key, sharing.writerKeys[index] as string));
  const ticket = queue && { ...queue, isShared: true };
  const [first, ...others] = refusals.filter((refusal) => refusal !== undefined);
  if (first) {
    const times = [first, ...others].map(({ remaining }) => remaining);
    if (ticket) {
      const isHeld = refusals.map((refusal) => refusal !== undefined);
      queueUp(server, keys, isHeld, { ...ticket, waited: sharing.waited });
    }
    return heldFor(Math.min(...times) < 0 ? undefined : Math.max(...times), first.content);
  }
  for (const key of keys) enter(server, key, { token, ttl, waiter: queue?.waiter });
  if (!ticket) return GRANTED;
  const hasWaiters = leaveQueues(server, ticket);
  // The processes behind this one in the queue may have the key, too.
  keys.forEach((key, index) => wake(server, key, ticket.queues[index] as string)); // @mutant wake-chain-broken-1-in-memory
  return granted(hasWaiters);
}

// Protocol 11.3
function extendShared(server: OperationContext, request: ExtendRequest): GrantedReply | HeldReply | GoneReply {
  const { keys, token, ttl, heals = false } = request;
  const { data } = server;
  const contents = keys.map((key) => contentOf(server, key));
  const isHeld = contents.map(({ owner }) => owner !== undefined); // @mutant shared-extension-over-a-string-in-memory
  if (isHeld.includes(true)) return longestOf(server, keys, isHeld);
  const member = sharedMember(token);
  const isPresent = contents.map(({ shared }) => shared?.ends.has(member) ?? false);
  const now = millisecondsOf(server);
  const end = now + Math.ceil(ttl) + 1;
  for (const [index, key] of keys.entries()) {
    if (isPresent[index] || !heals) continue;
    data.zadd(key, member, end);
    settle(server, key);
  }
  for (const [index, key] of keys.entries()) {
    if (!isPresent[index]) continue;
    // A server that is out of memory refuses to begin with ZADD.
    data.prolong(key, end - now);
    data.zadd(key, member, Math.max(end, contents[index]?.shared?.ends.get(member) ?? 0));
    settle(server, key);
  }
  return isPresent.includes(false) && !heals ? GONE : GRANTED;
}

// Protocol 11.4
function releaseShared(server: OperationContext, request: ReleaseRequest): GrantedReply | HeldReply | GoneReply {
  const { keys, queues, token } = request;
  const contents = keys.map((key) => contentOf(server, key));
  const isHeld = contents.map(({ owner }) => owner !== undefined && !isReservation(owner));
  const held = longestOf(server, keys, isHeld);
  let hasWaiters = contents.some(({ owner }) => isReservation(owner));
  for (const [index, key] of keys.entries()) {
    if (contents[index]?.owner !== undefined) continue;
    if (contents[index]?.shared) {
      server.data.zrem(key, sharedMember(token)); // @mutant shared-key-deleted-in-memory
      settle(server, key);
    }
    if (wake(server, key, queues[index] as string)) hasWaiters = true;
  }
  if (isHeld.includes(true)) return held;
  const isOurs = contents.every(({ shared }) => shared?.ends.has(sharedMember(token)));
  return isOurs ? granted(hasWaiters) : gone(hasWaiters);
}

// The first writer that waits keeps the key.
// Protocol 11.6
function deferReaders(server: OperationContext, { writerKeys, waiter, waited }: DeferReadersRequest): GrantedReply {
  const { data, lives } = server;
  for (const key of writerKeys) {
    const arrival = millisecondsOf(server) - waited;
    if (!data.exists(key)) data.set(key, `${arrival.toFixed(0)} ${waiter}`, lives.writer);
    else if (arrivalIn(data.get(key))?.writer === waiter) data.pexpire(key, lives.writer);
  }
  return GRANTED;
}

function enter(
  server: OperationContext,
  key: string,
  { token, ttl, waiter }: { readonly token: string; readonly ttl: number; readonly waiter: string | undefined },
): void {
  const { data } = server;
  const { owner, shared } = contentOf(server, key);
  // The reservation of an exclusive waiter of the same process.
  if (owner !== undefined) data.del(key);
  const end = millisecondsOf(server) + Math.ceil(ttl) + 1;
  data.zadd(key, sharedMember(token), Math.max(end, shared?.ends.get(sharedMember(token)) ?? 0));
  if (waiter !== undefined && shared?.ends.has(reservedFor(waiter))) data.zrem(key, reservedFor(waiter));
  settle(server, key);
}

function refusalOf(
  server: OperationContext,
  { token, queue, sharing }: SharedAcquisition,
  key: string,
  writerKey: string,
): Refusal | undefined {
  const content = contentOf(server, key);
  const { owner, shared } = content;
  const reservation = queue && reservedFor(queue.waiter);
  const isOurs = owner === reservation; // @mutant shared-beside-an-exclusive-holder-in-memory
  if (owner !== undefined) return isOurs ? undefined : { remaining: server.data.pttl(key), content };
  if (shared?.ends.has(sharedMember(token))) return undefined;
  const now = millisecondsOf(server);
  const deferral = deferralOf(server, writerKey, now - sharing.waited);
  const isInvited = reservation !== undefined && (shared?.ends.has(reservation) ?? false);
  const size = (shared?.ends.size ?? 0) - (isInvited ? 1 : 0);
  if (!deferral && size < MAX_SHARED_HOLDERS) return undefined;
  const isShared = shared && (shared.holders > 0 || !deferral);
  return { remaining: isShared ? shared.till - now : (deferral?.remaining ?? 0), content };
}

// Prefers the key that has the token already, then one that is reserved for the waiter, then the first free one.
// Protocol 11.10
function pick(server: OperationContext, { keys, token, ttl, queue }: PickRequest): GrantedReply | HeldReply {
  const { data } = server;
  const owners = keys.map((key) => data.get(key));
  const ticket = queue && { ...queue, queues: queue.queues.slice(0, 1), isShared: false };
  const isFree = (key: string): boolean => !data.exists(key);
  const own = owners.indexOf(token);
  const reserved = queue ? owners.indexOf(reservedFor(queue.waiter)) : -1;
  const picked = own >= 0 ? own : reserved >= 0 ? reserved : keys.findIndex(isFree);
  if (picked >= 0) {
    hold(server, keys[picked] as string, { token, ttl });
    const hasWaiters = ticket !== undefined && leaveQueues(server, ticket);
    return { kind: 'granted', picked, ...(hasWaiters && { hasWaiters }) };
  }
  if (ticket) queueUp(server, keys.slice(0, 1), [true], ticket);
  return soonestOf(server, keys);
}

function soonestOf({ data }: OperationContext, keys: readonly string[]): HeldReply {
  const held = keys.map((key) => ({ owner: data.get(key), left: data.pttl(key) }));
  const isReserved = ({ owner }: { readonly owner: string | undefined }): boolean =>
    owner?.startsWith(reservedFor('')) ?? true;
  const taken = held.filter((one) => !isReserved(one));
  const known = (taken.length > 0 ? taken : held).filter(({ owner }) => owner !== undefined);
  const rank = ({ left }: { readonly left: number }): number => (left < 0 ? Infinity : left);
  const [soonest] = [...known].sort((one, other) => rank(one) - rank(other));
  if (!soonest) return HELD;
  return heldFor(soonest.left < 0 ? undefined : soonest.left, soonest);
}

export interface StateContext {
  readonly data: Pick<OperationContext['data'], 'get' | 'set'>;
  // Identifies the data; empty if nothing does.
  readonly marker: string;
}

type StateReply = GrantedReply | HeldReply | RefusedReply;
// Without what the caller has compared already.
type Compared<Request> = Omit<Request, 'marker' | 'since'>;

export function carryOutState(
  server: StateContext,
  request: Compared<OpenStateRequest> | Compared<WriteStateRequest> | ReadStateRequest,
): StateReply {
  const { data } = server;
  const isOurs = request.op === 'read-state' || data.get(request.keys[0] ?? '') === request.token; // @mutant any-holder-opens-the-state-in-memory
  if (!isOurs) return HELD;
  const text = data.get(request.entry);
  const entry = text === undefined ? undefined : entryFrom(text);
  if (text !== undefined && !entry) return FOREIGN;
  if (request.op === 'open-state') return openState(server, request, entry);
  if (request.op === 'write-state') return writeState(server, request, entry);
  // Protocol 10.9
  return reportOf(server, entry);
}

// Protocol 10.3
function openState(
  server: StateContext,
  { entry: name, number, life }: Compared<OpenStateRequest>,
  entry: StateEntry | undefined,
): StateReply {
  if (entry && number <= entry.claim) return claimedBy(entry); // @mutant smaller-claims-open-the-state-in-memory
  const stored = entry?.stored;
  // The claim lasts as long as the value, which is kept for another period.
  server.data.set(name, entryText({ claim: number, stored }), Math.max(life, stored?.life ?? 0)); // @mutant state-not-claimed-in-memory
  return reportOf(server, entry);
}

// Protocol 10.5
function writeState(
  server: StateContext,
  { entry: name, version, life, json }: Compared<WriteStateRequest>,
  entry: StateEntry | undefined,
): StateReply {
  if (entry && version.number < entry.claim) return claimedBy(entry); // @mutant smaller-claims-write-the-state-in-memory
  const order = entry?.stored ? compareVersions(version, entry.stored.version) : 1;
  // The same request may arrive twice, and an earlier one of the same holder after a later one.
  if (order < 0) return HELD; // @mutant earlier-writes-replace-the-state-in-memory
  if (order > 0) {
    const stored = { version, life, marker: server.marker, json };
    server.data.set(name, entryText({ claim: version.number, stored }), life);
  }
  return GRANTED;
}

function reportOf({ marker }: StateContext, entry: StateEntry | undefined): GrantedReply {
  return { kind: 'granted', state: { entry, marker } };
}

function claimedBy({ claim }: StateEntry): HeldReply {
  return { kind: 'held', remaining: undefined, claim };
}

// In milliseconds, as in the scripts.
const PROBE_LIFE = 1_000;

type KeyRequest = Exclude<MasterRequest, { readonly entry: string }>;

export function carryOut(
  server: OperationContext,
  request: KeyRequest,
): GrantedReply | HeldReply | GoneReply | RefusedReply {
  switch (request.op) {
    case 'acquire': {
      const { sharing } = request;
      return sharing ? acquireShared(server, { ...request, sharing }) : acquire(server, request);
    }
    case 'pick':
      return pick(server, request);
    case 'defer-readers':
      return deferReaders(server, request);
    case 'extend':
      return request.isShared ? extendShared(server, request) : extend(server, request);
    case 'draw':
      return draw(server, request);
    case 'release':
      return request.isShared ? releaseShared(server, request) : release(server, request);
    case 'leave':
      return leave(server, request);
    case 'inspect':
      return inspect(server, request);
    case 'probe':
      return probe(server, request);
  }
}

// Protocol 4.2
function acquire(server: OperationContext, { keys, token, ttl, queue }: AcquireRequest): GrantedReply | HeldReply {
  const reserved = queue && reservedFor(queue.waiter);
  const isHeld = keys.map((key) => isHeldBeside(server, key, [token, reserved])); // @mutant exclusive-beside-shared-holders-in-memory
  if (isHeld.includes(true)) {
    const held = longestOf(server, keys, isHeld);
    if (queue) queueUp(server, keys, isHeld, { isShared: false, ...queue });
    return held;
  }
  for (const key of keys) hold(server, key, { token, ttl });
  return granted(queue !== undefined && leaveQueues(server, { isShared: false, ...queue }));
}

// Protocol 6.2
function extend(server: OperationContext, request: ExtendRequest): GrantedReply | HeldReply | GoneReply {
  const { keys, token, ttl, heals = false } = request;
  const { data } = server;
  const isHeld = keys.map((key) => isHeldBeside(server, key, [token])); // @mutant extension-without-owner-check-in-memory, extension-over-shared-holders-in-memory
  if (isHeld.includes(true)) return longestOf(server, keys, isHeld);
  const absent = keys.filter((key) => !data.exists(key));
  const isSetAgain = heals; // @mutant each-extension-heals-in-memory
  if (isSetAgain) for (const key of absent) data.set(key, token, ttl);
  for (const key of keys) data.prolong(key, ttl);
  return absent.length > 0 && !isSetAgain ? GONE : GRANTED;
}

// Requests may arrive late and in another order: none of them shortens what a later one was granted.
function hold(
  server: OperationContext,
  key: string,
  { token, ttl }: { readonly token: string; readonly ttl: number },
): void {
  if (server.data.get(key) === token) server.data.prolong(key, ttl);
  else server.data.set(key, token, ttl);
}

// In microseconds, as in the script.
const LATEST_CLOCK = Date.UTC(2200, 0, 1) * 1_000;
const LATE_CLOCK: RefusedReply = Object.freeze({
  ...{ kind: 'refused', code: 'CLOCK', reason: 'its clock shows a time beyond the year 2200' },
} as const);

// Protocol 9.1 and 9.4
function draw(
  server: OperationContext,
  { keys, token, counters: fields, atLeast, isFirst }: DrawRequest,
): GrantedReply | HeldReply | RefusedReply {
  const { data, counters } = server;
  const isOurs = keys.every((key) => contentOf(server, key).owner === token); // @mutant draw-for-any-holder-in-memory
  if (!isOurs) return HELD;
  const step = isFirst ? 1 : 0;
  const floor = isFirst ? server.microseconds() : 0;
  if (floor > LATEST_CLOCK) return LATE_CLOCK;
  const drawn = Math.max(atLeast, floor, ...fields.map((field) => Number(data.hget(counters, field) ?? 0) + step));
  for (const field of fields) data.hset(counters, field, String(drawn));
  return { kind: 'granted', fence: drawn };
}

// Protocol 7.1 and 7.4
function release(server: OperationContext, request: ReleaseRequest): GrantedReply | HeldReply | GoneReply {
  const { keys, queues, token, keepFor } = request;
  const { data } = server;
  const contents = keys.map((key) => contentOf(server, key));
  const isHeld = keys.map((key) => isHeldBeside(server, key, [token]) && !isReservation(data.get(key)));
  const held = longestOf(server, keys, isHeld);
  let hasWaiters = contents.some(({ owner }) => owner !== token && isReservation(owner));
  for (const [index, key] of keys.entries()) {
    const { owner, shared } = contents[index] ?? {};
    const isOurs = owner === token; // @mutant unconditional-delete-in-memory
    if (shared || (owner !== undefined && !isOurs)) continue;
    if (isOurs && keepFor === 0) data.del(key);
    if (isOurs && keepFor !== 0) data.pexpire(key, keepFor);
    if (wake(server, key, queues[index] as string)) hasWaiters = true;
  }
  if (isHeld.includes(true)) return held;
  return contents.every(({ owner }) => owner === token) ? granted(hasWaiters) : gone(hasWaiters);
}

function gone(hasWaiters: boolean): GoneReply {
  return hasWaiters ? GONE_WITH_WAITERS : GONE;
}

function isReservation(owner: string | undefined): boolean {
  return owner?.startsWith(reservedFor('')) ?? false;
}

// Protocol 5.7 and 11.6
function leave(server: OperationContext, { keys, queues, waiter, isShared = false }: LeaveRequest): GrantedReply {
  const { data, attempt } = server;
  keys.forEach((key, index) => {
    const queue = queues[index] as string;
    if (!isShared && arrivalIn(data.get(queue + WRITER))?.writer === waiter) data.del(queue + WRITER);
    attempt(() => data.zrem(queue, memberOf({ waiter, isShared })));
    dropReservation(server, key, { waiter, isShared });
    // Those behind it may be able to take the key, even if it had no reservation.
    if (data.get(key) === undefined) wake(server, key, queue);
  });
  return GRANTED;
}

function inspect(server: OperationContext, { keys, queues }: InspectRequest): GrantedReply | HeldReply {
  const isHeld = keys.map((key) => isHeldBeside(server, key, []));
  if (!isHeld.includes(true)) return GRANTED;
  return {
    ...longestOf(server, keys, isHeld),
    waiting: Math.max(0, ...(queues ?? []).map((queue) => server.data.zcard(queue))),
  };
}

function probe({ data }: OperationContext, { keys }: ProbeRequest): GrantedReply {
  for (const key of keys) {
    data.set(key, '', PROBE_LIFE);
    data.del(key);
  }
  return GRANTED;
}

function isHeldBeside(server: OperationContext, key: string, owners: readonly (string | undefined)[]): boolean {
  const { owner, shared } = contentOf(server, key);
  return shared !== undefined || (owner !== undefined && !owners.includes(owner));
}
