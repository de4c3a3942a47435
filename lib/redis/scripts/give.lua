-- Releases one key, and reserves it for the first waiter. Sets `answer`; where it stays nil, the general operations take
-- over. pcall, because locks must not depend on whatever is wrong with a queue (another type, no permission).
-- Protocol 5.4 and 7.1
if pcall_redis('GET', key) == token then
  call('DEL', key)
  local popped = pcall_redis('ZPOPMIN', queue)
  local waiter = popped[1]
  if not waiter then
    answer = FREE
  elseif string.find(waiter, SHARED, 1, true) == 1 then
    pcall_redis('ZADD', queue, popped[2], waiter)
    pcall_redis('PEXPIRE', queue, QUEUE_LIFE)
  else
    pcall_redis('SET', key, RESERVED_FOR .. waiter, 'PX', RESERVATION_LIFE)
    -- @include notify
    if is_heard then
      answer = FREE_WITH_WAITERS
    else
      call('DEL', key)
    end
  end
end
