import 'reflect-metadata';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { fenceMigration } from 'nestjs-redlock/sql';
import { AppModule } from './app.module.js';
import { openDatabase } from './database/open-database.js';

const { REDLOCK_MASTERS = '', DATABASE_URL = `file:${join(tmpdir(), 'stock.db')}`, PORT = 3000, LOCK } = process.env;
const database = await openDatabase(DATABASE_URL);
await database.query('CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, count integer NOT NULL)');
for (const statement of fenceMigration(database.dialect)) await database.query(statement);
await database.query("INSERT INTO stock VALUES ('teapot', 10) ON CONFLICT (item) DO NOTHING");

const locks = { masters: REDLOCK_MASTERS.split(','), ttl: '2s' } as const;
const lock = LOCK === 'inside' ? 'inside' : 'outside';
const app = await NestFactory.create(AppModule.register({ database, locks, lock }));
app.enableShutdownHooks();
await app.listen(PORT);
