import { createHash } from 'node:crypto';
import { RESERVED_FOR } from '../core/master.interface.js';

/** What a script answers when nobody else holds a key: the keys were taken, refreshed, given up, or are free. */
export const FREE = -2;
/** What a script answers when a key is held and will not expire by itself. Like PTTL, where both numbers come from. */
export const ENDLESS = -1;

/** What the acquire script answers when it has taken the keys while other processes wait for one of them. */
export const FREE_AMONG_OTHERS = -3;

/** What the acquire script answers when the marker is not the one that the client knows. */
export const UNMARKED = -4;

/** For how long a queue lives after somebody has joined it, in milliseconds: those who wait join again before that. */
const QUEUE_LIFE = 5_000;
/** How far the wall clock of a client may be ahead of a server's, in milliseconds. */
const MAX_CLOCK_SKEW = 60_000;
/** Bound on the dead processes that are skipped by one release. */
const MOST_SKIPPED = 100;

/** A Lua script and the digest by which a server that has seen it knows it. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/**
 * Ends the script, with the longest remaining time, if somebody else holds one of the `count` keys.
 *
 * Before anything is written: a script that fails half-way is not rolled back. GET and not just PTTL, so that a key of
 * another type, which is no lock, is reported as such (WRONGTYPE).
 *
 * @param otherwise what to do before it ends
 */
function refuseIf(heldByOther: string, otherwise = ''): string {
  return `
local longest = ${FREE}
local held = {}
local first
for i = 1, count do
  local owner = redis.call('GET', KEYS[i])
  if i == 1 then first = owner end
  if ${heldByOther} then
    local left = redis.call('PTTL', KEYS[i])
    if left == ${ENDLESS} or (longest ~= ${ENDLESS} and left > longest) then longest = left end
    held[i] = true
  end
end
if longest ~= ${FREE} then${otherwise}
  return longest
end`;
}

// No script begins with `#!lua`: a server that is out of memory refuses such a script as a whole, but runs one without,
// and only refuses the commands in it that need memory. PEXPIRE and DEL do not.

// Whatever is wrong with a queue (another type, no permission): pcall, since locks do not depend on it.
// A key that is released while processes wait for it is kept for the one that is woken; nobody listens to a dead one.
const WAKE_NEXT = `
local function wake_next(key, queue)
  for _ = 1, ${MOST_SKIPPED} do
    local waiter = redis.pcall('ZPOPMIN', queue)[1]
    if not waiter then return false end
    if redis.call('EXISTS', key) == 0 then redis.pcall('SET', key, 'reserved for ' .. waiter, 'PX', ${RESERVED_FOR}) end
    local heard = redis.pcall('PUBLISH', waiter, key)
    if type(heard) == 'number' and heard > 0 then return true end
    if redis.call('GET', key) == 'reserved for ' .. waiter then redis.call('DEL', key) end
  end
  return false
end`;

// Whoever waits takes its place before it is refused. What was reserved for it is of no use while another key is held.
const QUEUE_UP = `
  local time = redis.call('TIME')
  local since = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[5])
  for i = 1, count do
    if held[i] then
      redis.pcall('ZADD', KEYS[count + i], 'NX', string.format('%.0f', since), waiter)
      redis.pcall('PEXPIRE', KEYS[count + i], ${QUEUE_LIFE})
    elseif redis.call('GET', KEYS[i]) == reserved then
      redis.call('DEL', KEYS[i])
      wake_next(KEYS[i], KEYS[count + i])
    end
  end`;

/**
 * Draws a fencing token: larger than every counter of the keys, and not smaller than the floor, which cannot be further
 * ahead of this server's clock than clocks may be apart. Who asks again for what it holds already gets the same one.
 *
 * Numbers become text by `%.0f` only, since Lua's own way loses digits. Before the keys are set: if there is no memory
 * for a counter, nothing has happened.
 *
 * @param first where the floor stands in ARGV; the counters follow
 */
function drawToken(first: number): string {
  return `
local counters = KEYS[#KEYS]
local fence = math.min(tonumber(ARGV[${first}]), time[1] * 1000000 + time[2] + ${MAX_CLOCK_SKEW * 1_000})
if first == ARGV[1] then fence = 0 end
local step = fence == 0 and 0 or 1
for i = 1, count do
  fence = math.max(fence, tonumber(redis.call('HGET', counters, ARGV[${first} + i]) or 0) + step)
end
local drawn = string.format('%.0f', fence)
for i = 1, count do redis.call('HSET', counters, ARGV[${first} + i], drawn) end`;
}

/**
 * KEYS: the keys, their queues to wait, the marker of the incarnation, the hash of counters to draw a fencing token.
 * ARGV: token, ttl, number of keys; waiter and milliseconds waited; nonce of the marker; floor and counters.
 */
function acquire(waits: boolean, fences: boolean, marked: boolean): string {
  // Where the next argument stands.
  const mark = waits ? 6 : 4;
  const floor = marked ? mark + 1 : mark;
  const free = waits ? `(crowded and ${FREE_AMONG_OTHERS} or ${FREE})` : `${FREE}`;
  return `${waits ? WAKE_NEXT : ''}
local count = tonumber(ARGV[3])
local waiter = ${waits ? 'ARGV[4]' : "''"}
local reserved = 'reserved for ' .. waiter
${marked ? checkMark(fences ? '#KEYS - 1' : '#KEYS', mark) : ''}
${refuseIf(`owner and owner ~= ARGV[1]${waits ? ' and owner ~= reserved' : ''}`, waits ? QUEUE_UP : '')}
${fences || marked ? `local time = redis.call('TIME')` : ''}
${fences ? drawToken(floor) : ''}
for i = 1, count do redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end
${waits ? LEAVE_QUEUES : ''}
return ${grant(free, fences, marked)}`;
}

