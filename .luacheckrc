-- For editors, and for `luacheck lib/redis/scripts`.
std = 'lua51'
max_line_length = false
ignore = { '542' }
read_globals = {
  -- Of the server.
  'redis', 'cjson', 'KEYS', 'ARGV',
  -- What `header.ts` and `constants.ts` export.
  'FREE', 'ENDLESS', 'FREE_WITH_WAITERS', 'UNMARKED', 'EXTENDED_AFTER_HEAL', 'NOT_THE_HOLDER', 'OUTBID', 'FOREIGN_ENTRY',
  'PICKED', 'QUEUE_LIFE', 'ANNOUNCED_FOR', 'MAX_ANNOUNCED', 'TIMELY', 'BARRIER_LIFE', 'MAX_SHARED_HOLDERS',
  'RESERVATION_LIFE', 'EXPIRY_RESOLUTION', 'RESERVED_FOR', 'SHARED', 'BARRIER', 'REVOKED', 'HOLDER_PATTERN',
  'MARKER_FIELDS', 'ANNOUNCED_PLACES', 'INFO_SECTIONS',
}
-- Their names are local where they are included.
local parts = 'check-marker contents give join locks notify operations part permits sharing signature take waiting'
for part in parts:gmatch('%S+') do
  files['lib/redis/scripts/' .. part .. '.lua'] = { ignore = { '1..', '2..', '3..' } }
end
