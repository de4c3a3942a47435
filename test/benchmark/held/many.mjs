import { CommandCounter } from '../measure/command-counter.mjs';

/** Counting timers slows a process down, so it is done for fewer, and not at the same time. */
const TIMED = 500;

/** What it costs one contender to hold many locks and to extend them. */
export async function holdMany({ crew, urls, ttl }, contender, { count }) {
  const { perLock } = await crew.run(contender, 'timers', { count: TIMED, ttl });
  // The code is compiled, and whatever grows once has grown.
  await crew.run(contender, 'hold', { count: count / 10, ttl, extended: true });
  await crew.run(contender, 'letGo');
  const { bytes } = await crew.run(contender, 'hold', { count, ttl, extended: true });
  const counter = await CommandCounter.start(urls);
  const { share } = await crew.run(contender, 'rest', { duration: ttl });
  const commands = await counter.stop();
  const { failures } = await crew.run(contender, 'letGo');
  return {
    ...{ count, bytes, share, failures },
    commandRate: (commands / ttl) * 1000,
    /** Of one lock, to one master, in the time of a ttl. */
    commandsPerTtl: commands / count / urls.length,
    timers: perLock,
  };
}
