import type { MasterReport } from '../redlock/errors.js';
import { jobOfResource, type JobRecord, jobResource, readJobRecord } from '../operate/job-record.js';
import { Keyspace } from '../settings/keyspace.js';
import type { Settings } from '../settings/settings.js';
import { literally } from '../redis/permissions.js';
import type { Session } from './session.js';

export interface JobStatus {
  readonly name: string;
  readonly record: JobRecord;
  // A majority of the masters has stored the record.
  readonly isSettled: boolean;
  // The lock of the job is held, so that a started tick still runs.
  readonly isHeld: boolean;
}

type FoundRecord = Omit<JobStatus, 'isHeld'>;

interface JobListing {
  // Of all jobs; empty if too few masters answer to know them.
  readonly jobs: readonly JobStatus[];
  readonly isComplete: boolean;
  readonly unasked: readonly MasterReport[];
}

export async function listJobs(session: Session, { keyPrefix }: Settings): Promise<JobListing> {
  const { redlock, masters, absent, limit } = session;
  const keyspace = new Keyspace(keyPrefix);
  const names = new Set<string>();
  const match = `${literally(keyspace.stateOf(jobResource('')))}*`;
  const take = (entries: readonly string[]): Promise<undefined> => {
    for (const entry of entries) names.add(jobOfResource(keyspace.resourceOfState(entry)) ?? '');
    return Promise.resolve(undefined);
  };
  const ends = await Promise.all(
    masters.map(async ({ name: master, operator }) => ({
      master,
      answer: await operator.scan({ match, type: 'string', limit, take }),
    })),
  );
  const unasked = [...absent, ...ends.filter(({ answer }) => answer)];
  const status = redlock.masters.status();
  const isComplete = status.masters.length - unasked.length >= status.quorum;
  const found = await Promise.all(isComplete ? [...names].sort().map((name) => readJobStatus(session, name)) : []);
  return { jobs: found.filter((job) => job !== undefined), isComplete, unasked };
}

// As an application reads it.
async function readJob({ redlock }: Session, name: string): Promise<FoundRecord | undefined> {
  const { value, settled } = await redlock.inspector.readState(jobResource(name));
  const record = readJobRecord(value);
  return record && { name, record, isSettled: settled };
}

export async function readJobStatus(session: Session, name: string): Promise<JobStatus | undefined> {
  const found = await readJob(session, name);
  if (found?.record.state !== 'started') return found && { ...found, isHeld: false };
  const { state } = await session.redlock.inspector.inspect(jobResource(name));
  if (state !== 'free') return { ...found, isHeld: true };
  // The tick may have ended between the two answers: then there is another record now.
  const later = await readJob(session, name);
  const isSame = later?.record.tick === found.record.tick && later.record.attempt === found.record.attempt;
  return later && { ...later, isHeld: !isSame };
}
