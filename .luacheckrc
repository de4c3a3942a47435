-- For editors, and for `luacheck lib/redis/scripts`.
std = 'lua51'
max_line_length = false
ignore = { '542' }
read_globals = {
  -- Of the server.
  'redis', 'cjson', 'KEYS', 'ARGV',
  -- What `header.ts` and `constants.ts` export.
  'FREE', 'ENDLESS', 'FREE_WITH_WAITERS', 'QUARANTINED', 'GONE', 'GONE_WITH_WAITERS', 'NOT_THE_HOLDER', 'CLAIMED',
  'OTHER_MARKER', 'FOREIGN_ENTRY', 'PICKED', 'LATEST_CLOCK', 'QUEUE_LIFE', 'RESERVED_FOR', 'SHARED', 'WRITER',
  'REVOKED', 'HOLDER_PATTERN', 'RUN_PLACE', 'ROLE_PLACE', 'MODE_PLACES', 'INFO_SECTIONS', 'WRITER_LIFE',
  'MAX_SHARED_HOLDERS', 'RESERVATION_LIFE',
}
-- Their names are local where they are included.
local parts = 'acquire acquire-one acquire-shared-one contents defer-readers draw extend gate inspect leave notify pick probe release release-one release-shared-one signature wake'
for part in parts:gmatch('%S+') do
  files['lib/redis/scripts/' .. part .. '.lua'] = { ignore = { '1..', '2..', '3..' } }
end
