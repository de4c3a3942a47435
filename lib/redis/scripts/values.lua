-- KEYS: the keys. Reply: their values. A key that is free or has another type has none.
return redis.call('MGET', unpack(KEYS))
