-- Removes what the token holds, and wakes those that wait for it. One key that is no lock must not keep the others from being
-- released.
-- keys, token, keep_for: milliseconds, '0' to delete, queues, is_shared: 1 for shared keys
-- Reply: FREE, FREE_WITH_WAITERS, GONE, GONE_WITH_WAITERS or HELD.
-- Protocol 7.1, 7.4 and 11.4
function operations.release(keys, token, keep_for, queues, is_shared)
  local member = is_shared == 1 and SHARED .. token
  local trouble, longest, other
  local is_gone, contended = false, false
  for i, key in ipairs(keys) do
    local owner, shared, problem = look(key)
    local is_ours = owner == token -- @mutant unconditional-delete
    if member then is_ours = shared and shared.ends[member] end
    if problem then
      trouble = problem
    elseif owner and not is_ours and string.find(owner, RESERVED_FOR, 1, true) == 1 then
      is_gone, contended = true, true
    elseif not is_ours and (owner or (shared and not member)) then
      longest = longer(longest, shared and shared.till - milliseconds() or call('PTTL', key))
      other = other or (shared and shared.holders) or owner
    else
      if shared then
        call('ZREM', key, member) -- @mutant shared-key-deleted
        settle(key)
      elseif is_ours then
        if keep_for == '0' then call('DEL', key) else call('PEXPIRE', key, keep_for) end
      end
      if not is_ours then is_gone = true end
      if wake(key, queues[i]) then contended = true end
    end
  end
  if trouble or other then return trouble or refusal(longest, other) end
  if is_gone then return contended and GONE_WITH_WAITERS or GONE end
  return contended and FREE_WITH_WAITERS or FREE
end
