-- Takes one key, or queues up for it. Sets `answer`; where it stays nil, the general operations take over. Numbers are
-- formatted by '%.0f' only: Lua's default format loses digits.
-- Protocol 4.2 and 5.3
-- @include check-marker
local owner = waiter and pcall_redis('GET', key)
local is_reserved = owner and owner == RESERVED_FOR .. waiter
local set = marked and pcall_redis('SET', key, token, 'PX', ttl, is_reserved and 'XX' or 'NX')
if set and not set.err then
  answer = FREE
  if waiter then
    pcall_redis('ZREM', queue, waiter)
    if call('EXISTS', queue) == 1 then answer = FREE_WITH_WAITERS end
  end
  if not time and marker ~= '' then time = call('TIME') end
elseif marked and type(owner) == 'string' and owner ~= token and not is_reserved then
  time = time or call('TIME')
  pcall_redis('ZADD', queue, 'NX', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - waited), waiter)
  pcall_redis('PEXPIRE', queue, QUEUE_LIFE)
  -- @include signature
  answer = string.format('%.0f ', call('PTTL', key)) .. signature
end
