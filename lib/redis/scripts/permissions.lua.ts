// ARGV: a list of commands, as JSON. Returns the errors of those that fail, each with its place in the list. The server
// checks the permissions of the user for each of them, as for those of any script.
export const PERMISSIONS = `
local failed = {}
for i, command in ipairs(cjson.decode(ARGV[1])) do
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then failed[#failed + 1] = i .. ' ' .. reply.err end
end
return failed`;
