import { Logger } from '@nestjs/common';
import { readConfig } from './config.js';
import { start } from './start.js';

Logger.overrideLogger(['warn', 'error', 'fatal']);
try {
  const app = await start(readConfig(process.env));
  process.stdout.write(`The dashboard is at ${await app.getUrl()}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
