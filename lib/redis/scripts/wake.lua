-- Queues and reservations. pcall, because locks must not depend on whatever is wrong with a queue (another type, no
-- permission). A key that is released is reserved for the waiter that is notified; a dead waiter does not listen, and is
-- skipped.
-- Protocol 5.4, 11.5 and 11.7
-- When the last entry of a barrier ends that precedes this waiter, and the waiters of these entries; nil if there is none.
local function deferred_till(barrier, waiter, since)
  local entries, till, others = pcall_redis('ZRANGE', barrier, 0, -1, 'WITHSCORES'), nil, {}
  for i = 1, #entries, 2 do
    local arrived, other = string.match(entries[i], '^(%-?%d+) (.*)$')
    local stays = tonumber(entries[i + 1])
    local precedes = arrived and stays > milliseconds() and other ~= waiter and tonumber(arrived) <= since -- @mutant barriers-not-looked-at
    if precedes then
      till = stays
      others[other] = true
    end
  end
  return till, others
end

local function offer(key, waiter, life)
  if call('EXISTS', key) == 0 then pcall_redis('SET', key, RESERVED_FOR .. waiter, 'PX', life) end
  -- @include notify
  if is_heard then return true end
  if pcall_redis('GET', key) == RESERVED_FOR .. waiter then call('DEL', key) end
  return false
end

-- A key with a string is kept for a while after its release: the waiter asks when it ends, as it then knows.
local function invite(key, waiter, life, is_kept)
  if not is_kept then pcall(put, key, RESERVED_FOR .. waiter, milliseconds() + life) end
  -- @include notify
  if is_heard then return true end
  if not is_kept then
    pcall_redis('ZREM', key, RESERVED_FOR .. waiter)
    settle(key)
  end
  return false
end

-- The member of a queue that is next, its score, and the waiter in it if it waits for a shared key. False if those before it have
-- been notified; nil if the queue is empty. Each request of a waiter measures its age anew, so a waiter that precedes
-- the head at the barrier may be behind it in the queue.
local function next_in(queue)
  local first = pcall_redis('ZRANGE', queue, 0, 0, 'WITHSCORES')
  local head, since = first[1], tonumber(first[2])
  local reader = head and string.match(head, '^' .. SHARED .. '(.*)$')
  if not reader then return head, since end
  local till, others = deferred_till(queue .. BARRIER, reader, since)
  if not till then return head, since, reader end
  local members = pcall_redis('ZRANGE', queue, 0, -1, 'WITHSCORES')
  for i = 1, #members, 2 do
    if others[members[i]] then return members[i], tonumber(members[i + 1]) end
  end
  return false
end

-- Shared waiters follow one another until one waits for an exclusive key. Returns whether processes wait.
local function wake(key, queue)
  local value, shared, trouble = look(key)
  if trouble then return false end
  local members, is_heard = shared and shared.size or 0, false
  -- So many dead waiters are skipped at most.
  for _ = 1, 100 do
    local head, score, reader = next_in(queue)
    if head == nil then return is_heard end
    if not head or members >= (reader and MAX_SHARED_HOLDERS or 1) then return true end
    if pcall_redis('ZREM', queue, head) ~= 1 then return is_heard end
    local life = math.floor(score % 1 * RESERVATION_SCALE)
    if not reader then
      if offer(key, head, life) then return true end
    elseif invite(key, reader, life, value) then
      is_heard = true -- @mutant wake-chain-broken-2
      members = members + 1
    end
  end
  return is_heard
end

local function member_of(waiter, is_shared)
  return is_shared and SHARED .. waiter or waiter
end

local function drop_reservation(key, waiter, is_shared)
  local reservation = RESERVED_FOR .. waiter
  if not is_shared then return pcall_redis('GET', key) == reservation and call('DEL', key) == 1 end
  local _, shared = look(key)
  if not shared or not shared.ends[reservation] then return false end
  call('ZREM', key, reservation)
  settle(key)
  return true
end

-- A waiter keeps the age that it has in the queue.
local function enqueue(queue, member, place)
  local known = pcall_redis('ZSCORE', queue, member)
  local since = type(known) == 'string' and math.floor(known) or milliseconds() - place.waited
  pcall_redis('ZADD', queue, string.format('%.10f', since + place.reserve_for / RESERVATION_SCALE), member)
  pcall_redis('PEXPIRE', queue, QUEUE_LIFE)
end

-- A waiter takes its place before it is refused. Its reservation is of no use while it is deferred, or another key is held.
local function queue_up(keys, held, place)
  for i, key in ipairs(keys) do
    local queue = place.queues[i]
    if held[i] then
      if place.is_shared then drop_reservation(key, place.waiter, true) end
      enqueue(queue, member_of(place.waiter, place.is_shared), place)
    elseif drop_reservation(key, place.waiter, place.is_shared) then
      wake(key, queue)
    end
  end
end

local function leave_queues(queues, member)
  local contended = false
  for _, queue in ipairs(queues) do
    pcall_redis('ZREM', queue, member)
    if call('EXISTS', queue) == 1 then contended = true end
  end
  return contended
end
