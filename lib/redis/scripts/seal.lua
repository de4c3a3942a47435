-- Writes the seal of a partition. The end of the wait is computed here: a script that arrives late must not shorten it.
-- KEYS: the seal. ARGV: the run and the history that the process must have, the node and the config epoch that it must
-- claim (empty where the service does not report them), the nonce that the seal must have (empty: none), the
-- milliseconds to wait, and the fields to set.
-- Reply: 1, or 0 if the process, its claim or the seal is another one.
-- Protocol 12.6
local function identity(section, pattern)
  return string.match(redis.call('INFO', section), pattern) or ''
end
if identity('server', 'run_id:(%w+)') ~= ARGV[1] then return 0 end
if identity('replication', 'master_replid:(%w+)') ~= ARGV[2] then return 0 end
if identity('replication', 'role:(%w+)') == 'slave' then return 0 end
if ARGV[3] ~= '' then
  if redis.call('CLUSTER', 'MYID') ~= ARGV[3] then return 0 end
  if string.match(redis.call('CLUSTER', 'INFO'), 'cluster_my_epoch:(%d+)') ~= ARGV[4] then return 0 end
end
if (redis.call('HGET', KEYS[1], 'nonce') or '') ~= ARGV[5] then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'replid', ARGV[2], 'owner', ARGV[3], 'epoch', ARGV[4], unpack(ARGV, 7))
redis.call('HSET', KEYS[1], 'at', string.format('%.0f', now), 'from', string.format('%.0f', now + ARGV[6]))
return 1
