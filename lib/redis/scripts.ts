import { createHash } from 'node:crypto';
import { EVERYTHING } from './operations-script.js';
import { ALONE, GIVEN } from './usual-script.js';

/** A Lua script and the digest by which a server that has seen it knows it. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

// The script does not begin with `#!lua`: a server that is out of memory refuses such a script as a whole, but runs one
// without, and only refuses the commands in it that need memory. PEXPIRE and DEL do not.
const BODY = `${[GIVEN, ALONE, EVERYTHING].join('\n').trim()}\n-- for `;
/** The digest of what all scripts begin with: every handshake needs one, and most of the text is always the same. */
const BEGINNING = createHash('sha1').update(BODY);

/**
 * The script that answers requests, for one run of a server: its id is part of the text, and so of the digest. Another
 * server behind the same address does not know it, not even over a connection that has survived in a proxy.
 *
 * ARGV: the marker of the data and its nonce, both empty without a restart guard; the history of the data, empty where it
 * is not to be compared; the hash of counters; what is asked, as `request-encoding.ts` writes it. The answers come in the
 * same order, then what TIME says, if an operation needed it.
 *
 * All names come in ARGV and none in KEYS, which is for servers that share out keys among themselves, and those are
 * refused: a key that this user must not touch then fails the request that it belongs to, and not its neighbours.
 *
 * @param run id of the run; empty if the server does not tell
 */
export function boundScript(run: string): Script {
  return { text: BODY + run, sha1: BEGINNING.copy().update(run).digest('hex') };
}
