import { MARKER_FIELDS } from '../guard/marker.js';
import { SECTIONS } from '../replies.js';

// The marker is KEYS[1] or ARGV[1], or there is none. INFO can be denied: its fields are empty then. A node of a
// cluster may not own the marker's key; the error is ignored, because the node is refused for another reason.
// Protocol 8.2
export const REPORT = `
local time = redis.call('TIME')
local report = { string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
local isCluster = false
local function read(section, fields)
  local text = redis.pcall('INFO', section)
  if type(text) ~= 'string' then text = '' end
  if string.find(text, '_mode:cluster', 1, true) then isCluster = true end
  for _, field in ipairs(fields) do
    report[#report + 1] = string.match(text, '\\n' .. field .. ':([^\\r\\n]*)') or ''
  end
end
${Object.entries(SECTIONS)
  .map(([section, fields]) => `read('${section}', ${luaList(fields)})`)
  .join('\n')}
local fields = ${luaList(MARKER_FIELDS)}
local name = KEYS[1] or ARGV[1]
local marker = name and redis.pcall('HMGET', name, unpack(fields)) or {}
if marker.err and not isCluster then return marker end
for i = 1, #fields do report[#report + 1] = marker[i] or '' end
return report`;

function luaList(names: readonly string[]): string {
  return `{ ${names.map((name) => `'${name}'`).join(', ')} }`;
}
