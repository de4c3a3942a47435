// One instance of an application with a job that is due every second. Writes a line before and after each run, which
// survives its end by SIGKILL. Arguments: the URLs of the masters, the file, the name of the instance.
import 'reflect-metadata';
import { appendFileSync } from 'node:fs';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { RedlockModule } from 'nestjs-redlock';
import { JobHistory, LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';

const [urls = '', file = '', instance = ''] = process.argv.slice(2);
/** The run takes so many milliseconds, at random, up to this. */
const LONGEST_RUN = 400;

const note = (line) => appendFileSync(file, `${JSON.stringify({ ...line, instance, at: Date.now() })}\n`);

class SecondJob {
  async tick({ scheduledFor, attempt }) {
    const run = { tick: scheduledFor.getTime(), attempt };
    note({ event: 'start', ...run });
    process.send?.({ running: instance });
    await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_RUN));
    note({ event: 'end', ...run });
  }
}
const declare = LockedCron('* * * * * *', { name: 'second', ttl: '500ms', overlap: 'queue' });
const method = Object.getOwnPropertyDescriptor(SecondJob.prototype, 'tick');
Object.defineProperty(SecondJob.prototype, 'tick', declare(SecondJob.prototype, 'tick', method) ?? method);

class AppModule {}
const redlock = RedlockModule.forRoot({
  masters: urls.split(','),
  ttl: '500ms',
  maxTtl: '2s',
  masterTimeout: '100ms',
  instance,
});
Module({ imports: [ScheduleModule.forRoot(), redlock, RedlockScheduleModule], providers: [SecondJob] })(AppModule);

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
const history = app.get(JobHistory);
process.on('message', async (message) => {
  if (message !== 'history') return;
  const [report] = await history.list().catch(() => []);
  process.send?.({ runs: report?.runs ?? [] });
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
