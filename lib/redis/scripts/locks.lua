-- The script of all requests about locks.
-- KEYS: none, so that a key which the user must not access fails only the request that it belongs to. On a cluster the
-- keys, by which their node is found.
-- ARGV: the name of the marker (empty without the guard), the `maxTtl` of the process, the name of the counters, and the
-- request: its name, with its parts in the further arguments, or a list as JSON.
-- Reply: an answer for each request, then `from` of the marker if one of them passed the gate.

local call, pcall_redis = redis.call, redis.pcall
local marker, max_ttl, counters, what = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- Read once, on first use.
local time
local is_first, wait, from, cause = false, nil, nil, nil
local given

-- Nearly every lock needs no more than this. It comes before any function is defined: each run of a script defines its
-- functions anew, which takes longer than the request itself.
if what == 'take' or what == 'join' then
  -- @include gate
  if wait > 0 then return { QUARANTINED .. ' ' .. string.format('%.0f', wait) } end
end
if what == 'take' then
  local key, token, ttl, queue, waiter, waited, reserve_for = unpack(ARGV, 5)
  local answer
  -- @include acquire-one
  if answer then return { answer, from } end
elseif what == 'give' then
  local key, token, queue = unpack(ARGV, 5)
  local answer
  -- @include release-one
  if answer then return { answer } end
elseif what == 'join' then
  local key, token, ttl, barrier = unpack(ARGV, 5)
  local answer
  -- @include acquire-shared-one
  if answer then return { answer, from } end
elseif what == 'part' then
  local key, token, queue = unpack(ARGV, 5)
  local answer
  -- @include release-shared-one
  if answer then return { answer } end
end

-- They give nothing: they delete what is the caller's own, or write what only refuses others.
-- Protocol 8.3
local ungated = {
  give = true,
  part = true,
  release = true,
  release_shared = true,
  leave = true,
  inspect = true,
  raise_barrier = true,
}

local function define_operations()
  local function clock()
    if not time then time = call('TIME') end
    return time
  end

  local function milliseconds()
    return clock()[1] * 1000 + math.floor(clock()[2] / 1000)
  end

  local function text(number)
    return string.format('%.0f', number)
  end

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
  -- @include shared
  return operations
end

-- An error of one request does not affect the others. The other operations are defined when a request needs the first
-- of them: to define them takes longer than a dozen usual requests.
local operations
local function general(name)
  operations = operations or define_operations()
  return operations[name]
end

local function take(key, token, ttl, queue, waiter, waited, reserve_for)
  local answer
  -- @include acquire-one
  return answer or general('acquire')({ key }, token, ttl, { queue }, waiter, waited, reserve_for)
end

local function give(key, token, queue)
  local answer
  -- @include release-one
  local was_given = given
  given = nil
  return answer or general('release')({ key }, token, '0', { queue }, was_given)
end

local function carry_out(name, ...)
  if not ungated[name] then
    -- @include gate
    if wait > 0 then return QUARANTINED .. ' ' .. string.format('%.0f', wait) end
  end
  local operation = name == 'take' and take or name == 'give' and give or general(name)
  return operation(...)
end

local answers = {}
local requests = string.sub(what, 1, 1) == '[' and cjson.decode(what) or { { what, unpack(ARGV, 5) } }
for _, request in ipairs(requests) do
  local done, answer = pcall(carry_out, unpack(request))
  -- Before Redis 7 an error is a text that begins with its place.
  if not done and type(answer) == 'string' then answer = { err = (string.gsub(answer, '^.-user_script: ?%d+: ', '')) } end
  answers[#answers + 1] = answer
end
answers[#answers + 1] = wait == 0 and from or nil
return answers
