-- Refreshes the keys of a token, never to an earlier end. A heal sets the absent keys first: if there is no memory for them,
-- the others are not refreshed either. EXISTS and not SET NX, which a server that is out of memory refuses even where it would
-- do nothing.
-- keys, token, ttl, heals: 1 to set absent keys
-- Reply: FREE, GONE or HELD
-- Protocol 6.2
function operations.extend(keys, token, ttl, heals)
  local longest, _, owner = longest_hold(keys, token) -- @mutant extension-without-owner-check, extension-over-shared-holders
  if longest then return refusal(longest, owner) end
  local status = FREE
  for _, key in ipairs(keys) do
    if call('EXISTS', key) == 0 then
      if heals == 1 then call('SET', key, token, 'PX', ttl) else status = GONE end -- @mutant each-extension-heals
    end
  end
  for _, key in ipairs(keys) do call('PEXPIRE', key, ttl, 'GT') end
  return status
end
