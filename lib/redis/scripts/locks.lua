-- The script of all requests about locks.
-- KEYS: none. A key that the user must not access then fails only the request that it belongs to. Only the nodes of a
-- cluster need KEYS, and those are refused.
-- ARGV: the name of the marker (empty without a guard), its nonce, the history (empty where it is not to be compared), the
-- name of the counters, and the request: its name, with its parts in the further arguments, or a list as JSON.
-- Reply: an answer for each request, then the reply to TIME if one of them needed it.

-- Most requests need no clock and many need no marker: both are read once, on first use.
local call, pcall_redis = redis.call, redis.pcall
local marker, nonce, history, counters, what = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local time, marked

-- Nearly every lock needs no more than this. It comes before any function is defined: each run of a script defines its
-- functions anew, which takes longer than the request itself.
if what == 'take' then
  local key, token, ttl, queue, waiter, waited = unpack(ARGV, 6)
  local answer
  -- @include take
  if answer then return { answer, time } end
elseif what == 'give' then
  local key, token, queue = unpack(ARGV, 6)
  local answer
  -- @include give
  if answer then return { answer } end
elseif what == 'join' then
  local key, token, ttl, barrier = unpack(ARGV, 6)
  local answer
  -- @include join
  if answer then return { answer, time } end
elseif what == 'part' then
  local key, token, queue = unpack(ARGV, 6)
  local answer
  -- @include part
  if answer then return { answer, time } end
end

local function define_operations()
  local function clock()
    if not time then time = call('TIME') end
    return time
  end

  local function is_marked()
    -- @include check-marker
    return marked
  end

  local function milliseconds()
    return clock()[1] * 1000 + math.floor(clock()[2] / 1000)
  end

  local function text(number)
    return string.format('%.0f', number)
  end

  -- @include contents
  -- @include waiting
  local operations = {}
  -- @include operations
  -- @include sharing
  -- @include permits
  return operations
end

-- An error of one request does not affect the others. The other operations are defined when a request needs the first
-- of them: to define them takes longer than a dozen usual requests.
local operations
local function general(name)
  operations = operations or define_operations()
  return operations[name]
end

local function take(key, token, ttl, queue, waiter, waited)
  local answer
  -- @include take
  return answer or general('acquire')({ key }, token, ttl, { queue }, waiter, waited)
end

local function give(key, token, queue)
  local answer
  -- @include give
  return answer or general('release')({ key }, token, '0', { queue })
end

local answers = {}
local first = string.sub(what, 1, 1)
local alone = first == '[' and cjson.decode(what) or { { what, unpack(ARGV, 6) } }
local groups = first == '{' and cjson.decode(what).groups or { { marker, nonce, history, counters, alone } }
for _, group in ipairs(groups) do
  local requests
  marker, nonce, history, counters, requests = unpack(group)
  marked = nil
  for _, request in ipairs(requests) do
    local name = request[1]
    local operation = name == 'take' and take or name == 'give' and give or general(name)
    local done, answer = pcall(operation, unpack(request, 2))
    -- Before Redis 7 an error is a text that begins with its place.
    if not done and type(answer) == 'string' then answer = { err = (string.gsub(answer, '^.-user_script: ?%d+: ', '')) } end
    answers[#answers + 1] = answer
  end
end
answers[#answers + 1] = time
return answers
