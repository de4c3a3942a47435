-- Sets `marked`: whether the server has the marker that the client knows, which is read once. A server that has lost its
-- marker may have lost all locks. From time to time, the history is compared, too: a server that was demoted and promoted
-- again has the same run and marker.
-- Protocol 8.1
if marked == nil then
  marked = marker == '' or pcall_redis('HGET', marker, 'nonce') == nonce -- @mutant marker-not-looked-at
  if marked and history ~= '' then
    local info = pcall_redis('INFO', 'replication')
    marked = type(info) ~= 'string' or string.find(info, 'master_replid:' .. history, 1, true) ~= nil
  end
end
