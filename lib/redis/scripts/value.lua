-- KEYS: the key. Reply: its value and its remaining milliseconds, or nothing if it is free.
local value = redis.call('GET', KEYS[1])
return value and { value, redis.call('PTTL', KEYS[1]) }
