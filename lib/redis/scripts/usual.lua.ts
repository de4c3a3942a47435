import { REVOKED, TOKEN_LENGTH } from '../../core/holder.js';
import { MAX_SHARED_HOLDERS, RESERVATION_LIFE, RESERVED, SHARED_MARK } from '../../core/master.interface.js';
import { FREE, FREE_WITH_WAITERS } from './statuses.js';

// In milliseconds after a waiter has joined: waiters join again before that.
// Protocol 5.7
export const QUEUE_LIFE = 5_000;

// The parts that `bound-script.ts` assembles.

// Most requests need no clock and many need no marker: both are read once, on first use.
export const PARAMETERS = `
local call, pcall_redis = redis.call, redis.pcall
local marker, nonce, history, counters, what = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local time, marked`;

// A server that has lost its marker may have lost all locks. From time to time, the history is compared, too: a server
// that was demoted and promoted again has the same run and marker.
// Protocol 8.1
export const CHECK_MARKER = `
if marked == nil then
  marked = marker == '' or pcall_redis('HGET', marker, 'nonce') == nonce -- @mutant marker-not-looked-at
  if marked and history ~= '' then
    local info = pcall_redis('INFO', 'replication')
    marked = type(info) ~= 'string' or string.find(info, 'master_replid:' .. history, 1, true) ~= nil
  end
end`;

// Begins the value of a key that is reserved for a waiter. The name of the waiter follows.
export const RESERVED_FOR = `'${RESERVED}'`;

// Begins a member of a shared key, whose token follows, and a member of a queue that waits for a shared key.
export const SHARED = `'${SHARED_MARK}'`;

// Lua's patterns have no count.
const DIGITS = '[%w_-]'.repeat(TOKEN_LENGTH);
// The part of a holder's token that is not secret: see `core/holder.ts`. `!` for a lock that was released by force, and
// empty for the value of another program.
export const SIGNATURE = `(owner == '${REVOKED}' and '!' or string.match(owner, '^${DIGITS}(@[0-9a-z]+@[!-~]+)$') or '')`;

// PUBLISH also counts clients that subscribe to a pattern, such as a monitor: the number of subscribers of exactly this
// channel decides. Without the permission to read it, `[2]` of the error is nil.
// Protocol 5.4
export const NOTIFY = `
    local heard = pcall_redis('PUBLISH', waiter, key)
    local is_heard = type(heard) == 'number' and heard > 0 and pcall_redis('PUBSUB', 'NUMSUB', waiter)[2] ~= 0`.trim();

// Where `answer` stays nil, the general operations take over. Numbers are formatted by '%.0f' only: Lua's default
// format loses digits.
// Protocol 4.2 and 5.3
const TAKE = `${CHECK_MARKER}
local owner = waiter and pcall_redis('GET', key)
local is_reserved = owner and owner == ${RESERVED_FOR} .. waiter
local set = marked and pcall_redis('SET', key, token, 'PX', ttl, is_reserved and 'XX' or 'NX')
if set and not set.err then
  answer = ${FREE}
  if waiter then
    pcall_redis('ZREM', queue, waiter)
    if call('EXISTS', queue) == 1 then answer = ${FREE_WITH_WAITERS} end
  end
  if not time and marker ~= '' then time = call('TIME') end
elseif marked and type(owner) == 'string' and owner ~= token and not is_reserved then
  time = time or call('TIME')
  pcall_redis('ZADD', queue, 'NX', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - waited), waiter)
  pcall_redis('PEXPIRE', queue, ${QUEUE_LIFE})
  answer = string.format('%.0f ', call('PTTL', key)) .. ${SIGNATURE}
end`;

// Where `answer` stays nil, the general operations take over. pcall, because locks must not depend on whatever is wrong
// with a queue (another type, no permission).
// Protocol 5.4 and 7.1
const GIVE = `
if pcall_redis('GET', key) == token then
  call('DEL', key)
  local popped = pcall_redis('ZPOPMIN', queue)
  local waiter = popped[1]
  if not waiter then
    answer = ${FREE}
  elseif string.find(waiter, ${SHARED}, 1, true) == 1 then
    pcall_redis('ZADD', queue, popped[2], waiter)
    pcall_redis('PEXPIRE', queue, ${QUEUE_LIFE})
  else
    pcall_redis('SET', key, ${RESERVED_FOR} .. waiter, 'PX', ${RESERVATION_LIFE})
    ${NOTIFY}
    if is_heard then
      answer = ${FREE_WITH_WAITERS}
    else
      call('DEL', key)
    end
  end
end`;

