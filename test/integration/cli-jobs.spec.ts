import { describe, expect, it, jest } from '@jest/globals';
import { endRecord, jobResource, startRecord } from '../../lib/core/jobs/job-record.js';
import { Keyspace } from '../../lib/core/keyspace.js';
import type { Lock } from '../../lib/core/lock.js';
import { command } from '../support/command.js';
import { Contender } from '../support/redlocks.js';
import { commandLineOn } from './support/command-line.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const NOON = Date.UTC(2026, 10, 22, 12);
const WRITING = { holder: 'web-1:1', at: NOON + 10 };
const BEGUN = startRecord(undefined, { tick: NOON, attempt: 1 }, WRITING);
const FAILED = endRecord(BEGUN, { holder: 'web-1:1', at: NOON + 2_010 }, { message: 'the disk is full' });

interface Job {
  readonly name: string;
  readonly state: string;
  readonly isSettled: boolean;
}

const masters = sharedMasters(3);
const { run, json } = commandLineOn(() => masters.urls);

/** For dead masters, which are given up on only then. */
const jobsWithin2s = (...args: readonly string[]) => run('jobs', ...args, '--timeout', '2s');

async function listed(...args: readonly string[]): Promise<readonly Job[]> {
  return (await json<{ jobs: readonly Job[] }>('jobs', ...args)).jobs;
}

async function take(contender: Contender, name: string, record: unknown): Promise<Lock> {
  const lock = await contender.acquire(jobResource(name), '30s', { wait: '20s', extend: true });
  await lock.state.set(record);
  return lock;
}

describe('jobs', () => {
  it('shows the last run of each job, and the runs of one', async () => {
    await using contender = await Contender.on(masters.urls);
    const running = await take(contender, 'sync', BEGUN);
    await (await take(contender, 'report', FAILED)).release();
    await (await take(contender, 'crashed', BEGUN)).release();
    await (await take(contender, 'not a record', { cursor: 7 })).release();

    expect(await listed()).toMatchObject([
      { name: 'crashed', state: 'unfinished', isSettled: true },
      { name: 'report', state: 'failed', isSettled: true },
      { name: 'sync', state: 'running', isSettled: true },
    ]);
    const all = await run('jobs');
    expect(all).toMatchObject({ status: 0, stderr: '' });
    expect(all.stdout).toMatch(/report +│ failed +│ 2026-11-22 12:00:00Z │ 2\.0 s │ web-1:1 +│ 1 +│ yes/);
    expect(all.stdout).toContain('3 jobs');
    const one = await run('jobs', 'report');
    expect(one).toMatchObject({ status: 0, stderr: '' });
    expect(one.stdout).toMatch(/failed .*the disk is full/);
    expect(one.stdout).toContain('"report" is failed\n');
    await running.release();
  });

  it('reads by the rule of a majority', async () => {
    await using contender = await Contender.on(masters.urls);
    await (await take(contender, 'report', FAILED)).release();
    const entry = new Keyspace('lock:').stateOf(jobResource('report'));
    const [a, b, c] = masters.servers;
    await command(a!.port, 'DEL', entry);
    expect(await listed()).toMatchObject([{ name: 'report', isSettled: true }]);
    await command(b!.port, 'DEL', entry);
    const lost = await run('jobs', 'report');
    expect(lost.status).toBe(0);
    expect(lost.stdout).toContain('"report" is failed, but no majority of the masters has stored that');

    await a!.kill();
    const without = await jobsWithin2s();
    expect(without).toMatchObject({ status: 0, stdout: expect.stringContaining('1 job') });
    expect(without.stderr).toMatch(/was not asked: .*ECONNREFUSED/);
    await command(c!.port, 'ACL', 'SETUSER', 'default', '-scan');
    const tooFew = await jobsWithin2s();
    expect(tooFew.status).toBe(1);
    expect(tooFew.stderr).toMatch(/was not asked: .*scan/);
    // The record of one job needs no SCAN.
    expect(await jobsWithin2s('report')).toMatchObject({ status: 0 });
    await b!.kill();
    const alone = await jobsWithin2s('report');
    expect(alone).toMatchObject({ status: 1, stderr: expect.stringContaining('ECONNREFUSED') });
  });

  it('ends with status 1 for a job without a record, and 2 for a name that cannot be one', async () => {
    const none = await run('jobs');
    expect(none).toMatchObject({
      ...{ status: 0, stdout: '0 jobs with a record with the prefix "lock:" (--prefix names another)\n' },
    });
    const missing = await run('jobs', 'nosuch');
    expect(missing).toMatchObject({ status: 1, stdout: '' });
    expect(missing.stderr).toContain('the job "nosuch" has no record with the prefix "lock:"');
    expect(await run('jobs', 'of undefined')).toMatchObject({ status: 2 });
  });

  it('knows the records of applications without a restart guard', async () => {
    await using contender = await Contender.on(masters.urls, { restartGuard: false });
    await (await take(contender, 'report', FAILED)).release();
    expect(await listed('--no-restart-guard')).toMatchObject([{ name: 'report', isSettled: true }]);
  });
});
