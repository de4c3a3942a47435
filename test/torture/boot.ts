// What each process of `npm run torture:jobs`, `torture:leader`, `torture -- --fenced` and `npm run soak` begins with, and the
// work that has to run once at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Elections, Leader, type Leadership } from 'nestjs-redlock/leader';
import { type JobRun } from 'nestjs-redlock/schedule';
import type { SoakEvent, Task } from '../soak/trace.js';
import { now, recorder } from './trace.js';

export const task = JSON.parse(process.argv[2] ?? '') as Task;
export const note: (event: SoakEvent) => void = recorder(task.trace);
process.on('disconnect', () => process.exit());
process.channel?.unref();

/** A run of a job: leaves a line before and after it. After the end of its lock, it throws, and another instance runs it. */
export async function runJob(job: string, longest: number, { scheduledFor, attempt, signal }: JobRun): Promise<void> {
  const say = (event: 'start' | 'end' | 'aborted'): void => {
    note({ kind: 'tick', event, job, tick: scheduledFor.getTime(), attempt, at: now() });
  };
  say('start');
  await sleep(Math.random() * longest, undefined, { signal }).catch((error: unknown) => {
    say('aborted');
    throw error;
  });
  say('end');
}

/** In milliseconds. */
const SAMPLE_EVERY = 2;
const WRITE_EVERY = 10;

/** Leads, until it is asked to resign. */
@Injectable()
export class Relay {
  private readonly leading = { term: 0, sampled: 0, written: 0 };
  private resign = (): void => undefined;

  constructor(private readonly elections: Elections) {}

  @Leader('relay', { ttl: task.ttl })
  async lead({ term, ended }: Leadership): Promise<void> {
    this.leading.term = term;
    await Promise.race([ended, new Promise<void>((resolve) => (this.resign = resolve))]);
  }

  onModuleInit(): void {
    const say = (event: 'elected' | 'resigned' | 'lost' | 'changed', term: number): void => {
      note({ kind: 'election', line: { event, term, at: now() } });
    };
    this.elections.observe({
      elected: (_, term) => {
        say('elected', term);
        process.send?.({ elected: true });
      },
      resigned: (_, term) => say('resigned', term),
      lost: (_, term) => say('lost', term),
      changed: (_, { term }) => say('changed', term as number),
    });
    if (task.duty === 'leader') process.on('message', () => this.resign());
    process.channel?.unref();
    setInterval(() => this.sample(), SAMPLE_EVERY).unref();
  }

  /**
   * The belief is true between the two readings of the clock. So an interval from the end of the first reading to the
   * beginning of the last one is never longer than it was.
   */
  private sample(): void {
    const { term, sampled, written } = this.leading;
    const before = now();
    if (!this.elections.isLeader('relay')) return;
    const after = now();
    if (sampled === term && before - written < WRITE_EVERY) return;
    note({ kind: 'election', line: { event: 'leads', term, before, after } });
    Object.assign(this.leading, { sampled: term, written: before });
  }
}