/** Nothing is granted on the word of a server that has forgotten its marker, and so perhaps everything else. */
function checkMark(marker: string, nonce: number): string {
  return `if redis.call('HGET', KEYS[${marker}], 'nonce') ~= ARGV[${nonce}] then return ${UNMARKED} end`;
}

/** A status; with a fencing token or the server's clock in milliseconds, a text of all three. */
function grant(status: string, fences: boolean, marked: boolean): string {
  if (!fences && !marked) return status;
  const time = marked ? 'time[1] * 1000 + math.floor(time[2] / 1000)' : '0';
  return `string.format('%d %s %.0f', ${status}, ${fences ? 'drawn' : `'0'`}, ${time})`;
}

const LEAVE_QUEUES = `
local crowded = false
for i = 1, count do
  redis.pcall('ZREM', KEYS[count + i], waiter)
  if redis.call('EXISTS', KEYS[count + i]) == 1 then crowded = true end
end`;

// KEYS: the keys, then their queues. ARGV: waiter.
const LEAVE = `${WAKE_NEXT}
local count = #KEYS / 2
for i = 1, count do
  redis.pcall('ZREM', KEYS[count + i], ARGV[1])
  if redis.pcall('GET', KEYS[i]) == 'reserved for ' .. ARGV[1] then
    redis.call('DEL', KEYS[i])
    wake_next(KEYS[i], KEYS[count + i])
  end
end
return ${FREE}`;

/**
 * The absent keys first: if there is no memory for them, the others are not refreshed either. EXISTS and not SET NX,
 * which a server that is out of memory refuses even where it would do nothing.
 *
 * KEYS: the keys; the hash of counters with fencing. ARGV: token, ttl, number of keys; fencing token and counters.
 */
function extend(fences: boolean): string {
  return `
local count = tonumber(ARGV[3])
${refuseIf('owner and owner ~= ARGV[1]')}
for i = 1, count do
  if redis.call('EXISTS', KEYS[i]) == 0 then redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end
end
for i = 1, count do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
${fences ? raiseCounters('pcall') : ''}
return ${FREE}`;
}

/** Raises the counters of the keys to the fencing token in ARGV[4], where they are behind. */
function raiseCounters(call: 'call' | 'pcall'): string {
  return `
local fence = tonumber(ARGV[4])
for i = 1, count do
  local counter = redis.${call}('HGET', KEYS[#KEYS], ARGV[4 + i])
  if type(counter) ~= 'table' then fence = math.max(fence, tonumber(counter or 0)) end
end
local raised = string.format('%.0f', fence)
for i = 1, count do redis.${call}('HSET', KEYS[#KEYS], ARGV[4 + i], raised) end`;
}

// KEYS: the keys, the hash of counters. ARGV: token, nothing, number of keys, fencing token, counters.
const CONFIRM = `
local count = tonumber(ARGV[3])
for i = 1, count do
  if redis.call('GET', KEYS[i]) ~= ARGV[1] then return 0 end
end
${raiseCounters('call')}
return string.format('%d %s 0', ${FREE}, raised)`;

// pcall, since one key that is no lock must not keep the others from being given up.
// KEYS: the keys, then their queues. ARGV: token, milliseconds to keep the keys.
const RELEASE = `${WAKE_NEXT}
local count = #KEYS / 2
local trouble
local crowded = false
for i = 1, count do
  local owner = redis.pcall('GET', KEYS[i])
  if type(owner) == 'table' then
    trouble = owner
  elseif owner == ARGV[1] or not owner then
    if owner and ARGV[2] == '0' then redis.call('DEL', KEYS[i]) end
    if owner and ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
    if wake_next(KEYS[i], KEYS[count + i]) then crowded = true end
  elseif string.find(owner, 'reserved for ', 1, true) == 1 then
    crowded = true
  end
end
return trouble or (crowded and ${FREE_AMONG_OTHERS}) or ${FREE}`;

const INSPECT = `
local count = #KEYS
${refuseIf('owner')}
return ${FREE}`;

/** The scripts that a master runs. */
export type Scripts = ReturnType<typeof bind>;

/** So many runs of servers are remembered: whoever connects again usually meets the same ones. */
const MOST_BOUND = 64;
const bound = new Map<string, Scripts>();

/**
 * All scripts, for one run of a server: its id is part of every text, and so of every digest. Another server behind the
 * same address does not know them, not even over a connection that has survived in a proxy.
 *
 * @param run id of the run; empty if the server does not tell
 * @param marked whether acquiring looks at the marker of the incarnation
 */
export function boundScripts(run: string, marked: boolean): Scripts {
  const name = `${run} ${marked}`;
  let scripts = bound.get(name);
  if (scripts) return scripts;
  if (bound.size >= MOST_BOUND) bound.clear();
  bound.set(name, (scripts = bind(run, marked)));
  return scripts;
}

function bind(run: string, marked: boolean) {
  const script = (body: string): Script => {
    const text = `${body.trim()}\n-- for ${run}`;
    return { text, sha1: createHash('sha1').update(text).digest('hex') };
  };
  return {
    acquire: script(acquire(false, false, marked)),
    acquireFenced: script(acquire(false, true, marked)),
    acquireOrQueue: script(acquire(true, false, marked)),
    acquireOrQueueFenced: script(acquire(true, true, marked)),
    extend: script(extend(false)),
    extendFenced: script(extend(true)),
    confirm: script(CONFIRM),
    release: script(RELEASE),
    leave: script(LEAVE),
    inspect: script(INSPECT),
  };
}
