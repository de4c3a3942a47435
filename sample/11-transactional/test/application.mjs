// One instance of the application. It reports its steps to the test, and commits when the test lets it. It runs in a
// process of its own, because `@Transactional` supports one application per process, and because jest cannot load
// nestjs-cls, which is CommonJS, together with Nest 12 on Node 20.
import 'reflect-metadata';
import { EventEmitter, once } from 'node:events';
import { NestFactory } from '@nestjs/core';
import { AppModule } from '../dist/app.module.js';
import { openDatabase } from '../dist/database/open-database.js';
import { Sales } from '../dist/sales/sales.js';

const { DATABASE_URL, REDLOCK_MASTERS, LOCK } = process.env;
const orders = new EventEmitter();
process.on('message', ([order, ...details]) => orders.emit(order, ...details));
const send = (event, detail) => process.send([event, detail]);

const real = await openDatabase(DATABASE_URL);
const database = {
  transaction: (work) =>
    real.transaction(async (sql) => {
      const result = await work({ query: (...statement) => queryAndTell(sql, statement) });
      const committed = once(orders, 'commit');
      send('wants to commit');
      await committed;
      return result;
    }),
};
const payments = { charge: async (customer) => send('charges', customer) };
const observer = { masterAnswered: (_master, _operation, { kind }) => kind === 'held' && send('found it locked') };
const locks = { masters: [REDLOCK_MASTERS], observers: [observer] };
const options = { database, payments, lock: LOCK, locks };
const app = await NestFactory.createApplicationContext(AppModule.register(options), { logger: ['error', 'warn'] });

orders.on('sell', (customer) => void sell(customer));
send('is ready');

async function queryAndTell(sql, statement) {
  const rows = await sql.query(...statement);
  if (statement[0].startsWith('SELECT count')) send('has read the stock');
  return rows;
}

async function sell(customer) {
  const outcome = app.get(Sales).sell('teapot', customer);
  send('is done', await outcome.then((left) => `sold, ${left} left`).catch((error) => error.message));
}
