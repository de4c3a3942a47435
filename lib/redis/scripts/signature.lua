-- Sets `signature`: the part of a holder's token that is not secret, `!` for a lock that was released by force, and empty for
-- the value of another program.
local signature = owner == REVOKED and '!' or string.match(owner, HOLDER_PATTERN) or ''
