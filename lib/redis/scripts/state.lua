-- Reads, opens and writes the state of a lock. A script of its own, which compares run and history each time: a state is
-- opened once in a lock, and not worth a place in the script of the locks. All names are in ARGV, as there.
-- ARGV: as unpacked below. `run` and `replid` are those that the server must have (empty: not known), `marker` is empty
-- without a restart guard, `life` is in milliseconds.
-- Reply: the status, the time, the generation of the data, whether it is the first one, and the entry, or in its place the
-- larger ballot because of which it refuses.
-- Protocol 10.4, 10.5 and 10.7
local call = redis.call
local op, marker, run, replid, expected, name, key, token, life, number, id, sequence, json = unpack(ARGV)
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function text(value)
  return string.format('%.0f', value)
end

local function identity(section, pattern)
  local info = redis.pcall('INFO', section)
  return type(info) == 'string' and string.match(info, pattern) or ''
end

local generation, first = '', '1'
if marker ~= '' then
  local fields = call('HMGET', marker, 'generation', 'first')
  generation, first = fields[1] or '', fields[2] or ''
  if op ~= 'read-state' then
    local is_expected = generation == expected and identity('server', 'run_id:(%w+)') == run
      and identity('replication', 'master_replid:(%w+)') == replid -- @mutant generation-not-compared
    if not is_expected then return { UNMARKED } end
  end
end

-- Larger, equal or smaller, as 1, 0 and -1.
local function compare(one, one_id, other, other_id)
  one, other = tonumber(one), tonumber(other)
  if one ~= other then return one > other and 1 or -1 end
  if one_id == other_id then return 0 end
  return one_id > other_id and 1 or -1
end

local entry = call('GET', name) or ''
local promised, promised_id = string.match(entry, '^(%d+) (%S+)')
local is_ours = string.match(entry, '^%d+ %S+$') or string.match(entry, '^%d+ %S+ %d+ %S+ %d+ %d+ %d+ %S*\n')
if entry ~= '' and not is_ours then return { FOREIGN_ENTRY } end
local stored = string.match(entry, '^%S+ %S+( .*)$')
if op == 'read-state' then return { FREE, text(now), generation, first, entry } end
if redis.pcall('GET', key) ~= token then return { NOT_THE_HOLDER } end -- @mutant any-holder-opens-the-state

if op == 'open-state' then
  if promised and compare(number, id, promised, promised_id) <= 0 then return { OUTBID, promised, promised_id } end -- @mutant smaller-ballots-open-the-state
  -- The promise outlives the value, whose time is over by its own times.
  if stored then life = math.max(life, string.match(stored, '^ %S+ %S+ %S+ %S+ (%S+)')) end
  call('SET', name, number .. ' ' .. id .. (stored or ''), 'PX', text(life)) -- @mutant ballots-not-promised
  return { FREE, text(now), generation, first, entry }
end

if promised and compare(number, id, promised, promised_id) < 0 then return { OUTBID, promised, promised_id } end -- @mutant smaller-ballots-write-the-state
if stored then
  local other, other_id, other_sequence = string.match(stored, '^ (%S+) (%S+) (%S+)')
  local order = compare(number, id, other, other_id)
  if order == 0 then order = compare(sequence, '', other_sequence, '') end
  -- The same request may arrive twice, and an earlier one of the same holder after a later one.
  if order < 0 then return { NOT_THE_HOLDER } end
  if order == 0 then return { FREE } end
end
local version = number .. ' ' .. id .. ' ' .. sequence
call('SET', name, number .. ' ' .. id .. ' ' .. version .. ' ' .. text(now) .. ' ' .. life .. ' ' .. generation .. '\n' .. json, 'PX', life)
return { FREE }
