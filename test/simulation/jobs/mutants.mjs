// Wrong variants of the rules for jobs, which the properties must notice. As in ../mutants/mutants.mjs, each replaces whole
// lines of the library: those that end in an anchor, `// @mutant <name>`.
import { mutantsOf } from '../mutants/mutants.mjs';

/** Where the search begins for mutants that few plans notice. It goes on from there, however far it has to. */
const FIRST_SEEDS = {
  'a refused instance takes the tick for finished': 305,
  'a shutdown records a failure': 55,
  'an uncertain record looks certain to the next holder': 300,
  'a record counts although its master has lost data': 300,
};

/** The anchors, and the lines that replace theirs. */
const LINES = {
  'a start is not recorded': { 'start-recorded-before-the-run': '' },
  'a run begins before its start is acknowledged': {
    'start-recorded-before-the-run': 'void storeRecord(held.lock, started, settings.schedule).catch(() => undefined);',
  },
  'the record is not read': { 'record-read-before-the-decision': 'let record = this.recordIn(undefined);' },
  'a refused instance takes the tick for finished': {
    'refused-instances-wait': 'const held = await locks.hold([resource], { ttl, maxHold, wait: 0, signal: stopping });',
    'refused-instances-come-back': "if (isLockError(error, 'LOCK_NOT_ACQUIRED')) { this.settle(Infinity); continue; }",
  },
  'a tick is finished only if a later one is recorded': {
    'finished-ticks-stay-finished':
      'const isPending = candidate !== undefined && (record === undefined || candidate >= record.tick);',
  },
  'starts again with the same attempt': {
    'every-start-is-counted':
      "return recover ? { action: 'run', tick, attempt } : { action: 'mark', tick, state: 'abandoned' };",
  },
  'recover: false runs again': {
    'every-start-is-counted': "return { action: 'run', tick, attempt: recover ? attempt + 1 : attempt + 1 };",
  },
  'no baseline': { 'new-job-stores-a-baseline': '' },
  'a tick is the time of its arrival': { 'tick-is-its-nominal-time': 'else this.listener.due(Math.floor(now));' },
  'a crashed tick is left behind': { 'started-tick-comes-first': 'void resumeTick;' },
  'a shutdown records a failure': { 'handed-on-is-not-failed': '' },
  'an uncertain record looks certain to the next holder': {
    'uncertain-record-is-marked': 'if (since === undefined || true) return undefined;',
    'uncertain-state-stays-uncertain': "await this.#write('read');",
  },
  'a record counts although its master has lost data': { 'stale-state-counted': 'return true;' },
};

export const JOB_MUTANTS = mutantsOf(LINES, FIRST_SEEDS);
