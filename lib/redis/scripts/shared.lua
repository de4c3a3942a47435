-- The operations of shared locks.

-- A barrier is a sorted set: each member is the moment at which a process arrived and its name, its score the moment
-- until which it stands there. It defers shared requests of processes that are not older.
-- Protocol 11.6
function operations.raise_barrier(barriers, waiter, waited)
  local now = milliseconds()
  for _, barrier in ipairs(barriers) do
    for _, entry in ipairs(pcall_redis('ZRANGE', barrier, 0, -1)) do
      if string.match(entry, '^%-?%d+ (.*)$') == waiter then call('ZREM', barrier, entry) end
    end
    if waited then
      put(barrier, text(now - waited) .. ' ' .. waiter, now + BARRIER_LIFE)
    else
      local trouble = settle(barrier)
      if trouble then error(trouble) end
    end
  end
  return FREE
end

-- A new member comes before any other write: a server that is out of memory refuses it only then. The member of an
-- extension that is still there comes after another write, so that it can always be extended.
-- Protocol 11.2, 11.3 and 11.4

-- How long a key refuses the holder, and because of whom; nil if it does not.
local function refused(key, token, barrier, waiter, since)
  local value, shared, trouble = look(key)
  if trouble then error(trouble) end
  local reservation = waiter and RESERVED_FOR .. waiter
  if value then
    if value == reservation then return nil end -- @mutant shared-beside-an-exclusive-holder
    return call('PTTL', key), value
  end
  if shared and shared.ends[SHARED .. token] then return nil end
  local till = deferred_till(barrier, waiter, since)
  local size = shared and shared.size or 0
  if waiter and shared and shared.ends[reservation] then size = size - 1 end
  if not till and size < MAX_SHARED_HOLDERS then return nil end
  if shared and (shared.holders > 0 or not till) then till = shared.till end
  return till - milliseconds(), shared and shared.holders
end

-- A string is the reservation of an exclusive waiter of the same process.
local function enter(key, token, ttl, waiter)
  local value, shared = look(key)
  if value then call('DEL', key) end
  put(key, SHARED .. token, milliseconds() + ttl + 1)
  if waiter and shared and shared.ends[RESERVED_FOR .. waiter] then
    call('ZREM', key, RESERVED_FOR .. waiter)
    settle(key)
  end
end

-- The processes behind this one in the queue may have the key, too.
function operations.acquire_shared(keys, token, ttl, barriers, waited, queues, waiter, reserve_for)
  local since = milliseconds() - waited
  local longest, held, owner = nil, {}, nil
  for i, key in ipairs(keys) do
    local left, by = refused(key, token, barriers[i], waiter, since)
    if left then
      if not longest then owner = by end
      longest = longer(longest, left)
      held[i] = true
    end
  end
  if longest then
    if waiter then
      local place = { queues = queues, waiter = waiter, waited = waited, reserve_for = reserve_for, is_shared = true }
      queue_up(keys, held, place)
      -- The older request may sleep: its reservation has ended, and no release follows.
      for i, key in ipairs(keys) do
        if held[i] and call('EXISTS', key) == 0 then wake(key, queues[i]) end
      end
    end
    return refusal(longest, owner)
  end
  for _, key in ipairs(keys) do enter(key, token, tonumber(ttl), waiter) end
  if not waiter then return FREE end
  local contended = leave_queues(queues, SHARED .. waiter)
  for i, key in ipairs(keys) do wake(key, queues[i]) end -- @mutant wake-chain-broken-1
  return contended and FREE_WITH_WAITERS or FREE
end

function operations.extend_shared(keys, token, ttl, heals)
  local till, member = milliseconds() + ttl + 1, SHARED .. token
  local longest, present, owner = nil, {}, nil
  for i, key in ipairs(keys) do
    local value, shared, trouble = look(key)
    if trouble then error(trouble) end
    if value then
      longest = longer(longest, call('PTTL', key))
      owner = owner or value
    end
    present[i] = shared and shared.ends[member] ~= nil
  end
  if longest then return refusal(longest, owner) end -- @mutant shared-extension-over-a-string
  local status = FREE
  for i, key in ipairs(keys) do
    if not present[i] then
      if heals == 1 then put(key, member, till) else status = GONE end
    end
  end
  for i, key in ipairs(keys) do
    if present[i] then
      call('PEXPIREAT', key, text(till), 'GT')
      put(key, member, till)
    end
  end
  return status
end

function operations.release_shared(keys, token, queues)
  local trouble, other
  local longest, is_gone, contended = nil, false, false
  for i, key in ipairs(keys) do
    local value, shared, problem = look(key)
    if problem then
      trouble = problem
    elseif value and string.find(value, RESERVED_FOR, 1, true) == 1 then
      is_gone, contended = true, true
    elseif value then
      longest = longer(longest, call('PTTL', key))
      other = other or value
    else
      if not shared or not shared.ends[SHARED .. token] then is_gone = true end
      if shared then
        call('ZREM', key, SHARED .. token) -- @mutant shared-key-deleted
        settle(key)
      end
      if wake(key, queues[i]) then contended = true end
    end
  end
  return trouble or (other and refusal(longest, other)) or released(is_gone, contended)
end

function operations.join(key, token, ttl, barrier, waited)
  local answer
  -- @include acquire-shared-one
  return answer or operations.acquire_shared({ key }, token, ttl, { barrier }, waited)
end

function operations.part(key, token, queue)
  local answer
  -- @include release-shared-one
  return answer or operations.release_shared({ key }, token, { queue })
end
