-- Releases one key for which no process waits.
-- key, token, queue
-- Reply, in `answer`: FREE; nil where `release` takes over.
-- Protocol 7.1
if pcall_redis('GET', key) == token and pcall_redis('EXISTS', queue) == 0 then
  call('DEL', key)
  answer = FREE
end
