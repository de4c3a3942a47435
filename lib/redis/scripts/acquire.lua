-- Takes all keys, or none: queues up at those that refuse.
-- keys, token, ttl, writer_keys: false for exclusive keys, waited; queues, waiter, reserve_for: absent unless the caller waits
-- Reply: FREE, FREE_WITH_WAITERS or HELD.
-- Protocol 4.2, 7.1 and 11.2
function operations.acquire(keys, token, ttl, writer_keys, waited, queues, waiter, reserve_for)
  local is_shared = writer_keys and true
  local since = is_shared and milliseconds() - waited
  local request = { token = token, waiter = waiter, is_shared = is_shared, writer_keys = writer_keys, since = since }
  local longest, held, owner = refusals(keys, request)
  if longest then
    if waiter then
      queue_up(keys, held, { queues = queues, waiter = waiter, waited = waited, reserve_for = reserve_for, is_shared = is_shared })
    end
    return refusal(longest, owner)
  end
  for _, key in ipairs(keys) do
    if is_shared then share(key, token, ttl, waiter) else hold(key, token, ttl) end
  end
  if not waiter then return FREE end
  local contended = leave_queues(queues, member_of(waiter, is_shared))
  -- The processes behind this one in the queue may have a shared key, too.
  for i, key in ipairs(is_shared and keys or {}) do wake(key, queues[i]) end -- @mutant wake-chain-broken-1
  return contended and FREE_WITH_WAITERS or FREE
end
