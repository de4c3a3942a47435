import { readConfig } from './config.js';
import { start } from './start.js';

await start(readConfig(process.env));
