import { createHash } from 'node:crypto';
import { DEFINE_OPERATIONS } from './operations.lua.js';
import { FAST_PATH, ANSWER_ALL, PARAMETERS } from './usual.lua.js';

// The digest is that by which a server that has loaded the script recognizes it.
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

// Anchors for the faults of test/simulation/mutants are not sent to servers.
const ANCHORS = / -- @mutant .*$/gm;
// The script does not begin with `#!lua`: a server that is out of memory refuses such a script as a whole. It runs a
// script without that line, and refuses only the commands that need memory. PEXPIRE and DEL do not.
const BODY = `${[PARAMETERS, FAST_PATH, DEFINE_OPERATIONS, ANSWER_ALL].join('\n').trim().replaceAll(ANCHORS, '')}\n-- for `;
// Of the common beginning of all scripts: every handshake needs a digest, and most of the script is always the same.
const BEGINNING = createHash('sha1').update(BODY);

// By run id. Every new connection and every doubt asks for the script again, mostly for the same few servers.
const bound = new Map<string, Script>();
const MOST_KEPT = 100;

// The run id (empty if unknown) is part of the digest: another server behind the same address does not know the script,
// not even over a connection that has survived in a proxy.
// ARGV: see PARAMETERS; the history is empty where it is not to be compared. The answers are followed by the reply to
// TIME if an operation needed it.
// No name is in KEYS: a key that the user must not access then fails only the request that it belongs to. Only the
// nodes of a cluster need KEYS, and those are refused.
// Protocol 8.1
export function boundScript(run: string): Script {
  let script = bound.get(run);
  if (script === undefined) {
    script = { text: BODY + run, sha1: BEGINNING.copy().update(run).digest('hex') };
    if (bound.size === MOST_KEPT) bound.clear();
    bound.set(run, script);
  }
  return script;
}
