-- Reports what a server is, and its marker. INFO can be denied: its fields are empty then. A node of a cluster may not own
-- the marker's key; the error is ignored, because the node is refused for another reason.
-- KEYS or ARGV: the marker, or nothing.
-- Reply: the time in milliseconds, the fields of INFO_SECTIONS, and those of MARKER_FIELDS.
-- Protocol 8.2
local time = redis.call('TIME')
local report = { string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
local isCluster = false
local function read(section, fields)
  local text = redis.pcall('INFO', section)
  if type(text) ~= 'string' then text = '' end
  if string.find(text, '_mode:cluster', 1, true) then isCluster = true end
  for _, field in ipairs(fields) do
    report[#report + 1] = string.match(text, '\n' .. field .. ':([^\r\n]*)') or ''
  end
end
for _, section in ipairs(INFO_SECTIONS) do read(section[1], section[2]) end
local fields = MARKER_FIELDS
local name = KEYS[1] or ARGV[1]
local marker = name and redis.pcall('HMGET', name, unpack(fields)) or {}
if marker.err and not isCluster then return marker end
for i = 1, #fields do report[#report + 1] = marker[i] or '' end
return report
