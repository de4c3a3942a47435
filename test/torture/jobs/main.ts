// `npm run torture:jobs`: three instances with a job that is due every second, on three real servers. One instance at a
// time is killed at a random moment and started again. Afterwards every tick must have run, and more than once only if the
// process that ran it was killed before it had ended.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SoakEvent, Task } from '../../soak/trace.js';
import { Child, Fleet, type Outcome } from '../child.js';
import { Cluster } from '../cluster.js';
import { Dice } from '../dice.js';
import { LONGEST_RUN } from '../trace.js';
import { explain, type RunLine } from './verdict.mjs';

const INSTANCE = join(import.meta.dirname, '../instance.js');
const INSTANCES = ['a', 'b', 'c'];
/** Between two kills, in milliseconds. */
const CALM = [1_500, 4_500] as const;
/** The history holds the last 20 runs of a job that is due every second. */
const HISTORY_EVERY = 5_000;

interface Run {
  readonly scheduledFor: string;
  readonly attempt: number;
  readonly outcome: string;
  readonly instance: string;
}

interface Options {
  readonly seconds: number;
  readonly kill: boolean;
  readonly folder: string;
}

export async function main({ seconds, kill, folder }: Options): Promise<Outcome> {
  await using cluster = await Cluster.start(3);
  const task = {
    duty: 'job',
    masters: cluster.nodes.map(({ server }) => server.url),
    ttl: 500,
  } satisfies Partial<Task>;
  const dice = new Dice(Date.now());
  /** What the history has shown, by tick and attempt. */
  const recorded = new Map<string, Run>();
  /** Receives the part of the instance that begins a run. */
  let announceRun = (_: string): void => undefined;
  await using fleet = new Fleet((name) => {
    const child = new Child<SoakEvent>(name, { program: INSTANCE, folder, task });
    child.process.on('message', ({ running, runs = [] }: { running?: true; runs?: readonly Run[] }) => {
      if (running) announceRun(name.slice(0, 1));
      for (const run of runs) recorded.set(`${Date.parse(run.scheduledFor)} ${run.attempt}`, run);
    });
    return child;
  });
  const askForHistory = (): void => {
    for (const { process } of fleet.inService.values()) if (process.connected) process.send('history', () => undefined);
  };
  const end = new AbortController();
  const killNowAndThen = async (): Promise<void> => {
    for (;;) {
      await sleep(dice.between(...CALM));
      if (end.signal.aborted) return;
      // Mostly the instance that runs the job, at a random moment of the run or soon after it.
      const isRunner = dice.chance(0.8);
      const part = isRunner ? await new Promise<string>((resolve) => (announceRun = resolve)) : dice.pick(INSTANCES);
      await sleep(dice.between(0, LONGEST_RUN));
      await fleet.replace(part);
    }
  };

  console.log(`Three instances on three servers, a tick every second, for ${seconds} s`);
  await Promise.all(INSTANCES.map((part) => fleet.start(part)));
  // New masters vote after 2.5 s, and the first tick stores a baseline.
  await sleep(5_000);
  const from = Date.now();
  const asking = setInterval(askForHistory, HISTORY_EVERY);
  const killing = kill ? killNowAndThen() : undefined;
  await sleep(seconds * 1_000);
  const until = Date.now();
  end.abort();
  await killing;
  clearInterval(asking);
  // The last ticks end, and are in the history.
  await sleep(3_000);
  askForHistory();
  await sleep(1_000);
  const lines = fleet.all.flatMap(({ record: { name, events } }) =>
    events.flatMap((event) => (event.kind === 'tick' ? [{ ...event, instance: name } as RunLine] : [])),
  );
  const { table, problems } = explain({ lines, kills: fleet.kills, recorded, from, until });
  return { text: table, problems };
}
