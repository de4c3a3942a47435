import type { World } from '../world.js';
import { Violation } from './violation.js';

/** Milliseconds that the sum of many readings of a clock may be wrong. */
const ROUNDING = 1e-6;

/** Checks that each millisecond that calls have waited has one cause, and that only instances that had locks are named. */
export function checkContention({ nodes, actors, isQuiet, scheduler, sometimes }: World): void {
  const fail = (message: string): never => {
    throw new Violation('blamed time is waited time', scheduler.now, message);
  };
  for (const { process, redlock, waits, isMeasured, held, wasNamed } of nodes) {
    const rows = redlock.contention.report;
    const holders = rows.flatMap((row) => row.holders);
    const blamed = [...holders, ...rows.map(({ unnamed }) => ({ milliseconds: unnamed }))];
    const sum = blamed.reduce((total, { milliseconds }) => total + milliseconds, 0);
    const reported = rows.reduce((total, { milliseconds }) => total + milliseconds.sum, 0);
    // One that died in a grant has not counted it.
    const isOff = process.isDead ? sum > waits.waited + ROUNDING : Math.abs(sum - waits.waited) > ROUNDING;
    if ((isMeasured && isOff) || Math.abs(sum - reported) > ROUNDING) {
      fail(`${process.name} waited ${waits.waited} ms, reports ${reported} ms and blames ${sum} ms`);
    }
    if (waits.waited > waits.taken + ROUNDING) fail(`${process.name} waited longer than its calls took`);
    for (const { instance } of holders) {
      if (instance !== process.name) sometimes.reached('a wait was blamed on another process');
      const own = actors.filter((actor) => actor.node.process.name === instance);
      if (own.length === 0) fail(`${process.name} blames ${instance}, which has asked for nothing`);
      const hadLocks = own.some(({ isHolding, isDone, hasFailed }) => isHolding || (isDone && !hasFailed));
      if (isQuiet && !hadLocks) fail(`${process.name} blames ${instance}, which has had no lock`);
    }
    for (const { holders: blamedOf, waited } of rows) {
      const own = blamedOf.find(({ instance }) => instance === process.name)?.milliseconds ?? 0;
      const bound = held * waited + ROUNDING;
      if (isQuiet && !wasNamed && own > bound)
        fail(`${process.name} blames itself for ${own} ms of ${bound} ms at most`);
    }
  }
}
