// Boots applications that fail, prints how many, and must then exit by itself.
import { NestFactory } from '@nestjs/core';
import { FAILURES, failingApp } from '../support/failed-boots.js';

const { url } = JSON.parse(process.argv[2] ?? '') as { readonly url: string };
// Nest declares it as a class.
const SILENT = { logger: false, abortOnError: false } as never;
let failed = 0;
for (const failure of Object.values(FAILURES)) {
  try {
    const app = await NestFactory.create(failingApp(url, failure(url)), SILENT);
    await app.init();
  } catch {
    failed++;
  }
}
process.stdout.write(`${failed}\n`);
