import { createHash } from 'node:crypto';
import { LOCKS } from './lua.generated.js';

// The digest is that by which a server that has loaded the script recognizes it.
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

// The script does not begin with `#!lua`: a server that is out of memory refuses such a script as a whole. It runs a
// script without that line, and refuses only the commands that need memory. PEXPIRE and DEL do not.
const BODY = `${LOCKS}\n-- for `;
// Of the common beginning of all scripts: every handshake needs a digest, and most of the script is always the same.
const BEGINNING = createHash('sha1').update(BODY);

// By run id. Every new connection and every doubt asks for the script again, mostly for the same few servers.
const bound = new Map<string, Script>();
const MAX_KEPT = 100;

// The run id (empty if unknown) is part of the digest: another server behind the same address does not know the script,
// not even over a connection that has survived in a proxy.
// Protocol 8.1
export function boundScript(run: string): Script {
  let script = bound.get(run);
  if (script === undefined) {
    script = { text: BODY + run, sha1: BEGINNING.copy().update(run).digest('hex') };
    if (bound.size === MAX_KEPT) bound.clear();
    bound.set(run, script);
  }
  return script;
}
