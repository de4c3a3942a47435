-- Refreshes what a token holds, never to an earlier end. A heal sets what is absent first: if there is no memory for it, the
-- rest is not refreshed either. What is there can always be refreshed: a server that is out of memory refuses only what
-- would come before any other write.
-- keys, token, ttl, heals: 1 to set what is absent, is_shared: 1 for shared keys
-- Reply: FREE, GONE or HELD.
-- Protocol 6.2 and 11.3
function operations.extend(keys, token, ttl, heals, is_shared)
  is_shared = is_shared == 1
  local longest, _, owner = refusals(keys, { token = token, is_shared = is_shared }) -- @mutant extension-without-owner-check
  if longest then return refusal(longest, owner) end
  local member, till = SHARED .. token, is_shared and milliseconds() + ttl + 1
  local absent, status = {}, FREE
  for i, key in ipairs(keys) do
    local value, shared = look(key)
    absent[i] = not value and not (shared and shared.ends[member])
    if absent[i] and heals ~= 1 then -- @mutant each-extension-heals
      status = GONE
    elseif absent[i] and is_shared then
      put(key, member, till)
    elseif absent[i] then
      call('SET', key, token, 'PX', ttl)
    end
  end
  for i, key in ipairs(keys) do
    if not is_shared then
      call('PEXPIRE', key, ttl, 'GT')
    elseif not absent[i] then
      call('PEXPIREAT', key, text(till), 'GT')
      put(key, member, till)
    end
  end
  return status
end
