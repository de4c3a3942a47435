-- The script of all requests about locks.
-- KEYS: none, so that a key which the user must not access fails only the request that it belongs to. On a cluster the
-- keys, by which their node is found.
-- ARGV: the name of the marker (empty without the guard), the `maxTtl` of the process, the name of the counters, and the
-- request: its name, with its parts in the further arguments, or a list as JSON.
-- Reply: an answer for each request, then `from` of the marker if one of them passed the gate. If all answers are FREE, as
-- they mostly are, ALL_FREE with `from` in one text: a client spends more on a list than on all else.

local call, pcall_redis = redis.call, redis.pcall
local marker, max_ttl, counters, what = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- Read once, on first use.
local time
local is_first, wait, from, cause = false, nil, nil, nil

local function clock()
  time = time or call('TIME')
  return time
end

local function milliseconds()
  return clock()[1] * 1000 + math.floor(clock()[2] / 1000)
end

-- Lua's default format loses digits.
local function text(number)
  return string.format('%.0f', number)
end

-- Of the set of a shared key.
local function is_member(member)
  return string.find(member, SHARED, 1, true) == 1 or string.find(member, RESERVED_FOR, 1, true) == 1
end

-- Nearly every lock needs no more than this. It comes before most functions are defined: each run of a script defines its
-- functions anew, which takes longer than such a request.
local answer
if what == 'take' or what == 'join' then
  -- @include gate
  if wait > 0 then return { QUARANTINED .. ' ' .. text(wait) } end
end
if what == 'take' then
  local key, token, ttl, queue, waiter, waited, reserve_for = unpack(ARGV, 5)
  -- @include acquire-one
elseif what == 'give' then
  local key, token, queue = unpack(ARGV, 5)
  -- @include release-one
elseif what == 'join' then
  local key, token, ttl, writer_key = unpack(ARGV, 5)
  -- @include acquire-shared-one
elseif what == 'part' then
  local key, token, queue = unpack(ARGV, 5)
  -- @include release-shared-one
end
if answer == FREE then return ALL_FREE .. (from or '') end
if answer then return { answer, from } end

-- They give nothing: they delete what is the caller's own, or write what only refuses others.
-- Protocol 8.3
local ungated = { give = true, part = true, release = true, leave = true, inspect = true, defer_readers = true }

local function define_operations()
  -- @include contents
  -- @include wake
  local operations = {}
  -- @include acquire
  -- @include extend
  -- @include draw
  -- @include release
  -- @include leave
  -- @include inspect
  -- @include probe
  -- @include pick
  -- @include defer-readers
  return operations
end

-- Defined when a request needs the first of them: to define them takes longer than a dozen usual requests.
local operations
local function general(name)
  operations = operations or define_operations()
  return operations[name]
end

local function carry_out(name, ...)
  if not ungated[name] then
    -- @include gate
    if wait > 0 then return QUARANTINED .. ' ' .. text(wait) end
  end
  local answer
  local key, token, ttl, queue, waiter, waited, reserve_for = ...
  if name == 'take' then
    -- @include acquire-one
    return answer or general('acquire')({ key }, token, ttl, false, waited, { queue }, waiter, reserve_for)
  elseif name == 'join' then
    local _, _, _, writer_key, waited = ...
    return general('acquire')({ key }, token, ttl, { writer_key }, waited)
  elseif name == 'give' or name == 'part' then
    local _, _, queue = ...
    if name == 'give' then
      -- @include release-one
    end
    return answer or general('release')({ key }, token, '0', { queue }, name == 'part' and 1)
  end
  return general(name)(...)
end

local answers, free = {}, 0
local requests = string.sub(what, 1, 1) == '[' and cjson.decode(what) or { { what, unpack(ARGV, 5) } }
for _, request in ipairs(requests) do
  -- An error of one request does not affect the others.
  local done, answer = pcall(carry_out, unpack(request))
  -- Before Redis 7 an error is a text that begins with its line.
  if not done and type(answer) == 'string' then answer = { err = (string.gsub(answer, '^.-user_script: ?%d+: ', '')) } end
  answers[#answers + 1] = answer
  if answer == FREE then free = free + 1 end
end
if wait ~= 0 then from = nil end
if free == #requests then return ALL_FREE .. (from or '') end
answers[#answers + 1] = from
return answers
