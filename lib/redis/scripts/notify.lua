-- Sets `is_heard`: whether the waiter has heard that it may have the key. PUBLISH also counts clients that subscribe to a
-- pattern, such as a monitor: the number of subscribers of exactly this channel decides. Without the permission to read
-- it, `[2]` of the error is nil.
-- Protocol 5.4
local heard = pcall_redis('PUBLISH', waiter, key)
local is_heard = type(heard) == 'number' and heard > 0 and pcall_redis('PUBSUB', 'NUMSUB', waiter)[2] ~= 0
