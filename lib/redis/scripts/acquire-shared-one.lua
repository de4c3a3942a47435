-- Takes one key that others may share. Reads no member but the first, however many there are.
-- key, token, ttl, writer_key
-- Reply, in `answer`: FREE; nil where `acquire` takes over.
-- Protocol 11.2
local size = pcall_redis('EXISTS', key, writer_key)
-- Of two names, usually none exists.
if type(size) == 'number' and size > 0 then size = call('EXISTS', writer_key) == 0 and pcall_redis('ZCARD', key) end
if type(size) == 'number' and size < MAX_SHARED_HOLDERS then
  local first = size > 0 and call('ZRANGE', key, 0, 0)[1]
  if not first or (is_member(first) and call('PTTL', key) >= 0) then
    local till = milliseconds() + ttl + 1
    -- First, because a server that is out of memory refuses it.
    if type(pcall_redis('ZADD', key, 'GT', text(till), SHARED .. token)) == 'number' then
      if first then
        pcall_redis('ZREMRANGEBYSCORE', key, '-inf', text(milliseconds()))
        till = tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
      end
      if pcall_redis('PEXPIREAT', key, text(till)) == 1 then answer = FREE else call('ZREM', key, SHARED .. token) end
    end
  end
end
