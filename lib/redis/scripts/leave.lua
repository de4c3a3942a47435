-- Takes a waiter out of its queues. Those behind it may be able to take the key, even if it had no reservation.
-- keys, waiter, queues, is_shared: 1 or 0
-- Reply: FREE
-- Protocol 5.7
function operations.leave(keys, waiter, queues, is_shared)
  is_shared = is_shared == 1
  for i, key in ipairs(keys) do
    pcall_redis('ZREM', queues[i], member_of(waiter, is_shared))
    drop_reservation(key, waiter, is_shared)
    if type(pcall_redis('GET', key)) ~= 'string' then wake(key, queues[i]) end
  end
  return FREE
end
