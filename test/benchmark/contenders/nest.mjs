import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The library is the build in this checkout, so it uses the Nest of this checkout. The peers have a Nest of their own:
// two copies in one application would not recognize each other's classes.
const { resolve } = createRequire(new URL('../../../package.json', import.meta.url));

export const load = (name) => import(pathToFileURL(resolve(name)).href);
export const { NestFactory } = await load('@nestjs/core');
export const { Module } = await load('@nestjs/common');
