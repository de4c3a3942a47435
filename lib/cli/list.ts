import * as admin from '../admin/admin.js';
import { display, inspections } from '../internal.js';
import type { CommandContext } from './session.js';
import { heldBy, isReleasedByForce, sharedByWords, table } from './terminal.js';

export async function list(context: CommandContext, pattern: string): Promise<number> {
  const { terminal, json, settings } = context;
  const { locks, unasked } = await admin.inSession(context, (session) => admin.listLocks(session, settings, pattern));
  if (json) terminal.print(JSON.stringify({ locks: locks.map(brief), unasked }, null, 2));
  else {
    const head = ['resource', 'state', 'remaining', 'masters', 'holder', 'waiting'];
    if (locks.length > 0) terminal.print(table(head, locks.map(rowOf)));
    const where =
      locks.length > 0 ? '' : ` with the prefix ${display.showNames([settings.keyPrefix])} (--prefix names another)`;
    const found = locks.length === 0 && unasked.length > 0 ? 'no lock was found' : countOf(locks);
    terminal.print(terminal.paint('bold', `${found}${where}`));
  }
  for (const { master, answer } of unasked) {
    const reason = answer && 'reason' in answer ? answer.reason : `no answer within ${context.timeout} ms`;
    terminal.complain(`${master} was not asked: ${reason}`);
  }
  return unasked.length > 0 ? 1 : 0;
}

function countOf(all: readonly admin.ListedLock[]): string {
  const permits = all.filter(({ slot }) => slot !== undefined).length;
  const locks = all.length - permits;
  const parts = [
    ...(locks > 0 || permits === 0 ? [`${display.counted(locks, 'lock')}${holdersOf(all)}`] : []),
    ...(permits > 0 ? [display.counted(permits, 'permit')] : []),
  ];
  return parts.join(', ');
}

function holdersOf(all: readonly admin.ListedLock[]): string {
  const locks = all.filter(({ slot }) => slot === undefined);
  if (locks.every(({ sharedBy }) => sharedBy === undefined)) return '';
  const count = locks.reduce((sum, { state, sharedBy }) => sum + (sharedBy ?? (state === 'held' ? 1 : 0)), 0);
  return ` with ${display.counted(count, 'holder')}`;
}

function rowOf(listed: admin.ListedLock): string[] {
  const { state, remaining, masters, holder, sharedBy, waiting } = listed;
  const held = masters.filter(({ answer }) => answer?.kind === 'held').length;
  // An acquisition was given up, or a master was unreachable during the release.
  const words = state === 'free' ? 'leftover' : isReleasedByForce(masters) ? 'released' : state;
  const by = holder ? heldBy(holder) : sharedBy === undefined ? '-' : sharedByWords(sharedBy);
  return [
    ...[
      inspections.titleOf(listed),
      words,
      state === 'held' ? display.duration(remaining) : '-',
      `${held} of ${masters.length}`,
    ],
    ...[by, waiting === undefined ? '' : String(waiting)],
  ];
}

function brief({ resource, slot, state, remaining, masters, holder, sharedBy, waiting }: admin.ListedLock): object {
  const heldOn = masters.filter(({ answer }) => answer?.kind === 'held').map(({ master }) => master);
  return { resource, slot, state, remaining, holder, sharedBy, waiting, heldOn };
}
