-- Tries commands, as JSON in ARGV[1]. The server checks the permissions of the user for each of them, as for those of any
-- script.
-- Reply: the errors of those that fail, each with its number in the list.
local failed = {}
for i, command in ipairs(cjson.decode(ARGV[1])) do
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then failed[#failed + 1] = i .. ' ' .. reply.err end
end
return failed
