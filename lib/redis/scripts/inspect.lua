-- Says whether a key is held, and how many wait in the longest queue. Changes nothing.
-- keys, queues
-- Reply: FREE or HELD
function operations.inspect(keys, queues)
  local longest, _, owner = refusals(keys, {})
  if not longest then return FREE end
  local waiting = 0
  for _, queue in ipairs(queues) do
    local length = pcall_redis('ZCARD', queue)
    if type(length) == 'number' then waiting = math.max(waiting, length) end
  end
  return refusal(longest, owner, text(waiting))
end
