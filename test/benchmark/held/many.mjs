import { CommandCounter } from '../measure/command-counter.mjs';

/** Counting timers slows a process down, so it runs with fewer locks and in a separate step. */
const TIMED = 500;

/** Measures what it costs one contender to hold many locks and to extend them. */
export async function holdMany({ crew, urls, ttl }, contender, { count }) {
  const { perLock } = await crew.run(contender, 'timers', { count: TIMED, ttl });
  // Compiles the code, and lets everything grow that grows only once.
  await crew.run(contender, 'hold', { count: count / 10, ttl, extended: true });
  await crew.run(contender, 'letGo');
  const { bytes } = await crew.run(contender, 'hold', { count, ttl, extended: true });
  const counter = await CommandCounter.start(urls);
  const { share } = await crew.run(contender, 'rest', { duration: ttl });
  const commands = await counter.stop();
  const { failures } = await crew.run(contender, 'letGo');
  return {
    ...{ count, masters: urls.length, ttl },
    ...{ bytes, share, failures },
    commandRate: (commands / ttl) * 1000,
    /** Per lock and master, within one ttl. */
    commandsPerTtl: commands / count / urls.length,
    timers: perLock,
  };
}
