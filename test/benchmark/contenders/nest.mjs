import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The library is the build in this checkout, so it uses the Nest of this checkout. The peers have a Nest of their own:
// two copies in one application would not recognize each other's classes.
const { resolve } = createRequire(new URL('../../../package.json', import.meta.url));

export const { NestFactory } = await import(pathToFileURL(resolve('@nestjs/core')).href);
export const { Module } = await import(pathToFileURL(resolve('@nestjs/common')).href);
