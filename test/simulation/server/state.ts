import type { GrantedReply, HeldReply, RefusedReply } from '../../../lib/masters/master.interface.js';
import { entryText } from '../../../lib/fencing/state-entry.js';
import { carryOutState } from '../../../lib/memory/operations.js';
import {
  CLAIMED,
  FOREIGN_ENTRY,
  FREE,
  NOT_THE_HOLDER,
  OTHER_MARKER,
  QUARANTINED,
} from '../../../lib/redis/scripts/replies.js';
import { Gate, type Surface } from './operations.js';

// What the script for states answers. The operations are in lib/memory/operations.ts, which masters in memory share.

export function answerState(server: Surface, argv: readonly string[]): unknown[] {
  const [op = '', name = '', maxTtl, expected, entry = ''] = argv;
  const [key = '', token = '', life, number, sequence, json = ''] = argv.slice(5);
  const { data } = server;
  if (op === 'read-state') {
    const marker = name === '' ? '' : (data.hget(name, 'from') ?? '');
    return valuesOf(carryOutState({ data, marker }, { op, keys: [], entry }));
  }
  const gate = new Gate(server, { marker: name, maxTtl: Number(maxTtl), isFirst: false });
  if (gate.wait > 0) return [QUARANTINED, gate.wait.toFixed(0)];
  const marker = gate.from ?? '';
  const isExpected = name === '' || `${data.hget(name, 'run')}-${marker}` === expected;
  if (!isExpected && !server.faults.has('state-of-other-data-written')) return [OTHER_MARKER];
  const context = { data, marker };
  const holder = { keys: [key], entry, token, life: Number(life) };
  if (op === 'open-state') return valuesOf(carryOutState(context, { op, number: Number(number), ...holder }));
  const version = { number: Number(number), sequence: Number(sequence) };
  return valuesOf(carryOutState(context, { op: 'write-state', json, version, ...holder }));
}

function valuesOf(reply: GrantedReply | HeldReply | RefusedReply): unknown[] {
  if (reply.kind === 'refused') return [FOREIGN_ENTRY];
  if (reply.kind === 'held') return reply.claim === undefined ? [NOT_THE_HOLDER] : [CLAIMED, reply.claim.toFixed(0)];
  if (!reply.state) return [FREE];
  const { entry, marker } = reply.state;
  return [FREE, marker, entry ? entryText(entry) : ''];
}
