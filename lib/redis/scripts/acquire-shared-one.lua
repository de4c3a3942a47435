-- Takes one key that others may share. Reads no member but the first, however many there are.
-- key, token, ttl, barrier
-- Reply, in `answer`: FREE; nil where `acquire_shared` takes over
-- Protocol 11.2
local size = pcall_redis('EXISTS', key, barrier)
-- Of two names, usually none exists.
if type(size) == 'number' and size > 0 then size = call('EXISTS', barrier) == 0 and pcall_redis('ZCARD', key) end
if type(size) == 'number' and size < MAX_SHARED_HOLDERS then
  local first = size > 0 and call('ZRANGE', key, 0, 0)[1]
  local is_ours = not first or string.find(first, SHARED, 1, true) == 1 or string.find(first, RESERVED_FOR, 1, true) == 1
  if is_ours and (not first or call('PTTL', key) >= 0) then
    time = time or call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local till = string.format('%.0f', now + ttl + 1)
    -- First, because a server that is out of memory refuses it.
    local added = pcall_redis('ZADD', key, 'GT', till, SHARED .. token)
    if type(added) == 'number' then
      if first then
        pcall_redis('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
        till = string.format('%.0f', tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]))
      end
      if pcall_redis('PEXPIREAT', key, till) == 1 then answer = FREE else call('ZREM', key, SHARED .. token) end
    end
  end
end
