-- Sets `wait`, the milliseconds until this server votes, and `from`, when it began to by its clock. A server votes only
-- in the run in which its marker was written, and only after `from`: by then, each lock that it may have lost has ended.
-- The run is compared in the first call over a connection, which a server process does not outlive, and by each call
-- that finds no marker. `cause` says why the marker was written now. An error says that the gate has refused, and not the
-- key of a lock.
-- Protocol 8.2
if wait == nil and marker == '' then wait = 0 end -- @mutant gate-open
if wait == nil then
  time = time or call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  from = redis.pcall('HGET', marker, 'from')
  if is_first or not tonumber(from) then -- @mutant run-not-compared, missing-marker-taken-for-one
    local function ask(...)
      local reply = redis.pcall(...)
      if type(reply) == 'table' and reply.err then error({ err = AT_GATE .. reply.err }) end
      return reply
    end
    local run = string.match(ask('INFO', 'server'), 'run_id:(%w+)')
    if run ~= ask('HGET', marker, 'run') or not tonumber(from) then -- @mutant marker-written-again
      cause = from and 'restart' or 'new'
      from = string.format('%.0f', now + max_ttl) -- @mutant wait-too-short
      ask('HSET', marker, 'run', run, 'from', from) -- @mutant marker-not-written
    end
  end
  wait = math.max(0, from - now) -- @mutant quarantine-not-kept
end
