import { RESERVED_FOR } from '../core/master.interface.js';
import { FREE, FREE_AMONG_OTHERS } from './script-answers.js';

/** For how long a queue lives after somebody has joined it, in milliseconds: those who wait join again before that. */
export const QUEUE_LIFE = 5_000;

// What `scripts.ts` puts together.

/** What a script is given. Most requests need no clock and many no marker: both are read once, when first needed. */
export const GIVEN = `
local call, pcall_redis = redis.call, redis.pcall
local marker, nonce, history, counters, what = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local time, marked`;

/**
 * Nothing is granted on the word of a server that has forgotten its marker, and so perhaps everything else. Now and then
 * the history of the data is compared, too: a server that was demoted and promoted again has the same run and marker.
 */
export const LOOK_AT_MARKER = `
if marked == nil then
  marked = marker == '' or pcall_redis('HGET', marker, 'nonce') == nonce
  if marked and history ~= '' then
    local info = pcall_redis('INFO', 'replication')
    marked = type(info) ~= 'string' or string.find(info, 'master_replid:' .. history, 1, true) ~= nil
  end
end`;

/** What a key holds, in front of the name of a waiting process, while it is kept for that process. */
export const RESERVED = `'reserved for '`;

/**
 * Tells a waiting process that it is next, and whether it listens. PUBLISH also counts those that subscribe to a pattern,
 * such as a monitor, so what counts is who subscribes to exactly this channel. Without the permission to ask for that,
 * `[2]` of the error is nil, and the word of PUBLISH has to do.
 */
export const NOTIFY = `
    local heard = pcall_redis('PUBLISH', waiter, key)
    local is_heard = type(heard) == 'number' and heard > 0 and pcall_redis('PUBSUB', 'NUMSUB', waiter)[2] ~= 0`.trim();

/**
 * Takes one key, if it is free or kept for whoever asks. If somebody else has it, whoever waits takes a place in its queue.
 * Otherwise there is no `answer`, and it is left to the operations.
 *
 * Numbers become text by '%.0f' only: Lua's own way loses digits.
 */
export const TAKE = `${LOOK_AT_MARKER}
local owner = waiter and pcall_redis('GET', key)
local is_reserved = owner and owner == ${RESERVED} .. waiter
local set = marked and pcall_redis('SET', key, token, 'PX', ttl, is_reserved and 'XX' or 'NX')
if set and not set.err then
  answer = ${FREE}
  if waiter then
    pcall_redis('ZREM', queue, waiter)
    if call('EXISTS', queue) == 1 then answer = ${FREE_AMONG_OTHERS} end
  end
  if not time and marker ~= '' then time = call('TIME') end
elseif marked and type(owner) == 'string' and owner ~= token and not is_reserved then
  time = time or call('TIME')
  pcall_redis('ZADD', queue, 'NX', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - waited), waiter)
  pcall_redis('PEXPIRE', queue, ${QUEUE_LIFE})
  answer = call('PTTL', key)
end`;

/**
 * Gives one key up, if it is ours; otherwise, and if whoever waits for it does not listen any more, like {@link TAKE}.
 *
 * pcall, since locks do not depend on whatever is wrong with a queue (another type, no permission). A key that is
 * released while processes wait for it is kept for the one that is woken.
 */
export const GIVE = `
if pcall_redis('GET', key) == token then
  call('DEL', key)
  local waiter = pcall_redis('ZPOPMIN', queue)[1]
  if not waiter then
    answer = ${FREE}
  else
    pcall_redis('SET', key, ${RESERVED} .. waiter, 'PX', ${RESERVED_FOR})
    ${NOTIFY}
    if is_heard then
      answer = ${FREE_AMONG_OTHERS}
    else
      call('DEL', key)
    end
  end
end`;

/**
 * Nearly every lock needs no more than this. It comes before any function is defined, which is done anew for each run of
 * a script and takes longer than what is asked.
 */
export const ALONE = `
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
end`;
