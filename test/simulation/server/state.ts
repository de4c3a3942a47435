import type { GrantedReply, HeldReply, RefusedReply } from '../../../lib/core/master.interface.js';
import { entryText } from '../../../lib/core/state/state-entry.js';
import { carryOutState, type StateContext } from '../../../lib/memory/operations.js';
import { FOREIGN_ENTRY, FREE, NOT_THE_HOLDER, OUTBID, UNMARKED } from '../../../lib/redis/scripts/constants.js';
import type { Surface } from './operations.js';

// What the script for states answers. The operations are in lib/memory/operations.ts, which masters in memory share.

/** Carries out the script with these arguments. */
export function answerState(server: Surface, argv: readonly string[]): unknown[] {
  const [op = '', marker = '', run, replid, expected, entry = ''] = argv;
  const [key = '', token = '', life, number, id = '', sequence, json = ''] = argv.slice(6);
  const context = contextOf(server, marker);
  if (op === 'read-state') return valuesOf(carryOutState(context, { op, keys: [], entry }));
  const isExpected = context.generation === expected && server.run === run && server.replid === replid;
  if (marker !== '' && !isExpected && !server.faults.has('generation-is-ignored')) return [UNMARKED];
  const ballot = { number: Number(number), id };
  const holder = { keys: [key], entry, token, life: Number(life) };
  if (op === 'open-state') return valuesOf(carryOutState(context, { op, ballot, ...holder }));
  const version = { sequence: Number(sequence), ...ballot };
  return valuesOf(carryOutState(context, { op: 'write-state', json, version, ...holder }));
}

function contextOf({ data, time }: Surface, marker: string): StateContext {
  const isGuarded = marker !== '';
  return {
    data,
    now: () => time() / 1_000,
    generation: isGuarded ? (data.hget(marker, 'generation') ?? '') : '',
    isFirst: !isGuarded || data.hget(marker, 'first') === '1',
  };
}

function valuesOf(reply: GrantedReply | HeldReply | RefusedReply): unknown[] {
  if (reply.kind === 'refused') return [FOREIGN_ENTRY];
  if (reply.kind === 'held') {
    const { promised } = reply;
    return promised ? [OUTBID, promised.number.toFixed(0), promised.id] : [NOT_THE_HOLDER];
  }
  if (!reply.state) return [FREE];
  const { entry, generation, isFirst, time } = reply.state;
  return [FREE, time.toFixed(0), generation, isFirst ? '1' : '', entry ? entryText(entry) : ''];
}
