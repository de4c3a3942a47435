-- Releases one key on a node of a cluster. No waiter is notified: its queue may be on another node.
-- KEYS: the key. ARGV: the token of its holder, and for how many milliseconds the key is kept.
-- Protocol 7.4
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
  redis.pcall('ZREM', KEYS[1], SHARED .. ARGV[1])
elseif ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
