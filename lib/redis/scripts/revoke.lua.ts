// KEYS: the key. ARGV: the token that the key must have, the value that replaces it. The remaining time is kept and
// returned: the holder may have extended the lock while the operator was asked.
// Protocol 7.5
export const REVOKE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return left`;

// KEYS: the keys. A key that is free or has another type has no value.
export const VALUES = `return redis.call('MGET', unpack(KEYS))`;

// KEYS: the key. Returns its value and its remaining milliseconds, or nothing if it is free.
export const READ = `
local value = redis.call('GET', KEYS[1])
return value and { value, redis.call('PTTL', KEYS[1]) }`;
