-- Takes one key, or queues up for it. Numbers are formatted by '%.0f' only: Lua's default format loses digits.
-- key, token, ttl; queue, waiter, waited, reserve_for: without them, the caller does not wait
-- Reply, in `answer`: as that of `acquire`; nil where that takes over
-- Protocol 4.2 and 5.3
local owner = waiter and pcall_redis('GET', key)
local is_reserved = owner and owner == RESERVED_FOR .. waiter
local set = pcall_redis('SET', key, token, 'PX', ttl, is_reserved and 'XX' or 'NX')
if set and not set.err then
  answer = FREE
  if waiter then
    pcall_redis('ZREM', queue, waiter)
    if call('EXISTS', queue) == 1 then answer = FREE_WITH_WAITERS end
  end
elseif type(owner) == 'string' and owner ~= token and not is_reserved then
  time = time or call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local known = pcall_redis('ZSCORE', queue, waiter)
  local since = type(known) == 'string' and math.floor(known) or now - waited
  pcall_redis('ZADD', queue, string.format('%.10f', since + reserve_for / RESERVATION_SCALE), waiter)
  pcall_redis('PEXPIRE', queue, QUEUE_LIFE)
  -- @include signature
  answer = HELD .. string.format(' %.0f ', call('PTTL', key)) .. signature
end
