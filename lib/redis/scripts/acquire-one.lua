-- Takes one key that is free, or reserved for the caller.
-- key, token, ttl; queue, waiter: absent unless the caller waits
-- Reply, in `answer`: FREE or FREE_WITH_WAITERS; nil where `acquire` takes over.
-- Protocol 4.2
local is_reserved = waiter and pcall_redis('GET', key) == RESERVED_FOR .. waiter
local set = pcall_redis('SET', key, token, 'PX', ttl, is_reserved and 'XX' or 'NX')
if set and not set.err then
  answer = FREE
  if waiter then
    pcall_redis('ZREM', queue, waiter)
    if call('EXISTS', queue) == 1 then answer = FREE_WITH_WAITERS end
  end
end
