-- Takes all keys, or none: queues up at those that are held.
-- keys, token, ttl; queues, waiter, waited, reserve_for: without them, the caller does not wait
-- Reply: FREE, FREE_WITH_WAITERS or HELD
-- Protocol 4.2 and 7.1
function operations.acquire(keys, token, ttl, queues, waiter, waited, reserve_for)
  local longest, held, owner = longest_hold(keys, token, waiter and RESERVED_FOR .. waiter) -- @mutant exclusive-beside-shared-holders
  if longest then
    if waiter then queue_up(keys, held, { queues = queues, waiter = waiter, waited = waited, reserve_for = reserve_for }) end
    return refusal(longest, owner)
  end
  for _, key in ipairs(keys) do hold(key, token, ttl) end
  return waiter and leave_queues(queues, waiter) and FREE_WITH_WAITERS or FREE
end
