import { createHash } from 'node:crypto';
import { LOCKS, PERMISSIONS, REPORT, STATE } from '../../../lib/redis/scripts/lua.generated.js';

export type ScriptName = 'requests' | 'report' | 'state' | 'permissions';

export interface SeenScript {
  readonly name: ScriptName;
  readonly text: string;
  readonly digest: string;
}

const byText = new Map<string, SeenScript>(
  (
    [
      [LOCKS, 'requests'],
      [REPORT, 'report'],
      [STATE, 'state'],
      [PERMISSIONS, 'permissions'],
    ] as const
  ).map(([text, name]) => [text, { name, text, digest: createHash('sha1').update(text).digest('hex') }]),
);
const byDigest = new Map([...byText.values()].map((script) => [script.digest, script]));

/** The script with this source. The whole source must match: a changed script has no model. */
export function scriptOf(text: string): SeenScript {
  const script = byText.get(text);
  if (!script) throw new Error(`the simulated server has no model of this script: ${text}`);
  return script;
}

export function scriptWithDigest(digest: string): SeenScript | undefined {
  return byDigest.get(digest);
}
