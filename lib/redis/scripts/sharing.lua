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
function operations.acquire_shared(keys, token, ttl, barriers, waited, queues, waiter)
  if not is_marked() then return UNMARKED end
  local since = milliseconds() - waited
  local longest, held, owner = FREE, {}, nil
  for i, key in ipairs(keys) do
    local left, by = refused(key, token, barriers[i], waiter, since)
    if left then
      if longest == FREE then owner = by end
      if left == ENDLESS or (longest ~= ENDLESS and left > longest) then longest = left end
      held[i] = true
    end
  end
  if longest ~= FREE then
    if waiter then
      queue_up(keys, held, { queues = queues, waiter = waiter, waited = waited, is_shared = true })
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

function operations.extend_shared(keys, token, ttl)
  if not is_marked() then return UNMARKED end
  local till, member = milliseconds() + ttl + 1, SHARED .. token
  local longest, present, owner = FREE, {}, nil
  for i, key in ipairs(keys) do
    local value, shared, trouble = look(key)
    if trouble then error(trouble) end
    if value then
      local left = call('PTTL', key)
      if left == ENDLESS or (longest ~= ENDLESS and left > longest) then longest = left end
      owner = owner or value
    end
    present[i] = shared and shared.ends[member] ~= nil
  end
  if longest ~= FREE then return refusal(longest, owner) end -- @mutant shared-extension-over-a-string
  local status = FREE
  for i, key in ipairs(keys) do
    if not present[i] then
      put(key, member, till)
      status = EXTENDED_AFTER_HEAL
    end
  end
  for i, key in ipairs(keys) do
    if present[i] then
      call('PEXPIREAT', key, text(till))
      put(key, member, till)
    end
  end
  return status
end

function operations.release_shared(keys, token, queues)
  local trouble
  local contended = false
  for i, key in ipairs(keys) do
    local value, shared, problem = look(key)
    if problem then
      trouble = problem
    elseif value then
      if string.find(value, RESERVED_FOR, 1, true) == 1 then contended = true end
    else
      if shared then
        call('ZREM', key, SHARED .. token) -- @mutant shared-key-deleted
        settle(key)
      end
      if wake(key, queues[i]) then contended = true end
    end
  end
  return trouble or (contended and FREE_WITH_WAITERS) or FREE
end

function operations.join(key, token, ttl, barrier, waited)
  local answer
  -- @include join
  return answer or operations.acquire_shared({ key }, token, ttl, { barrier }, waited)
end

function operations.part(key, token, queue)
  local answer
  -- @include part
  return answer or operations.release_shared({ key }, token, { queue })
end
