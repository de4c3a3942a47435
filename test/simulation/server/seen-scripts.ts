import { createHash } from 'node:crypto';
import { boundScript } from '../../../lib/redis/scripts/bound-script.js';
import { MARK, PERMISSIONS, REPORT, STATE } from '../../../lib/redis/scripts/lua.generated.js';

export type ScriptName = 'requests' | 'report' | 'mark' | 'state' | 'permissions';

/** A script that some simulated server has received. */
export interface SeenScript {
  readonly name: ScriptName;
  readonly text: string;
  readonly digest: string;
}

/**
 * Indexed by the last line, which holds the id of the run: a search by the whole source would take longer than most
 * commands.
 */
const byLastLine = new Map<string, SeenScript>();
const byDigest = new Map<string, SeenScript>();
const names = new Map<string, ScriptName>([
  [withoutRun(boundScript('').text), 'requests'],
  [REPORT, 'report'],
  [MARK, 'mark'],
  [STATE, 'state'],
  [PERMISSIONS, 'permissions'],
]);

/** The script with this source. The whole source must match: a changed script has no model. */
export function scriptOf(text: string): SeenScript {
  const lastLine = text.slice(text.lastIndexOf('\n'));
  const seen = byLastLine.get(lastLine);
  if (seen?.text === text) return seen;
  const name = names.get(text) ?? names.get(withoutRun(text));
  if (!name) throw new Error(`the simulated server has no model of this script: ${text}`);
  const script = { name, text, digest: createHash('sha1').update(text).digest('hex') };
  byLastLine.set(lastLine, script);
  byDigest.set(script.digest, script);
  return script;
}

export function scriptWithDigest(digest: string): SeenScript | undefined {
  return byDigest.get(digest);
}

function withoutRun(text: string): string {
  return text.slice(0, text.lastIndexOf('\n'));
}
