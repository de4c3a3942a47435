-- Replaces the token of a holder. The remaining time is kept: the holder may have extended the lock while the operator was
-- asked.
-- KEYS: the key. ARGV: the token that the key must have, the value that replaces it.
-- Reply: the remaining milliseconds, or 0 if the key has another value or none.
-- Protocol 7.5
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return left
