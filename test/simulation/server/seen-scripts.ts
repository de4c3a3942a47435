import { createHash } from 'node:crypto';
import { REPORT } from '../../../lib/redis/identity.js';
import { MARK } from '../../../lib/redis/guard/marker.js';
import { boundScript } from '../../../lib/redis/scripts.js';

export type ScriptName = 'requests' | 'report' | 'mark';

/** A script that some simulated server was given. */
export interface SeenScript {
  readonly name: ScriptName;
  readonly text: string;
  readonly digest: string;
}

/** By the last line, which holds the id of the run: to look for the whole text would take longer than most commands. */
const byLastLine = new Map<string, SeenScript>();
const byDigest = new Map<string, SeenScript>();
const names = new Map<string, ScriptName>([
  [withoutRun(boundScript('').text), 'requests'],
  [REPORT, 'report'],
  [MARK, 'mark'],
]);

/** The script of a text. Recognized as a whole: a text that has changed has no model. */
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
