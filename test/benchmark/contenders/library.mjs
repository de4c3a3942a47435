import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The library is what was built in this checkout, so it has its Nest from there. The peers have theirs beside them: two
// copies in one application would not know each other's classes.
const { resolve } = createRequire(new URL('../../../package.json', import.meta.url));

export const { NestFactory } = await import(pathToFileURL(resolve('@nestjs/core')).href);
export const { Module } = await import(pathToFileURL(resolve('@nestjs/common')).href);
export * from '../../../dist/esm/index.js';
