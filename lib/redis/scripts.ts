import { createHash } from 'node:crypto';

/** What a script answers when nobody else holds a key: the keys were taken, refreshed, given up, or are free. */
export const FREE = -2;
/** What a script answers when a key is held and will not expire by itself. Like PTTL, where both numbers come from. */
export const ENDLESS = -1;

/** A Lua script and the digest by which a server that has seen it knows it. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/**
 * Ends the script, with the longest remaining time, if somebody else holds one of the keys.
 *
 * Before anything is written: a script that fails half-way is not rolled back. GET and not just PTTL, so that a key of
 * another type, which is no lock, is reported as such (WRONGTYPE).
 */
function refuseIf(heldByOther: string): string {
  return `
local longest = ${FREE}
for _, key in ipairs(KEYS) do
  local owner = redis.call('GET', key)
  if ${heldByOther} then
    local left = redis.call('PTTL', key)
    if left == ${ENDLESS} or (longest ~= ${ENDLESS} and left > longest) then longest = left end
  end
end
if longest ~= ${FREE} then return longest end`;
}

// No script begins with `#!lua`: a server that is out of memory refuses such a script as a whole, but runs one without,
// and only refuses the commands in it that need memory. PEXPIRE and DEL do not.

const ACQUIRE = `${refuseIf('owner')}
for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
return ${FREE}`;

// The absent keys first: if there is no memory for them, the others are not refreshed either. EXISTS and not SET NX,
// which a server that is out of memory refuses even where it would do nothing.
const EXTEND = `${refuseIf('owner and owner ~= ARGV[1]')}
for _, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 0 then redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[2]) end
return ${FREE}`;

// pcall, since one key that is no lock must not keep the others from being given up.
const RELEASE = `
local trouble
for _, key in ipairs(KEYS) do
  local owner = redis.pcall('GET', key)
  if type(owner) == 'table' then
    trouble = owner
  elseif owner == ARGV[1] then
    if ARGV[2] == '0' then redis.call('DEL', key) else redis.call('PEXPIRE', key, ARGV[2]) end
  end
end
return trouble or ${FREE}`;

const INSPECT = `${refuseIf('owner')}
return ${FREE}`;

/** The scripts that every master runs. All keys or none: none of them stops after its first write. */
export const SCRIPTS = Object.freeze({
  acquire: script(ACQUIRE),
  extend: script(EXTEND),
  release: script(RELEASE),
  inspect: script(INSPECT),
});

function script(body: string): Script {
  const text = body.trim();
  return Object.freeze({ text, sha1: createHash('sha1').update(text).digest('hex') });
}
