-- A writer that waits keeps later shared requests out by its writer keys: its arrival, and its name. The first one has them.
-- writer_keys, waiter, waited: absent if it waits no more
-- Reply: FREE
-- Protocol 11.6
function operations.defer_readers(writer_keys, waiter, waited)
  for _, key in ipairs(writer_keys) do
    local value = call('GET', key)
    local is_ours = value and string.match(value, '^%-?%d+ (.*)$') == waiter
    if waited and not value then
      call('SET', key, text(milliseconds() - waited) .. ' ' .. waiter, 'PX', WRITER_LIFE)
    elseif waited and is_ours then
      call('PEXPIRE', key, WRITER_LIFE)
    elseif is_ours then
      call('DEL', key)
    end
  end
  return FREE
end
