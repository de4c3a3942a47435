-- Takes one of the keys: that of the token, one that is reserved for the waiter, or the first free one.
-- keys, token, ttl; queues: the first is that of all keys, waiter, waited, reserve_for: absent as in an acquisition
-- Reply: PICKED or HELD
-- Protocol 11.10 and 11.11

-- A key of another type has no value here, but exists. If all keys are held, those that are only reserved count only if
-- all are: a reservation ends within a moment, and not for this waiter.
local function soonest_hold(keys, values)
  local soonest, owner, is_reserved = math.huge, nil, true
  for i, key in ipairs(keys) do
    local value = values[i]
    if value then
      local reserved = string.find(value, RESERVED_FOR, 1, true) == 1
      local left = call('PTTL', key)
      if left == ENDLESS then left = math.huge end
      if not owner or (is_reserved and not reserved) or (is_reserved == reserved and left < soonest) then
        soonest, owner, is_reserved = left, value, reserved
      end
    end
  end
  return soonest == math.huge and ENDLESS or soonest, owner
end

function operations.pick(keys, token, ttl, queues, waiter, waited, reserve_for)
  local values = call('MGET', unpack(keys))
  local own, reserved
  for i in ipairs(keys) do
    if values[i] == token then own = own or i end
    if waiter and values[i] == RESERVED_FOR .. waiter then reserved = reserved or i end
  end
  local picked = own or reserved
  for i, key in ipairs(keys) do
    if picked then break end
    if not values[i] and call('EXISTS', key) == 0 then picked = i end
  end
  if picked then
    hold(keys[picked], token, ttl)
    local contended = waiter and leave_queues({ queues[1] }, waiter)
    return PICKED .. ' ' .. text(picked - 1) .. (contended and '!' or '')
  end
  if waiter then
    queue_up({ keys[1] }, { true }, { queues = queues, waiter = waiter, waited = waited, reserve_for = reserve_for })
  end
  return refusal(soonest_hold(keys, values))
end
