import { inTime, type OperatorContext, RESERVED } from './forced-release.js';
import type { Keyspace } from './keyspace.js';
import { NOT_ASKED } from './master.interface.js';
import { quorumOf } from './acquire/quorum-call.js';
import { MOST_PERMITS } from './settings/settings.js';

/** Largest length of all keys of one look-up, in UTF-16 code units: that of all slots of a name with 240 characters. */
const MOST_CHARACTERS = 2 ** 18;

/** Where to look for permits. */
export interface SlotSearch extends Omit<OperatorContext, 'key'> {
  readonly keyspace: Keyspace;
  readonly resource: string;
}

/**
 * Finds the slots of a resource that have a holder on some master, without the number of permits, which only applications
 * know. One request for each master looks at every slot that there can be, where a SCAN would go through all keys. Of a
 * name that is longer than any usual one, it looks at the first slots only.
 *
 * @returns `undefined` if too few masters answer
 */
export async function findSlots({ keyspace, resource, ...search }: SlotSearch): Promise<readonly number[] | undefined> {
  const longest = keyspace.slotOf(resource, MOST_PERMITS).length;
  const count = Math.max(1, Math.min(MOST_PERMITS, Math.floor(MOST_CHARACTERS / longest)));
  const keys = Array.from({ length: count }, (_, slot) => keyspace.slotOf(resource, slot));
  const answers = await Promise.all(
    search.masters.map(async ({ operator }) => (operator ? inTime(operator.values(keys), search) : NOT_ASKED)),
  );
  const found = answers.flatMap((answer) => ('kind' in answer ? [] : [answer]));
  if (found.length < quorumOf(search.masters.length)) return undefined;
  return keys.flatMap((_, slot) => (found.some((values) => isTaken(values[slot])) ? [slot] : []));
}

function isTaken(value: string | null | undefined): boolean {
  return typeof value === 'string' && !value.startsWith(RESERVED);
}
