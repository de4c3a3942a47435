-- The operations of exclusive locks, and what guards share. The parameters are the parts of a request in the order of
-- `request-encoding.ts`.

-- The counters of a lock: larger than they are the first time, then only as large as the others say.
-- Protocol 9.1 and 9.6
local function draw(fields, at_least, step)
  local drawn = at_least
  for _, field in ipairs(fields) do
    drawn = math.max(drawn, tonumber(call('HGET', counters, field) or 0) + step)
  end
  drawn = text(drawn)
  for _, field in ipairs(fields) do call('HSET', counters, field, drawn) end
  return drawn
end

-- Each ttl in use is kept until a lock that was granted before the next announcement has ended. A ttl that is not used
-- any more is therefore forgotten.
-- Protocol 8.9
local function announce(ttl, lengthens, factor, known)
  local now, kept = milliseconds(), {}
  local mine = math.ceil(now + ttl * factor + ANNOUNCED_FOR)
  local known_before = tonumber(call('HGET', marker, 'known')) or 0
  if known > known_before then
    call('HSET', marker, 'known', text(known))
    known_before = known
  end
  if ttl == 0 then return known_before end
  for other, till in string.gmatch(call('HGET', marker, 'ttls') or '', '(%d+):(%d+)') do
    other, till = tonumber(other), tonumber(till)
    if till > now then
      if other > ttl or till > mine then kept[#kept + 1] = { other, till } end
    end
  end
  kept[#kept + 1] = { ttl, mine }
  table.sort(kept, function(one, other) return one[1] > other[1] end)
  while #kept > MAX_ANNOUNCED do
    local smallest = table.remove(kept)
    kept[#kept][2] = math.max(kept[#kept][2], smallest[2])
  end
  for i, pair in ipairs(kept) do kept[i] = text(pair[1]) .. ':' .. text(pair[2]) end
  call('HSET', marker, 'ttls', table.concat(kept, ' '))
  local wait = call('HMGET', marker, 'from', 'at')
  local from, longer = tonumber(wait[1]) or 0, (tonumber(wait[2]) or 0) + math.ceil(ttl * factor) + EXPIRY_RESOLUTION
  if lengthens == 1 and from > now and longer > from then call('HSET', marker, 'from', text(longer)) end
  return known_before
end

-- Protocol 4.2 and 7.1
function operations.acquire(keys, token, ttl, queues, waiter, waited)
  if not is_marked() then return UNMARKED end
  local longest, held, owner = longest_hold(keys, token, waiter and RESERVED_FOR .. waiter) -- @mutant exclusive-beside-shared-holders
  if longest ~= FREE then
    if waiter then queue_up(keys, held, { queues = queues, waiter = waiter, waited = waited }) end
    return refusal(longest, owner)
  end
  if marker ~= '' then clock() end
  for _, key in ipairs(keys) do call('SET', key, token, 'PX', ttl) end
  return waiter and leave_queues(queues, waiter) and FREE_WITH_WAITERS or FREE
end

-- Sets the absent keys first: if there is no memory for them, the others are not refreshed either. EXISTS and not SET NX,
-- which a server that is out of memory refuses even where it would do nothing.
-- Protocol 6.2
function operations.extend(keys, token, ttl)
  if not is_marked() then return UNMARKED end
  if marker ~= '' then clock() end
  local longest, _, owner = longest_hold(keys, token) -- @mutant extension-without-owner-check, extension-over-shared-holders
  if longest ~= FREE then return refusal(longest, owner) end
  local status = FREE
  for _, key in ipairs(keys) do
    if call('EXISTS', key) == 0 then
      call('SET', key, token, 'PX', ttl)
      status = EXTENDED_AFTER_HEAL
    end
  end
  for _, key in ipairs(keys) do call('PEXPIRE', key, ttl) end
  return status
end

function operations.draw(keys, token, fields, at_least, step)
  if not is_marked() then return UNMARKED end
  for _, key in ipairs(keys) do
    local owner, _, trouble = look(key)
    if trouble then error(trouble) end
    if owner ~= token then return NOT_THE_HOLDER end -- @mutant draw-for-any-holder
  end
  return FREE .. ' ' .. draw(fields, at_least, step)
end

function operations.beat(_, ttl, lengthens, factor, known)
  if not is_marked() then return UNMARKED end
  clock()
  return FREE .. ' ' .. text(announce(ttl, lengthens, factor, known))
end

-- One key that is no lock must not keep the others from being released.
-- Protocol 7.1 and 7.4
function operations.release(keys, token, keep_for, queues)
  local trouble
  local contended = false
  for i, key in ipairs(keys) do
    local owner, shared, problem = look(key)
    trouble = problem or trouble
    if shared or problem then
      -- Nothing here is the holder's.
    elseif owner == token or not owner then -- @mutant unconditional-delete
      if owner and keep_for == '0' then call('DEL', key) end
      if owner and keep_for ~= '0' then call('PEXPIRE', key, keep_for) end
      if wake(key, queues[i]) then contended = true end
    elseif string.find(owner, RESERVED_FOR, 1, true) == 1 then
      contended = true
    end
  end
  return trouble or (contended and FREE_WITH_WAITERS) or FREE
end

-- Those behind it may be able to take the key, even if it had no reservation. The place of a process whose next waiter
-- takes it over is empty at no moment: that waiter could be passed by others that have come later.
function operations.leave(keys, waiter, queues, is_shared, next_waited)
  is_shared = is_shared == 1
  for i, key in ipairs(keys) do
    local member = member_of(waiter, is_shared)
    if next_waited then enqueue(queues[i], member, next_waited) else pcall_redis('ZREM', queues[i], member) end
    drop_reservation(key, waiter, is_shared)
    if type(pcall_redis('GET', key)) ~= 'string' then wake(key, queues[i]) end
  end
  return FREE
end

function operations.inspect(keys, queues)
  local longest, _, owner = longest_hold(keys)
  if longest == FREE then return longest end
  local waiting = 0
  for _, queue in ipairs(queues) do
    local length = pcall_redis('ZCARD', queue)
    if type(length) == 'number' then waiting = math.max(waiting, length) end
  end
  return refusal(longest, owner, text(waiting))
end

function operations.probe(keys)
  if not is_marked() then return UNMARKED end
  for _, key in ipairs(keys) do
    -- In case the deletion fails.
    call('SET', key, '', 'PX', 1000)
    call('DEL', key)
  end
  return FREE
end
