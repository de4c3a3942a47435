-- Deletes the keys that the token holds, and wakes their next waiters. One key that is no lock must not keep the others from
-- being released.
-- keys, token, keep_for: milliseconds, '0' to delete, queues, given: the key was there, and has been deleted
-- Reply: FREE, FREE_WITH_WAITERS, GONE, GONE_WITH_WAITERS or HELD
-- Protocol 7.1 and 7.4
function operations.release(keys, token, keep_for, queues, given)
  local trouble, other
  local longest, is_gone, contended = nil, false, false
  for i, key in ipairs(keys) do
    local owner, shared, problem = look(key)
    trouble = problem or trouble
    if problem then
      -- Nothing here is the holder's.
    elseif not shared and (owner == token or not owner) then -- @mutant unconditional-delete
      if owner and keep_for == '0' then call('DEL', key) end
      if owner and keep_for ~= '0' then call('PEXPIRE', key, keep_for) end
      if not owner and not given then is_gone = true end
      if wake(key, queues[i]) then contended = true end
    elseif owner and string.find(owner, RESERVED_FOR, 1, true) == 1 then
      is_gone, contended = true, true
    else
      longest = longer(longest, shared and shared.till - milliseconds() or call('PTTL', key))
      other = other or (shared and shared.holders) or owner
    end
  end
  return trouble or (other and refusal(longest, other)) or released(is_gone, contended)
end
