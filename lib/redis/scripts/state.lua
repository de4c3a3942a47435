-- Reads, opens and writes the state of a lock. A script of its own: a state is opened once in a lock, too rarely for the script
-- of the locks. All names are in ARGV, as there.
-- ARGV: as unpacked below. `marker` is empty without the restart guard, `expected` what the holder knows of it, `life` is in
-- milliseconds. A reading without a lock has no gate.
-- Reply: the status, `from` of the marker and the entry; or the status and the larger claim, or the rest of the wait.
-- Protocol 10.3 to 10.5
local call = redis.call
local op, marker, max_ttl, expected, name, key, token, life, number, sequence, json = unpack(ARGV)
local time
local is_first, wait, from, cause = false, nil, nil, nil

if op == 'read-state' then
  from = marker ~= '' and redis.pcall('HGET', marker, 'from')
else
  -- @include gate
  if wait > 0 then return { QUARANTINED, string.format('%.0f', wait) } end
  local is_expected = marker == '' or call('HGET', marker, 'run') .. '-' .. from == expected
  if not is_expected then return { OTHER_MARKER } end
end
from = type(from) == 'string' and from or ''

local entry = call('GET', name) or ''
local is_ours = string.match(entry, '^%d+$') or string.match(entry, '^%d+ %d+ %d+ %d+ %S*\n')
if entry ~= '' and not is_ours then return { FOREIGN_ENTRY } end
if op == 'read-state' then return { FREE, from, entry } end
if redis.pcall('GET', key) ~= token then return { NOT_THE_HOLDER } end -- @mutant any-holder-opens-the-state

local claim, stored = string.match(entry, '^(%d*)(.*)$')
local ahead = (tonumber(claim) or 0) - tonumber(number)
if op == 'open-state' then
  if ahead >= 0 then return { CLAIMED, claim } end -- @mutant smaller-claims-open-the-state
  -- The claim lasts as long as the value, which is kept for another period.
  local kept = math.max(life, string.match(stored, '^ %d+ %d+ (%d+)') or 0)
  call('SET', name, number .. stored, 'PX', string.format('%.0f', kept)) -- @mutant state-not-claimed
  return { FREE, from, entry }
end

if ahead > 0 then return { CLAIMED, claim } end -- @mutant smaller-claims-write-the-state
-- The same request may arrive twice, and an earlier one of the same holder after a later one.
local written, last = string.match(stored, '^ (%d+) (%d+)')
local later = tonumber(written) == tonumber(number) and last - sequence or -1
if later > 0 then return { NOT_THE_HOLDER } end -- @mutant earlier-writes-replace-the-state
if later < 0 then call('SET', name, table.concat({ number, number, sequence, life, from }, ' ') .. '\n' .. json, 'PX', life) end
return { FREE }
