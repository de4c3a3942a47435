-- Reads what keys hold, and who is refused because of it; writes the sets of shared keys.

-- Answers the string of a key, or what is in its set. Anything else is no lock: the third result is then the error of the
-- server (WRONGTYPE). A shared key may have no members left, because the time of a server may lag behind the expiry of its
-- keys.
-- Protocol 2.2
local function look(key)
  local value = pcall_redis('GET', key)
  if type(value) ~= 'table' then return value end
  local members = pcall_redis('ZRANGE', key, 0, -1, 'WITHSCORES')
  if not is_member(members[1] or '') or call('PTTL', key) < 0 then return nil, nil, value end
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

-- For how long a writer that came before that defers a shared request, and that writer; nil if none does.
-- Protocol 11.6
local function deferral(writer_key, since)
  local value = pcall_redis('GET', writer_key)
  local arrived, writer = string.match(type(value) == 'string' and value or '', '^(%-?%d+) (.*)$')
  local is_later = arrived and tonumber(arrived) <= since -- @mutant writer-key-not-looked-at
  if is_later then return call('PTTL', writer_key), writer end
end

-- For how long a key refuses a request, and because of whom: a token, or the number of shared holders; nil if it does not.
-- The request: token, waiter, is_shared; to share anew, also writer_keys and since.
-- Protocol 4.2, 11.2 and 11.3
local function refused(key, request, i)
  local value, shared, trouble = look(key)
  if trouble then error(trouble) end
  local reservation = request.waiter and RESERVED_FOR .. request.waiter
  local is_ours = value == reservation or (value == request.token and not request.is_shared)
  if value then return not is_ours and call('PTTL', key), value end -- @mutant shared-beside-an-exclusive-holder, shared-extension-over-a-string
  if not request.is_shared then return shared and shared.till - milliseconds(), shared and shared.holders end -- @mutant exclusive-beside-shared-holders, extension-over-shared-holders
  if not request.since or (shared and shared.ends[SHARED .. request.token]) then return nil end
  local left = deferral(request.writer_keys[i], request.since)
  local size = shared and shared.size or 0
  if reservation and shared and shared.ends[reservation] then size = size - 1 end
  if not left and size < MAX_SHARED_HOLDERS then return nil end
  if shared and (shared.holders > 0 or not left) then left = shared.till - milliseconds() end
  return left, shared and shared.holders
end

-- `longest` is nil for none.
local function longer(longest, left)
  if not longest or left == ENDLESS or (longest ~= ENDLESS and left > longest) then return left end
  return longest
end

-- Every operation reads before it writes, because a script that fails half-way is not rolled back.
local function refusals(keys, request)
  local longest, held, owner = nil, {}, nil
  for i, key in ipairs(keys) do
    local left, by = refused(key, request, i)
    if left then
      if not longest then owner = by end
      longest = longer(longest, left)
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

-- Answers the error of the server, if any. A set that does not expire would be taken for the data of another program: a
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

-- A string is the reservation of an exclusive waiter of the same process. The new member comes before any other write: a
-- server that is out of memory refuses it only then.
local function share(key, token, ttl, waiter)
  if type(pcall_redis('GET', key)) == 'string' then call('DEL', key) end
  put(key, SHARED .. token, milliseconds() + ttl + 1)
  if waiter and call('ZREM', key, RESERVED_FOR .. waiter) == 1 then settle(key) end
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
