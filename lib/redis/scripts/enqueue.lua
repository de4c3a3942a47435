-- Puts a member into a queue, where it keeps the age that it has there.
local known = pcall_redis('ZSCORE', queue, member)
local since = type(known) == 'string' and math.floor(known) or milliseconds() - waited
pcall_redis('ZADD', queue, string.format('%.10f', since + reserve_for / RESERVATION_SCALE), member)
pcall_redis('PEXPIRE', queue, QUEUE_LIFE)
