-- Raises the counters of keys that the token holds: the first time larger than they are and than the clock, so that a server
-- that has lost them goes on above them; then only as large as the others say.
-- keys, token, fields: of the counters, at_least, step: 1 the first time, 0 afterwards
-- Reply: DRAWN or NOT_THE_HOLDER
-- Protocol 9.1, 9.4 and 9.6
local function draw(fields, at_least, step)
  local drawn = at_least
  if step == 1 then
    local microseconds = clock()[1] * 1000000 + clock()[2]
    if microseconds > LATEST_CLOCK then error({ err = 'CLOCK its clock shows a time beyond the year 2200' }) end
    drawn = math.max(drawn, microseconds) -- @mutant floor-ignored
  end
  for _, field in ipairs(fields) do
    drawn = math.max(drawn, tonumber(call('HGET', counters, field) or 0) + step)
  end
  drawn = text(drawn)
  for _, field in ipairs(fields) do call('HSET', counters, field, drawn) end
  return drawn
end

function operations.draw(keys, token, fields, at_least, step)
  for _, key in ipairs(keys) do
    local owner, _, trouble = look(key)
    if trouble then error(trouble) end
    if owner ~= token then return NOT_THE_HOLDER end -- @mutant draw-for-any-holder
  end
  return DRAWN .. ' ' .. draw(fields, at_least, step)
end
