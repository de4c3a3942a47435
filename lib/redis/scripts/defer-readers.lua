-- A writer that waits keeps later shared requests out by its writer keys: its arrival, and its name. The first one has them.
-- writer_keys, waiter, waited
-- Reply: FREE
-- Protocol 11.6
function operations.defer_readers(writer_keys, waiter, waited)
  for _, key in ipairs(writer_keys) do
    local value = call('GET', key)
    if not value then
      call('SET', key, text(milliseconds() - waited) .. ' ' .. waiter, 'PX', WRITER_LIFE)
    elseif string.match(value, '^%-?%d+ (.*)$') == waiter then
      call('PEXPIRE', key, WRITER_LIFE)
    end
  end
  return FREE
end
