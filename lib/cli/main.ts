#!/usr/bin/env node
import { createRequire } from 'node:module';
import { run } from './program.js';
import { processTerminal } from './terminal.js';

const { version } = createRequire(import.meta.url)('../../../package.json') as { version: string };

process.exitCode = await run(process.argv.slice(2), version, processTerminal());
