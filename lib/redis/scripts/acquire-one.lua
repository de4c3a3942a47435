-- Takes one key that is free, or reserved for the caller, or queues up behind an exclusive holder.
-- key, token, ttl; queue, waiter, waited, reserve_for: absent unless the caller waits
-- Reply, in `answer`: as that of `acquire`; nil where that takes over.
-- Protocol 4.2 and 5.3
local owner, member = waiter and pcall_redis('GET', key), waiter
local is_reserved = owner and owner == RESERVED_FOR .. waiter
local set = pcall_redis('SET', key, token, 'PX', ttl, is_reserved and 'XX' or 'NX')
if set and not set.err then
  answer = FREE
  if waiter then
    pcall_redis('ZREM', queue, waiter)
    if call('EXISTS', queue) == 1 then answer = FREE_WITH_WAITERS end
  end
elseif type(owner) == 'string' and owner ~= token and not is_reserved then
  -- @include enqueue
  -- @include signature
  answer = HELD .. ' ' .. text(call('PTTL', key)) .. ' ' .. signature
end
