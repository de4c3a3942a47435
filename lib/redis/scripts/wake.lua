-- Queues and reservations: which processes wait, and which is woken. pcall, because locks must not depend on whatever is wrong with a
-- queue (another type, no permission).
-- Protocol 5.4, 11.5 and 11.7

local function member_of(waiter, is_shared)
  return is_shared and SHARED .. waiter or waiter
end

-- Answers whether there was one.
local function drop_reservation(key, waiter, is_shared)
  local reservation = RESERVED_FOR .. waiter
  if not is_shared then return pcall_redis('GET', key) == reservation and call('DEL', key) == 1 end
  local _, shared = look(key)
  if not shared or not shared.ends[reservation] then return false end
  call('ZREM', key, reservation)
  settle(key)
  return true
end

-- Reserves a key and notifies the waiter; answers whether it listens. A string that is kept for a while after its release is
-- not reserved for a shared waiter: it asks when it ends, as it then knows.
local function offer(key, waiter, life, is_shared, is_kept)
  local reservation = RESERVED_FOR .. waiter
  if is_shared and not is_kept then
    pcall(put, key, reservation, milliseconds() + life)
  elseif not is_shared and call('EXISTS', key) == 0 then
    pcall_redis('SET', key, reservation, 'PX', life)
  end
  -- @include notify
  if not is_heard then drop_reservation(key, waiter, is_shared) end
  return is_heard
end

-- The member of a queue that is next, its score, and the waiter in it if it waits for a shared key. False if those before it
-- have been notified; nil if the queue is empty. A writer may precede the head by its key and follow it in the queue, because
-- each request of a waiter measures its age anew.
local function next_in(queue)
  local first = pcall_redis('ZRANGE', queue, 0, 0, 'WITHSCORES')
  local head, since = first[1], tonumber(first[2])
  local reader = head and string.match(head, '^' .. SHARED .. '(.*)$')
  local _, writer
  if reader then
    _, writer = deferral(queue .. WRITER, since)
  end
  if not writer then return head, since, reader end
  local score = pcall_redis('ZSCORE', queue, writer)
  if type(score) ~= 'string' then return false end
  return writer, tonumber(score)
end

-- Shared waiters follow one another until one waits for an exclusive key. A dead waiter does not listen, and is skipped.
-- Answers whether processes wait.
local function wake(key, queue)
  local value, shared, trouble = look(key)
  if trouble then return false end
  local members, is_heard = shared and shared.size or 0, false
  -- So many are skipped at most.
  for _ = 1, 100 do
    local head, score, reader = next_in(queue)
    if head == nil then return is_heard end
    if not head or members >= (reader and MAX_SHARED_HOLDERS or 1) then return true end
    if pcall_redis('ZREM', queue, head) ~= 1 then return is_heard end
    if offer(key, reader or head, math.floor(score % 1 * RESERVATION_SCALE), reader, value) then
      if not reader then return true end
      is_heard = true -- @mutant wake-chain-broken-2
      members = members + 1
    end
  end
  return is_heard
end

-- The reservation of a waiter is of no use while it is deferred, or another key is held.
local function queue_up(keys, held, ticket)
  local waiter, is_shared, waited, reserve_for = ticket.waiter, ticket.is_shared, ticket.waited, ticket.reserve_for
  for i, key in ipairs(keys) do
    local queue, member = ticket.queues[i], member_of(waiter, is_shared)
    local was_reserved = (is_shared or not held[i]) and drop_reservation(key, waiter, is_shared)
    if held[i] then
      -- @include enqueue
    end
    -- The older request, for which a shared one is deferred at a free key, may sleep: its reservation has ended, and no
    -- release follows.
    local is_free = held[i] and is_shared and call('EXISTS', key) == 0
    if is_free or (was_reserved and not held[i]) then wake(key, queue) end
  end
end

-- Answers whether others wait.
local function leave_queues(queues, member)
  local contended = false
  for _, queue in ipairs(queues) do
    pcall_redis('ZREM', queue, member)
    if call('EXISTS', queue) == 1 then contended = true end
  end
  return contended
end
