-- Sets keys for a moment, to find out whether they can be written.
-- keys
-- Reply: FREE
function operations.probe(keys)
  for _, key in ipairs(keys) do
    -- In case the deletion fails.
    call('SET', key, '', 'PX', 1000)
    call('DEL', key)
  end
  return FREE
end
