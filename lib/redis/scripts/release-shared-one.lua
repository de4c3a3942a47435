-- Releases one key that others hold, too, or for which no process waits.
-- key, token, queue
-- Reply, in `answer`: FREE; nil where `release_shared` takes over
-- Protocol 11.4
local size = pcall_redis('ZCARD', key)
local is_quiet = type(size) == 'number' and size > 0 and call('EXISTS', queue) == 0
if is_quiet then
  time = time or call('TIME')
  -- A member that has ended is no holder any more.
  pcall_redis('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
end
if is_quiet and pcall_redis('ZREM', key, SHARED .. token) == 1 then
  if call('EXISTS', key) == 1 then
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if last then call('PEXPIREAT', key, string.format('%.0f', tonumber(last))) end
  end
  answer = FREE
end
