import { afterEach, expect } from '@jest/globals';
import type { INestApplication, INestApplicationContext, LoggerService, ModuleMetadata } from '@nestjs/common';
import { type AbstractHttpAdapter, ExternalContextCreator } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { RedlockConfigError } from 'nestjs-redlock';

/** Everything that was logged in this test, as `level message`. */
export const logs: string[] = [];

const running = new Set<INestApplicationContext>();

/** Boots the providers and controllers of a module, without a server. */
export async function boot(metadata: ModuleMetadata): Promise<TestingModule> {
  const module = await (await compile(metadata)).init();
  running.add(module);
  return module;
}

export interface Listening {
  readonly app: INestApplication;
  /** Without a trailing slash. */
  readonly url: string;
}

/** Boots a module behind an HTTP server on a free port. */
export async function listen(
  metadata: ModuleMetadata,
  adapter?: AbstractHttpAdapter,
  prepare: (app: INestApplication) => unknown = () => undefined,
): Promise<Listening> {
  const module = await compile(metadata);
  const app = adapter ? module.createNestApplication(adapter) : module.createNestApplication();
  running.add(app);
  await prepare(app);
  await app.listen(0, '127.0.0.1');
  return { app, url: (await app.getUrl()).replace('[::1]', '127.0.0.1') };
}

/** Lets `closeAll` close an application that a test started by itself. */
export function closeLater<T extends INestApplicationContext>(app: T): T {
  running.add(app);
  return app;
}

/** Closes all applications of a test, at its end at the latest. */
export async function closeAll(): Promise<void> {
  const apps = [...running];
  running.clear();
  await Promise.all(apps.map((app) => app.close()));
  logs.length = 0;
}

afterEach(closeAll);

/** A compiled module that is not initialized yet. */
export async function compile(metadata: ModuleMetadata): Promise<TestingModule> {
  return Test.createTestingModule(metadata).setLogger(recorder).compile();
}

/** The error with which a boot, or another action, refuses what it is given. */
export async function refusalOf(action: Promise<unknown> | (() => unknown)): Promise<RedlockConfigError> {
  try {
    await (typeof action === 'function' ? action() : action);
  } catch (error) {
    expect(error).toBeInstanceOf(RedlockConfigError);
    return error as RedlockConfigError;
  }
  throw new Error('it was not refused');
}

/** The method `run` of an object as other packages run handlers, such as resolvers: in a context of this type. */
export function externally(
  app: INestApplicationContext,
  target: Record<'run', unknown>,
  type: string,
): (...args: unknown[]) => Promise<unknown> {
  const run = target.run as (...args: unknown[]) => Promise<unknown>;
  const enhancers = { guards: true, interceptors: true, filters: true };
  return app
    .get(ExternalContextCreator)
    .create(target, run, 'run', undefined, undefined, undefined, undefined, enhancers, type);
}

function record(level: string): (message: unknown) => void {
  return (message) => void logs.push(`${level} ${message instanceof Error ? message.message : String(message)}`);
}

const recorder: LoggerService = {
  log: record('log'),
  debug: record('debug'),
  warn: record('warn'),
  error: record('error'),
  fatal: record('fatal'),
};
