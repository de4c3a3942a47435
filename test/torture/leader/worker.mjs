// One instance of an application with a method under @Leader. Writes a line for each event, and while it leads every few
// milliseconds, which survives its end by SIGKILL. Arguments: the URLs of the masters, the file, the name of the instance.
import 'reflect-metadata';
import { appendFileSync } from 'node:fs';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedlockModule } from 'nestjs-redlock';
import { Elections, Leader, RedlockLeaderModule } from 'nestjs-redlock/leader';
import { MAX_TTL, SAMPLE_EVERY, TTL, WRITE_EVERY } from './times.mjs';

const [urls = '', file = '', instance = ''] = process.argv.slice(2);

/** All processes of a machine read the same monotonic clock. In milliseconds. */
const now = () => Number(process.hrtime.bigint()) / 1e6;
const note = (line) => appendFileSync(file, `${JSON.stringify({ ...line, instance })}\n`);

let resign = () => undefined;
class Work {
  async lead({ term, ended }) {
    leading.term = term;
    await Promise.race([ended, new Promise((resolve) => (resign = resolve))]);
  }
}
const leading = { term: 0, written: 0 };
const method = Object.getOwnPropertyDescriptor(Work.prototype, 'lead');
Leader('torture')(Work.prototype, 'lead', method);

class AppModule {}
const options = {
  masters: urls.split(','),
  ttl: TTL,
  maxTtl: MAX_TTL,
  masterTimeout: 100,
  drainTimeout: TTL,
  instance,
};
Module({ imports: [RedlockModule.forRoot(options), RedlockLeaderModule], providers: [Work] })(AppModule);

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const elections = app.get(Elections);
elections.observe({
  elected: (_, term) => {
    note({ event: 'elected', term, at: now() });
    process.send?.({ elected: instance });
  },
  resigned: (_, term) => note({ event: 'resigned', term, at: now() }),
  lost: (_, term) => note({ event: 'lost', term, at: now() }),
  changed: (_, { term }) => note({ event: 'changed', term, at: now() }),
});

// The belief is true between the two readings of the clock. So an interval from the end of the first reading to the
// beginning of the last one is never longer than it was.
setInterval(() => {
  const before = now();
  if (!elections.isLeader('torture')) return;
  const after = now();
  if (leading.sampled === leading.term && before - leading.written < WRITE_EVERY) return;
  note({ event: 'leads', term: leading.term, before, after });
  leading.sampled = leading.term;
  leading.written = before;
}, SAMPLE_EVERY);

process.on('message', (message) => message === 'resign' && resign());
process.on('SIGTERM', () => void app.close().then(() => process.exit()));
process.on('disconnect', () => process.exit());
process.send?.('ready');
