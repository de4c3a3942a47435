-- Changes the marker of a server.
-- KEYS: the marker. ARGV: the run and the history that the server must have (empty: not known), its time at the reading
-- (empty: any), whether announced ttls are compared, too, the marker that it must have, and the fields to set.
-- Reply: 1, or 0 if the marker has changed, if another server has taken the place of the one that was read, or if the
-- change was delayed for so long that the data may have been lost once more.
-- Protocol 8.3
local function identity(section, pattern)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and string.match(text, pattern) or ''
end
if identity('server', 'run_id:(%w+)') ~= ARGV[1] then return 0 end
if identity('replication', 'master_replid:(%w+)') ~= ARGV[2] then return 0 end
local time = redis.call('TIME')
local age = time[1] * 1000 + math.floor(time[2] / 1000) - (tonumber(ARGV[3]) or math.huge)
if age > TIMELY then return 0 end
local marker = redis.call('HMGET', KEYS[1], unpack(MARKER_FIELDS))
for i = 1, #marker do marker[i] = marker[i] or '' end
if ARGV[4] == '0' then
  for _, place in ipairs(ANNOUNCED_PLACES) do marker[place] = '' end
end
if table.concat(marker, '\n') ~= ARGV[5] then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 6))
return 1
