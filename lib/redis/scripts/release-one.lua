-- Releases one key, and reserves it for the first waiter. pcall, because locks must not depend on whatever is wrong with a
-- queue (another type, no permission).
-- key, token, queue
-- Reply, in `answer`: as that of `release`; nil where that takes over, which learns from `given` that the key was there
-- Protocol 5.4 and 7.1
if pcall_redis('GET', key) == token then
  call('DEL', key)
  given = true
  local popped = pcall_redis('ZPOPMIN', queue)
  local waiter = popped[1]
  if not waiter then
    answer = FREE
  elseif string.find(waiter, SHARED, 1, true) == 1 then
    pcall_redis('ZADD', queue, popped[2], waiter)
    pcall_redis('PEXPIRE', queue, QUEUE_LIFE)
  else
    pcall_redis('SET', key, RESERVED_FOR .. waiter, 'PX', math.floor(popped[2] % 1 * RESERVATION_SCALE))
    -- @include notify
    if is_heard then
      answer = FREE_WITH_WAITERS
    else
      call('DEL', key)
    end
  end
end
