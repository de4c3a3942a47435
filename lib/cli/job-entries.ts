import type { MasterReport } from '../core/errors.js';
import { type JobRecord, jobOfResource, jobResource, readJobRecord } from '../core/jobs/job-record.js';
import { type Keyspace } from '../core/keyspace.js';
import type { MasterReply } from '../core/master.interface.js';
import { snapshotOf } from '../core/state/read-state.js';
import { runStateRequest } from '../redis/redis-state.js';
import { type Failure, isFailure } from './contact.js';
import type { LockContact } from './lock-contact.js';
import { literally } from './pattern.js';
import { answerOf, type Session } from './session.js';

/** Where records are, and how they are marked. */
export interface JobKeys {
  readonly keyspace: Keyspace;
  /** Whether the applications mark the data of masters. */
  readonly isGuarded: boolean;
}

/** The record of a job, and what a majority of the masters says about it. */
export interface FoundRecord {
  readonly name: string;
  readonly record: JobRecord;
  /** Whether a majority of the masters has stored it. */
  readonly isSettled: boolean;
}

/** The names of all jobs with a record on some master, and the masters that could not be asked. */
export interface FoundNames {
  readonly names: readonly string[];
  readonly unasked: readonly MasterReport[];
}

/** Finds the names of the jobs that have a record on at least one master. */
export async function findJobs({ members, absent }: Session, keyspace: Keyspace): Promise<FoundNames> {
  const scans = await Promise.all(
    members.map(async ({ contact }) => ({ master: contact.name, found: await scan(contact, keyspace) })),
  );
  const failed = scans.flatMap(({ master, found }) => ('code' in found ? [{ master, answer: answerOf(found) }] : []));
  const names = scans.flatMap(({ found }) => ('code' in found ? [] : found));
  return { names: [...new Set(names)].sort(), unasked: [...absent, ...failed] };
}

/**
 * Reads the newest record of a job, by the rule of a majority.
 *
 * @returns `undefined` if there is none
 * @throws {QuorumUnavailableError} if too few masters answer
 */
export async function readJob(
  { members, absent }: Session,
  name: string,
  keys: JobKeys,
): Promise<FoundRecord | undefined> {
  const resource = jobResource(name);
  const answers = await Promise.all(
    members.map(async ({ contact }): Promise<MasterReport> => ({
      master: contact.name,
      answer: await readEntryOf(contact, resource, keys),
    })),
  );
  const { value, settled } = snapshotOf(resource, [...answers, ...absent]);
  const record = readJobRecord(value);
  return record && { name, record, isSettled: settled };
}

async function scan(contact: LockContact, keyspace: Keyspace): Promise<readonly string[] | Failure> {
  const names: string[] = [];
  const failure = await contact.scan(
    `${literally(keyspace.stateOf(jobResource('')))}*`,
    (entries) => {
      names.push(...entries.map((entry) => jobOfResource(keyspace.resourceOfState(entry)) ?? ''));
      return Promise.resolve(undefined);
    },
    'string',
  );
  return failure ?? names;
}

/** The request of an application, with the marker that the session itself does not use, because it must write none. */
async function readEntryOf(
  contact: LockContact,
  resource: string,
  { keyspace, isGuarded }: JobKeys,
): Promise<MasterReply> {
  const place = contact.at(keyspace.keyOf(resource));
  const entry = place.stored(keyspace.stateOf(resource));
  const request = { op: 'read-state', keys: [place.stored(keyspace.keyOf(resource))], entry } as const;
  const server = { marker: isGuarded ? place.marker : '', run: '', replid: '' };
  let failure: Failure | undefined;
  const answer = await runStateRequest(request, server, async (script, args) => {
    const outcome = await place.call('EVAL', script, 2, place.marker, entry, ...args);
    if (!isFailure(outcome)) return outcome.value;
    failure = outcome;
    return [];
  });
  return failure ? answerOf(failure) : answer;
}
