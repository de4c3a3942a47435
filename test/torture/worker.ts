// One process of an application: a Nest application with a lock service, whose actors take locks on a few keys. It
// exits by itself after SIGTERM.
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type * as Library from '../../lib/index.js';
import { Actor } from './actor.js';
import { Dice } from './dice.js';
import { Writer } from './register.js';
import { now, recorder, Trace } from './trace.js';

export interface WorkerTask {
  readonly worker: number;
  /** Distinguishes the sections of this process from those of its predecessors. */
  readonly instance: string;
  readonly seed: number;
  /** URL of the library's entry. */
  readonly library: string;
  readonly masters: readonly string[];
  readonly maxTtl: number;
  readonly restartGuard: boolean;
  readonly keys: readonly string[];
  readonly actors: number;
  /** File for its events. */
  readonly trace: string;
}

/** How long closing waits for held locks, in milliseconds. */
const DRAIN = 500;
/** How long closing waits for pending answers, and for connections that do not end, in milliseconds. */
const DISCONNECT = 1_600;

const task = JSON.parse(process.argv[2] ?? '') as WorkerTask;
const { masters, maxTtl, restartGuard } = task;
const trace = new Trace(recorder(task.trace));
for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
  process.on(event, (error: unknown) => {
    trace.say({ kind: 'unhandled', at: now(), message: error instanceof Error ? String(error.stack) : String(error) });
  });
}
process.on('disconnect', () => process.exit());
let stopped = false;
const stop = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => {
    stopped = true;
    resolve();
  });
});

const { LockService, RedlockModule } = (await import(task.library)) as typeof Library;
const options = { ttl: 400, maxTtl, wait: 1_000, restartGuard, drainTimeout: DRAIN, lazyConnect: true };
Logger.overrideLogger(false);
const app = await NestFactory.createApplicationContext(RedlockModule.forRoot({ masters, ...options }));
const locks = app.get(LockService);
const writer = new Writer();
const dice = new Dice(task.seed);
const actors = Array.from({ length: task.actors }, (_, index) => {
  const name = `${task.instance}.${index}`;
  return new Actor({ ...task, name, locks, trace, writer, dice: new Dice(task.seed + index + 1) });
});
const working = Promise.all(actors.map((actor) => actor.work(() => !stopped)));
const met = meetAll();
await stop;
await met;
// As in applications: with locks still held, or after the work has ended.
if (dice.chance(0.5)) await working;
const close = trace.ask('close', DRAIN + DISCONNECT);
await app.close();
close.settle('closed');
await working;
// From here on, nothing of this program keeps the process from ending.
process.channel?.unref();
trace.say({ kind: 'closed', at: now() });

/**
 * Waits until the process has reached every master. Otherwise it could not detect that a master has forgotten
 * something.
 */
async function meetAll(): Promise<void> {
  const met = new Set<string>();
  while (!stopped) {
    for (const { master, state } of locks.status().masters) if (state === 'voting') met.add(master);
    if (met.size === masters.length) {
      trace.say({ kind: 'ready', at: now() });
      process.send?.({ ready: true });
      return;
    }
    await sleep(20);
  }
}
