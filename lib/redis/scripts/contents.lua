-- Reads what keys hold, and keeps the sorted sets of shared keys in order.

-- Anything but a string or members is no lock: the third result is then the error of the server (WRONGTYPE). A shared
-- key may have no members left, because the time of a server may lag behind the expiry of its keys.
-- Protocol 2.2
local function look(key)
  local value = pcall_redis('GET', key)
  if type(value) ~= 'table' then return value end
  local members = pcall_redis('ZRANGE', key, 0, -1, 'WITHSCORES')
  local first = members[1] or ''
  local is_ours = string.find(first, SHARED, 1, true) == 1 or string.find(first, RESERVED_FOR, 1, true) == 1
  if not is_ours or call('PTTL', key) < 0 then return nil, nil, value end
  local now = milliseconds()
  local shared = { ends = {}, size = 0, holders = 0, till = now }
  for i = 1, #members, 2 do
    local member, till = members[i], tonumber(members[i + 1])
    if till > now then
      local is_holder = string.find(member, SHARED, 1, true) == 1
      if is_holder then shared.holders = shared.holders + 1 end
      if is_holder or shared.holders == 0 then shared.till = till end
      shared.ends[member] = till
      shared.size = shared.size + 1
    end
  end
  return nil, shared
end

-- Returns the error of the server, if any. A set that does not expire would be taken for the data of another program: a
-- member that is put into a set whose expiry cannot be set is removed again.
-- Protocol 11.1
local function settle(key)
  local removed = pcall_redis('ZREMRANGEBYSCORE', key, '-inf', text(milliseconds()))
  if type(removed) == 'table' then return removed end
  local last = pcall_redis('ZRANGE', key, -1, -1, 'WITHSCORES')
  if last.err then return last end
  local moved = last[2] and pcall_redis('PEXPIREAT', key, text(tonumber(last[2]))) -- @mutant shared-key-expiry-only-grows
  if type(moved) == 'table' then return moved end
end

-- Never to an earlier end.
local function put(key, member, till)
  call('ZADD', key, 'GT', text(till), member)
  local trouble = settle(key)
  if trouble then
    call('ZREM', key, member)
    error(trouble)
  end
end

-- `longest` is nil for none.
local function longer(longest, left)
  if not longest or left == ENDLESS or (longest ~= ENDLESS and left > longest) then return left end
  return longest
end

-- Every operation reads before it writes, because a script that fails half-way is not rolled back. GET and not just
-- PTTL, so that a key of another type is reported as such (WRONGTYPE).
local function longest_hold(keys, token, reserved)
  local longest, held, owner = nil, {}, nil
  for i, key in ipairs(keys) do
    local value, shared, trouble = look(key)
    if trouble then error(trouble) end
    if shared or (value and value ~= token and value ~= reserved) then
      longest = longer(longest, shared and shared.till - milliseconds() or call('PTTL', key))
      owner = owner or (shared and shared.holders) or value
      held[i] = true
    end
  end
  return longest, held, owner
end

local function refusal(longest, owner, waiting)
  local prefix = HELD .. ' ' .. text(longest) .. ' ' .. (waiting or '')
  if type(owner) == 'number' then return prefix .. '+' .. text(owner) end
  owner = owner or ''
  -- @include signature
  return prefix .. signature
end

local function released(is_gone, contended)
  if is_gone then return contended and GONE_WITH_WAITERS or GONE end
  return contended and FREE_WITH_WAITERS or FREE
end

-- Sets a key, or refreshes it. Requests may arrive late and in another order: none of them shortens what a later one was
-- granted.
-- Protocol 6.2
local function hold(key, token, ttl)
  if call('GET', key) == token then
    call('PEXPIRE', key, ttl, 'GT')
  else
    call('SET', key, token, 'PX', ttl)
  end
end
