-- Says what a server is, and is the first call over each connection.
-- ARGV: the name of the marker (empty without the guard), and the `maxTtl` of the process in milliseconds (empty: the
-- marker is read, and never written).
-- Reply: the time in milliseconds, the fields of INFO_SECTIONS, the run and `from` of the marker, the milliseconds until
-- the server votes, and why the marker was written now.
-- Protocol 8.4
local call = redis.call
local marker, max_ttl = ARGV[1], tonumber(ARGV[2])
local time = call('TIME')
local report = { string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
for _, section in ipairs(INFO_SECTIONS) do
  local text = redis.pcall('INFO', section[1])
  if type(text) ~= 'string' then text = '' end
  for _, field in ipairs(section[2]) do
    report[#report + 1] = string.match(text, '\n' .. field .. ':([^\r\n]*)') or ''
  end
end
if marker == '' then return report end
local is_first, wait, from, cause = true, nil, nil, nil
local is_suitable = report[RUN_INDEX] ~= '' and report[ROLE_INDEX] == 'master'
for _, index in ipairs(MODE_INDEXES) do is_suitable = is_suitable and report[index] ~= 'cluster' end
if max_ttl and is_suitable then
  -- @include gate
end
local written = is_suitable and redis.pcall('HMGET', marker, 'run', 'from') or {}
if written.err then error({ err = AT_GATE .. written.err }) end
report[#report + 1] = written[1] or ''
report[#report + 1] = written[2] or ''
report[#report + 1] = string.format('%.0f', wait or 0)
report[#report + 1] = cause or ''
return report
