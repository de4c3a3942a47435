import { createHash } from 'node:crypto';
import { DEFINE_OPERATIONS } from './operations.lua.js';
import { ALONE, ANSWER_ALL, PARAMETERS } from './usual.lua.js';

/** A Lua script and the digest by which a server that has loaded it recognizes it. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** Anchors for the faults of test/simulation/mutants are not sent to servers. */
const ANCHORS = / -- @mutant .*$/gm;
// The script does not begin with `#!lua`: a server that is out of memory refuses such a script as a whole. It runs a
// script without that line, and refuses only the commands that need memory. PEXPIRE and DEL do not.
const BODY = `${[PARAMETERS, ALONE, DEFINE_OPERATIONS, ANSWER_ALL].join('\n').trim().replaceAll(ANCHORS, '')}\n-- for `;
/**
 * The digest of the common beginning of all scripts: every handshake needs a digest, and most of the script is always
 * the same.
 */
const BEGINNING = createHash('sha1').update(BODY);

/**
 * The script that answers requests, for one run of a server. The run id is part of the script and therefore of its
 * digest: another server behind the same address does not know the script, not even over a connection that has survived
 * in a proxy.
 *
 * ARGV: the marker of the data and its nonce, both empty without a restart guard; the history of the data, empty if it
 * is not to be compared; the hash of counters; the requests, as `request-encoding.ts` encodes them. The answers come in
 * the same order, followed by the reply to TIME if an operation needed it.
 *
 * All names are in ARGV and none in KEYS. Only the nodes of a cluster need KEYS, and those are refused. A key that the
 * user must not access then fails only the request that it belongs to.
 * Protocol 8.1.
 *
 * @param run run id of the server; empty if the server does not report it
 */
export function boundScript(run: string): Script {
  return { text: BODY + run, sha1: BEGINNING.copy().update(run).digest('hex') };
}