// Reads no member but the first, however many there are.
// Protocol 11.2
export const JOIN = `${CHECK_MARKER}
local size = marked and pcall_redis('EXISTS', key, barrier)
-- Of two names, usually none exists.
if type(size) == 'number' and size > 0 then size = call('EXISTS', barrier) == 0 and pcall_redis('ZCARD', key) end
if type(size) == 'number' and size < ${MAX_SHARED_HOLDERS} then
  local first = size > 0 and call('ZRANGE', key, 0, 0)[1]
  local is_ours = not first or string.find(first, ${SHARED}, 1, true) == 1 or string.find(first, ${RESERVED_FOR}, 1, true) == 1
  if is_ours and (not first or call('PTTL', key) >= 0) then
    time = time or call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local till = string.format('%.0f', now + ttl + 1)
    -- First, because a server that is out of memory refuses it.
    local added = pcall_redis('ZADD', key, till, ${SHARED} .. token)
    if type(added) == 'number' then
      if first then
        pcall_redis('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
        till = string.format('%.0f', tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]))
      end
      if pcall_redis('PEXPIREAT', key, till) == 1 then answer = ${FREE} else call('ZREM', key, ${SHARED} .. token) end
    end
  end
end`;

// For one key that others hold, too, or for which no process waits. Otherwise like `JOIN`.
// Protocol 11.4
export const PART = `
local size = pcall_redis('ZCARD', key)
local is_quiet = type(size) == 'number' and size > 0 and call('EXISTS', queue) == 0
if is_quiet and pcall_redis('ZREM', key, ${SHARED} .. token) == 1 then
  time = time or call('TIME')
  if call('EXISTS', key) == 1 then
    call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if last then call('PEXPIREAT', key, string.format('%.0f', tonumber(last))) end
  end
  answer = ${FREE}
end`;

// Nearly every lock needs no more than this. It comes before any function is defined: each run of a script defines its
// functions anew, which takes longer than the request itself.
export const FAST_PATH = `
if what == 'take' then
  local key, token, ttl, queue, waiter, waited = unpack(ARGV, 6)
  local answer
  ${TAKE}
  if answer then return { answer, time } end
elseif what == 'give' then
  local key, token, queue = unpack(ARGV, 6)
  local answer
  ${GIVE}
  if answer then return { answer } end
elseif what == 'join' then
  local key, token, ttl, barrier = unpack(ARGV, 6)
  local answer
  ${JOIN}
  if answer then return { answer, time } end
elseif what == 'part' then
  local key, token, queue = unpack(ARGV, 6)
  local answer
  ${PART}
  if answer then return { answer, time } end
end`;

// An error of one request does not affect the others. The other operations are defined when a request needs the first
// of them: to define them takes longer than a dozen usual requests.
export const ANSWER_ALL = `
local operations
local function general(name)
  operations = operations or define_operations()
  return operations[name]
end

local function take(key, token, ttl, queue, waiter, waited)
  local answer
  ${TAKE}
  return answer or general('acquire')({ key }, token, ttl, { queue }, waiter, waited)
end

local function give(key, token, queue)
  local answer
  ${GIVE}
  return answer or general('release')({ key }, token, '0', { queue })
end

local answers = {}
local first = string.sub(what, 1, 1)
local alone = first == '[' and cjson.decode(what) or { { what, unpack(ARGV, 6) } }
local groups = first == '{' and cjson.decode(what).groups or { { marker, nonce, history, counters, alone } }
for _, group in ipairs(groups) do
  local requests
  marker, nonce, history, counters, requests = unpack(group)
  marked = nil
  for _, request in ipairs(requests) do
    local name = request[1]
    local operation = name == 'take' and take or name == 'give' and give or general(name)
    local done, answer = pcall(operation, unpack(request, 2))
    -- Before Redis 7 an error is a text that begins with its place.
    if not done and type(answer) == 'string' then answer = { err = (string.gsub(answer, '^.-user_script: ?%d+: ', '')) } end
    answers[#answers + 1] = answer
  end
end
answers[#answers + 1] = time
return answers`;
