import { FREE } from './script-answers.js';

/** How far the wall clock of a client may be ahead of a server's, in milliseconds. */
const MAX_CLOCK_SKEW = 60_000;

// What `scripts.ts` puts together.

/** What a script is given. Most requests need no clock and many no marker: both are read once, when first needed. */
export const GIVEN = `
local call, pcall_redis = redis.call, redis.pcall
local marker, nonce, counters, what = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local time, marked`;

/** Nothing is granted on the word of a server that has forgotten its marker, and so perhaps everything else. */
export const LOOK_AT_MARKER = `
if marked == nil then marked = marker == '' or pcall_redis('HGET', marker, 'nonce') == nonce end`;
/** How large a fencing token may be: not further ahead of this server's clock than clocks may be apart. */
export const LARGEST_FENCE = `time[1] * 1000000 + time[2] + ${MAX_CLOCK_SKEW * 1_000}`;

/**
 * Takes one key, if it is free; otherwise there is no `answer`, and it is left to the operations.
 *
 * Numbers become text by '%.0f' only: Lua's own way loses digits.
 */
export const TAKE = `${LOOK_AT_MARKER}
local set = marked and pcall_redis('SET', key, token, 'PX', ttl, 'NX')
if set and not set.err then
  answer = ${FREE}
  if not time and (field or marker ~= '') then time = call('TIME') end
  if field then
    local after = (call('HGET', counters, field) or 0) + 1
    local drawn = string.format('%.0f', math.max(after, math.min(floor, ${LARGEST_FENCE})))
    call('HSET', counters, field, drawn)
    answer = answer .. ' ' .. drawn
  end
end`;

/** Gives one key up, if it is ours and nobody waits for it; otherwise like {@link TAKE}. */
export const GIVE = `
if pcall_redis('GET', key) == token and call('EXISTS', queue) == 0 then
  call('DEL', key)
  answer = ${FREE}
end`;

/**
 * Nearly every lock needs no more than this. It comes before any function is defined, which is done anew for each run of
 * a script and takes longer than what is asked.
 */
export const ALONE = `
if what == 'take' then
  local key, token, ttl, floor, field = unpack(ARGV, 5)
  local answer
  ${TAKE}
  if answer then return { answer, time } end
elseif what == 'give' then
  local key, token, queue = unpack(ARGV, 5)
  local answer
  ${GIVE}
  if answer then return { answer } end
end`;
