-- Takes a waiter out of its queues, and removes its writer keys. Others may then have the key, even if it had no reservation.
-- keys, waiter, queues, is_shared: 1 or 0
-- Reply: FREE
-- Protocol 5.7 and 11.6
function operations.leave(keys, waiter, queues, is_shared)
  is_shared = is_shared == 1
  for i, key in ipairs(keys) do
    local _, writer = deferral(queues[i] .. WRITER, math.huge)
    if writer == waiter and not is_shared then call('DEL', queues[i] .. WRITER) end
    pcall_redis('ZREM', queues[i], member_of(waiter, is_shared))
    drop_reservation(key, waiter, is_shared)
    if type(pcall_redis('GET', key)) ~= 'string' then wake(key, queues[i]) end
  end
  return FREE
end
