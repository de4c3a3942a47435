-- Releases one key that others hold, too, or for which no process waits.
-- key, token, queue
-- Reply, in `answer`: FREE; nil where `release` takes over.
-- Protocol 11.4
local size = pcall_redis('ZCARD', key)
if type(size) == 'number' and size > 0 and pcall_redis('EXISTS', queue) == 0 then
  -- A member that has ended is no holder any more.
  pcall_redis('ZREMRANGEBYSCORE', key, '-inf', text(milliseconds()))
  if pcall_redis('ZREM', key, SHARED .. token) == 1 then
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if last then call('PEXPIREAT', key, text(tonumber(last))) end
    answer = FREE
  end
end
