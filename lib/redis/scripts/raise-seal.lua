-- Raises the largest ttl of a seal.
-- KEYS: the seal. ARGV: its nonce, and the largest ttl that may be in use, in milliseconds. Reply: 0 if the nonce is
-- another one.
-- Protocol 12.6
if redis.call('HGET', KEYS[1], 'nonce') ~= ARGV[1] then return 0 end
if (tonumber(redis.call('HGET', KEYS[1], 'max')) or 0) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'max', ARGV[2])
end
return 1
